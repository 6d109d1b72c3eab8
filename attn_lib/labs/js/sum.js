// The chosen query's sum, term by term: bars in order of weight, and what each value adds to every coordinate.
import { h, setStyle, setText, sym } from "./dom.js";
import { fixed } from "./numbers.js";

const TERMS_IN_LINE = 3;
const TERMS_IN_TABLE = 6; // the rest are added up in one row

/** Two decimals; nothing is 0. */
const short = (value) => (Math.abs(value) < 0.005 ? "0" : fixed(value));

/** The sum o = Σ a_j v_j of one row. */
export function weightedSum() {
  const line = h("p", { class: "attn-equation" });
  const head = h("tr");
  const body = h("tbody");
  const foot = h("tfoot");
  const element = h(
    "div",
    { class: "attn-sum" },
    line,
    h("div", { class: "attn-scroll" }, h("table", {}, h("caption", { class: "attn-sr" }, "The terms of the sum, largest weight first"), h("thead", {}, head), body, foot)),
  );
  let rows = []; // of the table, the sum's own row last
  let shape = "";

  function build(count, outputs) {
    head.replaceChildren(
      h("th", { scope: "col" }, "key"),
      h("th", { scope: "col", colspan: 2, class: "attn-weighthead" }, "weight"),
      ...outputs.map((name) => h("th", { scope: "col" }, name)),
    );
    rows = Array.from({ length: count }, () => {
      const bar = h("span");
      const name = h("th", { scope: "row" });
      const numbers = [null, ...outputs].map(() => h("td"));
      return { tr: h("tr", {}, name, h("td", { class: "attn-barcell" }, bar), numbers), name, bar, numbers };
    });
    rows.at(-1).bar.remove();
    body.replaceChildren(...rows.slice(0, -1).map(({ tr }) => tr));
    foot.replaceChildren(rows.at(-1).tr);
  }

  const write = ({ bar, numbers }, weight, values) => {
    setStyle(bar, "inline-size", `${(weight * 100).toFixed(2)}%`);
    [weight, ...values].forEach((value, at) => setText(numbers[at], short(value)));
  };

  return {
    element,
    /** `a` are the m weights of the row, `V` the m×d values, `o` the row's output; `tokens` name the keys. */
    update({ query, tokens, a, V, o, outputs }) {
      const d = outputs.length;
      const ranked = Array.from(a, (_, j) => j).sort((i, j) => a[j] - a[i] || i - j);
      const alone = ranked.length <= TERMS_IN_TABLE + 1 ? ranked.length : TERMS_IN_TABLE;
      const others = ranked.slice(alone);
      const needed = `${alone + (others.length ? 1 : 0) + 1} ${outputs}`;
      if (needed !== shape) build(parseInt((shape = needed)), outputs);

      const sums = (keys) => Array.from({ length: d }, (_, r) => keys.reduce((sum, j) => sum + a[j] * V[j * d + r], 0));
      const weight = (keys) => keys.reduce((sum, j) => sum + a[j], 0);
      ranked.slice(0, alone).forEach((j, rank) => {
        setText(rows[rank].name, tokens[j]);
        write(rows[rank], a[j], sums([j]));
      });
      if (others.length) {
        setText(rows[alone].name, `${others.length} others`);
        write(rows[alone], weight(others), sums(others));
      }
      const total = rows.at(-1);
      if (total.name.textContent !== `o${query}`) total.name.replaceChildren(sym("o", query));
      write(total, weight(ranked), o);

      const positive = ranked.filter((j) => a[j] > 0);
      const terms = positive.slice(0, TERMS_IN_LINE).flatMap((j, rank) => [rank ? " + " : "", `${fixed(a[j])} `, sym("v", tokens[j])]);
      line.replaceChildren(sym("o", query), " = ", ...(terms.length ? terms : ["0"]), positive.length > TERMS_IN_LINE ? " + …" : "");
    },
  };
}
