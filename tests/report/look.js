// What can be seen on the page in each frame: its width, pictures that are missing, boxes that stick out, and texts
// whose contrast with their ground is below 4.5 (WCAG 2.1, success criterion 1.4.3).  The answers go to `out`.
const look = (page) => {
  const view = page.defaultView;
  const root = page.documentElement;
  const found = { width: root.scrollWidth, missing: [], outside: [], faint: [], texts: 0 };

  const channel = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = (c) => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
  const numbers = (colour) => colour.match(/[0-9.]+/g).map(Number);
  const shown = (e) => `${e.tagName} ${e.textContent.trim().slice(0, 30)}`;

  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = numbers(view.getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };

  for (const picture of page.querySelectorAll("img, object, svg")) {
    const box = picture.getBoundingClientRect();
    const inner = picture.parentElement.closest("svg") !== null;
    if (!inner && (box.width < 100 || box.height < 60 || !picture.querySelector("path"))) {
      found.missing.push(picture.outerHTML.slice(0, 80));
    }
  }
  for (const e of page.querySelectorAll("body *")) {
    const style = view.getComputedStyle(e);
    const box = e.getBoundingClientRect();
    const head = e.closest("thead"); // on a phone it is there for screen readers only
    if (box.width <= 1 || (head && head.getBoundingClientRect().width <= 1) || e.closest("style, script, defs")) continue;
    if (!e.closest("svg") && (box.right > root.clientWidth + 1 || box.left < -1)) found.outside.push(shown(e));
    if (![...e.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim())) continue;
    const a = luminance(numbers(e.closest("svg") ? style.fill : style.color));
    const b = luminance(ground(e));
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    found.texts += 1;
    if (contrast < 4.5) found.faint.push(`${contrast.toFixed(2)} ${shown(e)}`);
  }
  return found;
};

window.onload = () => {
  const frames = [...document.querySelectorAll("iframe")];
  document.getElementById("out").textContent = JSON.stringify(frames.map((frame) => look(frame.contentDocument)));
};
