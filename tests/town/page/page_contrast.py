"""JavaScript that a browser runs to find text with too little contrast."""

# Finds text below 4.5:1 against the nearest painted background, as WCAG 2 counts it.
CONTRAST = """
() => {
  const parse = (css) => (css.match(/[\\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (node) => {
    for (let up = node; up; up = up.parentElement) {
      const [r, g, b, a = 1] = parse(getComputedStyle(up).backgroundColor);
      if (a > 0.99) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const own = (node) => [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
  return [...document.querySelectorAll("body *")]
    .filter((node) => own(node) && node.checkVisibility() && !node.disabled && !node.closest(".unseen, .skip"))
    .map((node) => {
      const [a, b] = [light(parse(getComputedStyle(node).color)), light(ground(node))].sort((x, y) => y - x);
      return [node.className || node.tagName, Math.round(((a + 0.05) / (b + 0.05)) * 10) / 10];
    })
    .filter(([, ratio]) => ratio < 4.5);
}
"""
