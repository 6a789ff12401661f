// Looks at a page with axe. Contrast depends on nothing but colours and letters, so that one text of each look
// is enough; everything else is looked at once, in the light.
async function look(theme) {
  document.documentElement.dataset.theme = document.documentElement.dataset.mode = theme;
  document.head.insertAdjacentHTML("beforeend", "<style>* { transition: none !important; }</style>");
  const options = { resultTypes: ["violations"], iframes: false, preload: false };
  const contrast = samples();
  const results = contrast.length
    ? [await axe.run(contrast, { ...options, runOnly: ["color-contrast", "link-in-text-block"] })] : [];
  if (theme === "light") {
    results.unshift(await axe.run({ ...options, rules: { "color-contrast": { enabled: false } } }));
  }
  return results.flatMap((result) => result.violations)
    .flatMap((rule) => rule.nodes.map((node) => [rule.id, rule.impact, node.html.slice(0, 200)]));
}

/** One element of each combination of colour, background and letters that texts of the page have. */
function samples() {
  const backgrounds = new Map();
  function background(element) {
    if (!element) return "";
    if (!backgrounds.has(element)) {
      const { backgroundColor, backgroundImage, opacity } = getComputedStyle(element);
      const own = backgroundColor === "rgba(0, 0, 0, 0)" ? "" : backgroundColor;
      const through = own.startsWith("rgb(") ? "" : background(element.parentElement);
      backgrounds.set(element, [own, backgroundImage, opacity, through].join());
    }
    return backgrounds.get(element);
  }
  const found = new Map();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !element.checkVisibility({ visibilityProperty: true })) continue;
    const { color, fontSize, fontWeight } = getComputedStyle(element);
    const key = [color, fontSize, fontWeight, background(element)].join();
    if (!found.has(key)) found.set(key, element);
  }
  return [...found.values()];
}
