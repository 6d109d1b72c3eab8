// The chosen query's sum, term by term: a bar for each weight, and what each value adds to every coordinate.
import { h, setStyle, setText, sym } from "./dom.js";
import { fixed } from "./numbers.js";

const TERMS_IN_LINE = 3;
const TERMS_IN_TABLE = 6; // the rest are added up in one row

/** Two decimals; nothing is 0. */
const short = (value) => (Math.abs(value) < 0.005 ? "0" : fixed(value));

/**
 * The sum o = Σ a_j v_j of one row.
 * @param {object} [options]
 * @param {string} [options.panel]  the page contract's name for the table; its cells then carry their values
 * @param {boolean} [options.ranked]  largest weight first, or the keys' own order?
 * @param {boolean} [options.scored]  show each key's score too?
 */
export function weightedSum({ panel, ranked: byWeight = true, scored = false } = {}) {
  const line = h("p", { class: "attn-equation" });
  const head = h("tr");
  const body = h("tbody");
  const foot = h("tfoot");
  const element = h(
    "div",
    { class: "attn-sum attn-rows" },
    line,
    h(
      "div",
      { class: "attn-scroll" },
      h(
        "table",
        { "data-panel": panel },
        h("caption", { class: "attn-sr" }, `The terms of the sum${byWeight ? ", largest weight first" : ""}`),
        h("thead", {}, head),
        body,
        foot,
      ),
    ),
  );
  let rows = []; // of the table, the sum's own row last
  let shape = "";

  function build(count, outputs) {
    head.replaceChildren(
      h("th", { scope: "col" }, "key"),
      ...(scored ? [h("th", { scope: "col" }, "score")] : []),
      h("th", { scope: "col", colspan: 2, class: "attn-weighthead" }, "weight"),
      ...outputs.map((name) => h("th", { scope: "col" }, name)),
    );
    rows = Array.from({ length: count }, () => {
      const bar = h("span");
      const name = h("th", { scope: "row" });
      const numbers = [null, ...outputs].map(() => h("td"));
      const score = scored ? h("td") : null;
      return {
        tr: h("tr", {}, name, score, h("td", { class: "attn-barcell" }, bar), numbers),
        name,
        score,
        bar,
        numbers,
      };
    });
    rows.at(-1).bar.remove();
    body.replaceChildren(...rows.slice(0, -1).map(({ tr }) => tr));
    foot.replaceChildren(rows.at(-1).tr);
  }

  const write = ({ bar, score, numbers }, weight, values, key, points) => {
    setStyle(bar, "inline-size", `${(weight * 100).toFixed(2)}%`);
    [weight, ...values].forEach((value, at) => setText(numbers[at], short(value)));
    if (points !== undefined) setText(score, fixed(points));
    if (!panel) return;
    const shown = [
      ...(points === undefined ? [] : [[score, points]]),
      ...numbers.map((td, at) => [td, [weight, ...values][at]]),
    ];
    shown.forEach(([td, value], col) => Object.assign(td.dataset, { row: key, col, value }));
  };

  return {
    element,
    /**
     * `a` are the m weights of the row, `V` the m×d values, `o` the row's output, `S` the scores; `tokens` name the
     * keys.
     * @param {{
     *   query?: string,
     *   tokens: string[],
     *   a: Float64Array,
     *   V: Float64Array,
     *   o: Float64Array,
     *   outputs: string[],
     *   S?: Float64Array,
     * }} shown
     */
    update({ query = "", tokens, a, V, o, outputs, S }) {
      const d = outputs.length;
      const ranked = Array.from(a, (_, j) => j).sort((i, j) => a[j] - a[i] || i - j);
      const listed = byWeight ? ranked : [...ranked].sort((i, j) => i - j);
      const alone = !byWeight || ranked.length <= TERMS_IN_TABLE + 1 ? ranked.length : TERMS_IN_TABLE;
      const others = listed.slice(alone);
      const needed = `${alone + (others.length ? 1 : 0) + 1} ${outputs}`;
      if (needed !== shape) build(parseInt((shape = needed), 10), outputs);

      const sums = (keys) => Array.from({ length: d }, (_, r) => keys.reduce((sum, j) => sum + a[j] * V[j * d + r], 0));
      const weight = (keys) => keys.reduce((sum, j) => sum + a[j], 0);
      listed.slice(0, alone).forEach((j, rank) => {
        setText(rows[rank].name, tokens[j]);
        write(rows[rank], a[j], sums([j]), j, S?.[j]);
      });
      if (others.length) {
        setText(rows[alone].name, `${others.length} others`);
        write(rows[alone], weight(others), sums(others));
      }
      const total = rows.at(-1);
      if (total.name.textContent !== `o${query}`) total.name.replaceChildren(sym("o", query));
      write(total, weight(ranked), o, "sum");

      const positive = ranked.filter((j) => a[j] > 0);
      const worth = positive.filter((j, rank) => rank < TERMS_IN_LINE && a[j] >= 0.005);
      const terms = worth.flatMap((j, rank) => [rank ? " + " : "", `${fixed(a[j])} `, sym("v", tokens[j])]);
      line.replaceChildren(
        sym("o", query),
        " = ",
        ...(terms.length ? terms : ["0"]),
        positive.length > worth.length ? " + …" : "",
      );
    },
  };
}
