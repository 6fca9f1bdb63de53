// Runs inside the page: pairs of texts whose boxes overlap.

export function overlaps() {
  const SLACK = 1.5;
  const selector = "svg text, h1, h2, h3, h4, p, dt, dd, summary, .tabs button, nav a";
  const texts = [];
  for (const element of document.querySelectorAll(selector)) {
    if (element.closest(".tools, #tip, .sr, .skip") || !element.textContent.trim()) continue;
    // A closed <details> still has boxes.
    if (!element.checkVisibility()) continue;
    // The lines of a text, not the block they are set in.
    const range = document.createRange();
    range.selectNodeContents(element);
    const boxes = element.matches("text") ? [element.getBoundingClientRect()] : [...range.getClientRects()];
    for (const box of boxes) {
      if (box.width > 0 && box.height > 0) texts.push({ element, box, text: element.textContent.trim().slice(0, 40) });
    }
  }
  texts.sort((a, b) => a.box.top - b.box.top);
  // A line box is taller than its letters: what counts is whether the middles of two lines meet.
  const trimmed = texts.map(({ element, box, text }) => {
    const spare = box.height * 0.14;
    return { element, text, left: box.left, right: box.right, top: box.top + spare, bottom: box.bottom - spare };
  });
  const pairs = [];
  for (let i = 0; i < trimmed.length; i += 1) {
    const a = trimmed[i];
    for (let j = i + 1; j < trimmed.length; j += 1) {
      const b = trimmed[j];
      if (texts[j].box.top > texts[i].box.bottom) break;
      if (a.element === b.element || a.element.contains(b.element) || b.element.contains(a.element)) continue;
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > SLACK && high > SLACK) pairs.push(`"${a.text}" and "${b.text}" by ${wide.toFixed(1)} × ${high.toFixed(1)}`);
    }
  }
  return { texts: texts.length, pairs };
}
