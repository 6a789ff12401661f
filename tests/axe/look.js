// Looks at a page with axe. Contrast depends on nothing but colours and letters: one text of each look is enough.
async function look(theme, known, rules) {
  document.documentElement.dataset.theme = document.documentElement.dataset.mode = theme;
  document.head.insertAdjacentHTML("beforeend", "<style>* { transition: none !important; }</style>");
  await settled();
  document.querySelectorAll("[data-sample]").forEach((element) => element.removeAttribute("data-sample"));
  const samples = [...looks()].filter(([key]) => !known.includes(key));
  samples.forEach(([, element]) => element.setAttribute("data-sample", ""));
  axe.configure({ rules: [{ id: "color-contrast", selector: "[data-sample]" }] });
  const options = { resultTypes: ["violations"], iframes: false, preload: false };
  if (rules) options.runOnly = rules;
  const found = rules && !samples.length ? [] : (await axe.run(options)).violations;
  return {
    looks: samples.map(([key]) => key),
    found: found.flatMap((rule) => rule.nodes.map((node) => [rule.id, rule.impact, node.html.slice(0, 200)])),
  };
}

/** The theme takes what does not scroll out of the keyboard's reach, and notices a new width a moment late. */
async function settled() {
  const scrolls = (part) => part.scrollWidth > part.clientWidth || part.scrollHeight > part.clientHeight;
  const late = () => [...document.querySelectorAll(".bd-article [tabindex='-1']")].some(scrolls);
  for (let waits = 0; late() && waits < 100; waits += 1) await new Promise((done) => setTimeout(done, 100));
}

/** One element for each combination of colour, background and letters that texts of the page have. */
function looks() {
  const backgrounds = new Map();
  function background(element) {
    if (!element) return "";
    if (!backgrounds.has(element)) {
      const { backgroundColor, backgroundImage, opacity } = getComputedStyle(element);
      const own = backgroundColor === "rgba(0, 0, 0, 0)" ? "" : backgroundColor;
      const through = own.startsWith("rgb(") && opacity === "1" ? "" : background(element.parentElement);
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
  return found;
}
