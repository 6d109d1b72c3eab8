// Elements without innerHTML: every string becomes a text node or an attribute value, never markup.

/** Make `<tag>` with attributes (true = present, false/null = absent) and children. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
  element.append(...children.flat().filter((child) => child != null));
  return element;
}

/** A button that looks like text. */
export const textButton = (action, ...words) =>
  h("button", { type: "button", class: "attn-text", "data-action": action }, words);

/** What a phone shows only when asked: a button with `words` stands there until then. */
export function onDemand(words, signal, ...content) {
  const button = h(
    "button",
    { type: "button", class: "attn-text attn-opener", "data-action": "matrices", "aria-expanded": "false" },
    words,
  );
  const element = h("div", { class: "attn-ondemand" }, button, content);
  button.addEventListener(
    "click",
    () => button.setAttribute("aria-expanded", String(element.classList.toggle("attn-open"))),
    { signal },
  );
  return element;
}

/** What stands above a panel: its title, and a quieter line. */
export const panelTitle = (title, line, size = "") =>
  h("div", { class: `attn-panel-title ${size}` }, h("b", {}, title), line);

/** Make an SVG element; attributes that are null are left out. */
export function s(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) if (value != null) element.setAttribute(name, value);
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

/**
 * Let `parent` show `nodes`, keeping the children that are there and changing only what differs: cheaper to lay out
 * than new ones.
 */
export function patch(parent, nodes) {
  const old = [...parent.childNodes];
  old.slice(nodes.length).forEach((child) => child.remove());
  nodes.forEach((next, at) => {
    const child = old[at];
    if (!child) return parent.append(next);
    if (child.nodeName !== next.nodeName) return child.replaceWith(next);
    if (child.nodeType === Node.TEXT_NODE) {
      if (child.data !== next.data) child.data = next.data;
      return;
    }
    for (const { name } of [...child.attributes]) if (!next.hasAttribute(name)) child.removeAttribute(name);
    for (const { name, value } of next.attributes)
      if (child.getAttribute(name) !== value) child.setAttribute(name, value);
    patch(child, [...next.childNodes]);
  });
}

/** A symbol in the book's maths type: sym("d", "k") is d with the subscript k. */
export const sym = (letter, sub) => h("i", { class: "attn-sym" }, letter, sub && h("sub", {}, sub));

/** Replace an element's text if it differs, without touching the page otherwise. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Set a style property (or --variable) if it differs. */
export function setStyle(element, property, value) {
  if (element.style.getPropertyValue(property) !== String(value)) element.style.setProperty(property, value);
}

/** Does the reader ask for less motion? */
export const stillness = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Remember where elements stand; the returned function lets each glide from there to its new place. */
export function glide(elements, duration) {
  if (stillness()) return () => {};
  const before = new Map(elements.map((element) => [element, element.getBoundingClientRect()]));
  return () => {
    for (const [element, from] of before) {
      const to = element.getBoundingClientRect();
      const dx = from.left - to.left;
      const dy = from.top - to.top;
      if (dx || dy)
        element.animate([{ transform: `translate(${dx}px, ${dy}px)` }, { transform: "none" }], {
          duration,
          easing: "ease-in-out",
        });
    }
  };
}

/** The labs' typeface, as in labs.css, for what is drawn or measured on a canvas. */
export const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';

const ruler = document.createElement("canvas").getContext("2d");
const measured = new Map();

/** Width in px of the widest of some labels of a heatmap, in bold, as the chosen query's is. */
export function textWidth(labels) {
  ruler.font = `600 12.5px ${FONT}`;
  for (const label of labels) if (!measured.has(label)) measured.set(label, ruler.measureText(label).width);
  return Math.max(...labels.map((label) => measured.get(label)));
}

/** The typeface of the words that are read. */
const TEXT_FONT = 'charter, "Sitka Text", cambria, Georgia, serif';
const ems = new Map();

/** Width of a word in em, in the typeface of the words that are read. */
export function wordWidth(word) {
  if (!ems.has(word)) {
    ruler.font = `100px ${TEXT_FONT}`;
    ems.set(word, ruler.measureText(word).width / 100);
  }
  return ems.get(word);
}
