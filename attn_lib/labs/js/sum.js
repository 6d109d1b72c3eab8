// The chosen query's sum, term by term: bars in order of weight, and what each value adds to every coordinate.
import { h, sym } from "./dom.js";
import { fixed } from "./numbers.js";

const TERMS_IN_LINE = 3;
const TERMS_IN_TABLE = 6;

/** Two decimals; nothing is 0. */
const short = (value) => (Math.abs(value) < 0.005 ? "0" : fixed(value));

/** The sum o = Σ a_j v_j of one row. */
export function weightedSum() {
  const line = h("p", { class: "attn-equation" });
  const head = h("tr");
  const body = h("tbody");
  const foot = h("tfoot");
  const table = h("table", {}, h("caption", { class: "attn-sr" }, "The terms of the sum, largest weight first"), h("thead", {}, head), body, foot);
  const element = h("div", { class: "attn-sum" }, line, h("div", { class: "attn-scroll" }, table));

  const row = (name, weight, values, bar) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, name),
      h("td", { class: "attn-barcell" }, bar ? h("span", { style: `inline-size:${(weight * 100).toFixed(2)}%` }) : ""),
      h("td", {}, short(weight)),
      values.map((value) => h("td", {}, short(value))),
    );

  return {
    element,
    /** `a` are the m weights of the row, `V` the m×d values, `o` the row's output; `tokens` name the keys. */
    update({ query, tokens, a, V, o, outputs }) {
      const d = outputs.length;
      const ranked = Array.from(a, (weight, j) => j).sort((i, j) => a[j] - a[i] || i - j);
      const terms = ranked.slice(0, TERMS_IN_LINE).filter((j) => a[j] > 0);
      line.replaceChildren(
        sym("o", query),
        " = ",
        ...(terms.length ? terms.flatMap((j, rank) => [rank ? " + " : "", `${fixed(a[j])} `, sym("v", tokens[j])]) : ["0"]),
        ranked.filter((j) => a[j] > 0).length > terms.length ? " + …" : "",
      );
      head.replaceChildren(
        ...["key", "weight"].map((name, at) => h("th", { scope: "col", colspan: at ? 2 : null, class: at ? "attn-weighthead" : null }, name)),
        ...outputs.map((name) => h("th", { scope: "col" }, name)),
      );
      const term = (j) => Array.from({ length: d }, (_, r) => a[j] * V[j * d + r]);
      const shown = ranked.slice(0, ranked.length <= TERMS_IN_TABLE + 1 ? ranked.length : TERMS_IN_TABLE);
      const others = ranked.slice(shown.length);
      const total = (list, r) => list.reduce((sum, j) => sum + (r < 0 ? a[j] : a[j] * V[j * d + r]), 0);
      body.replaceChildren(...shown.map((j) => row(tokens[j], a[j], term(j), true)));
      if (others.length) body.append(row(`${others.length} others`, total(others, -1), outputs.map((_, r) => total(others, r)), true));
      foot.replaceChildren(row(sym("o", query), total(ranked, -1), Array.from(o), false));
    },
  };
}
