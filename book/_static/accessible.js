// Mends for assistive software what the theme leaves open; each line names what was wrong.
document.addEventListener("DOMContentLoaded", () => {
  const each = (selector, mend) => document.querySelectorAll(selector).forEach(mend);
  // the button reads "Search Ctrl+K", its name says "Search"
  each(".search-button-field", (button) => button.removeAttribute("aria-label"));
  // the titles of this one's icons count as its text: one of them at a time
  each(".theme-switch-button", (button) => {
    button.setAttribute("aria-label", "Color mode: Light, Dark, System Settings");
  });
  // what is folded reads "Show the solution", its name says "Toggle hidden content"
  each("summary[aria-label]", (summary) => summary.removeAttribute("aria-label"));
  // a list of references without items
  each(".citation-list > .citation", (citation) => citation.setAttribute("role", "listitem"));
  // the book's title outside of every landmark
  each("#pst-primary-sidebar", (sidebar) => {
    sidebar.setAttribute("role", "region");
    sidebar.setAttribute("aria-label", "Book");
  });
});
