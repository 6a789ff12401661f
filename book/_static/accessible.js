// Mends for assistive software what the theme leaves open; each line names what was wrong.
document.addEventListener("DOMContentLoaded", () => {
  const each = (selector, mend) => document.querySelectorAll(selector).forEach(mend);
  // the button reads "Search Ctrl+K", its name says "Search"
  each(".search-button-field", (button) => button.removeAttribute("aria-label"));
  // its icons have titles, which count as text that the button's name leaves out
  each(".theme-switch-button [title]", (icon) => icon.removeAttribute("title"));
  each(".theme-switch-button title", (title) => title.remove());
  // a list of references without items
  each(".citation-list > .citation", (citation) => citation.setAttribute("role", "listitem"));
  // the book's title outside of every landmark
  each("#pst-primary-sidebar", (sidebar) => {
    sidebar.setAttribute("role", "region");
    sidebar.setAttribute("aria-label", "Book");
  });
});
