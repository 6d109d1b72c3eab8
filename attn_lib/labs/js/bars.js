// A table of named quantities, each with a bar.
import { h, panelTitle, setStyle, setText } from "./dom.js";

/**
 * @param {object} options
 * @param {string} options.panel  the page contract's name
 * @param {string} options.title  the words above it
 * @param {Node[]} [options.formula]
 * @param {[string, string]} options.heads  what the rows are, and what is measured
 */
export function bars({ panel, title, formula = [], heads: [name, quantity] }) {
  const body = h("tbody");
  const head = h(
    "thead",
    {},
    h(
      "tr",
      {},
      h("th", { scope: "col" }, name),
      h("th", { scope: "col", colspan: 2, class: "attn-weighthead" }, quantity),
    ),
  );
  const table = h("table", { "data-panel": panel, "aria-label": title }, head, body);
  const element = h(
    "div",
    { class: `attn-panel attn-rows attn-panel-${panel}` },
    panelTitle(title, h("span", { class: "attn-formula" }, formula)),
    h("div", { class: "attn-scroll" }, table),
  );
  let rows = [];

  function build(count) {
    rows = Array.from({ length: count }, (_, row) => ({
      name: h("th", { scope: "row" }),
      bar: h("span"),
      number: h("td", { "data-row": row, "data-col": 0 }),
    }));
    body.replaceChildren(
      ...rows.map(({ name, bar, number }) => h("tr", {}, name, h("td", { class: "attn-barcell" }, bar), number)),
    );
  }

  return {
    element,
    /** `rows` are {name, value, text}; a bar is full at `most`. */
    update({ rows: next, most }) {
      if (next.length !== rows.length) build(next.length);
      next.forEach(({ name, value, text }, row) => {
        setText(rows[row].name, name);
        setText(rows[row].number, text);
        rows[row].number.dataset.value = value;
        setStyle(rows[row].bar, "inline-size", `${(100 * Math.min(1, most > 0 ? value / most : 0)).toFixed(2)}%`);
      });
    },
  };
}
