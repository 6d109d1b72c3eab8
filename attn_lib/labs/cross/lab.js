// CrossLab: a reader's tokens below, a source's above, ribbons between them; scores, weights and outputs on demand.
import { checkbox, select, temperature } from "../js/controls.js";
import { h, onDemand, s, setText, sym } from "../js/dom.js";
import { colorLimit } from "../js/colors.js";
import { defineLab } from "../js/frame.js";
import { fit, heatmap } from "../js/heatmap.js";
import { attentionScores, attentionWeights, matmul, takeRows } from "../js/math.js";
import { fixed } from "../js/numbers.js";
import { flag, inOrder, permutation, real, whole } from "../js/settings.js";
import { orderMoves, tokenRow } from "../js/token_row.js";
import { drawRibbons, HIGH_PX } from "./ribbons.js";

const TEMPERATURES = { low: 0.01, high: 100 };
const SCORES_END = 4;
const CELL_PX = 28;

const textsOf = (model) => {
  const { reader, source, outputs, Q, K, V } = model.get("texts");
  const [q, k, v] = [Q, K, V].map((rows) => Float64Array.from(rows.flat()));
  return { reader, source, outputs, Q: q, K: k, V: v, n: reader.length, m: source.length, width: Q[0].length };
};

const settings = (_, model) => {
  const { reader, source } = model.get("texts");
  return {
    query: whole(0, reader.length - 1),
    order: permutation(source.length),
    temperature: real(TEMPERATURES.low, TEMPERATURES.high),
    alone: flag,
  };
};

/** Scores, weights and outputs of a state, the source in its present order. */
function read({ Q, K, V, n, m, width, outputs, source }, state) {
  const S = attentionScores(Q, takeRows(K, width, state.order), { n, m, width });
  const A = attentionWeights(S, n, m, state.temperature);
  const d_v = outputs.length;
  return {
    S,
    A,
    O: matmul(A, takeRows(V, d_v, state.order), n, m, d_v),
    words: state.order.map((token) => source[token]),
  };
}

/** The place of the source's token that a row reads most. */
const mostRead = (A, row, m) => {
  const weights = A.subarray(row * m, row * m + m);
  return weights.indexOf(Math.max(...weights));
};

function describe({ A, O, words }, { reader, outputs, m }, query) {
  const best = mostRead(A, query, m);
  const got = outputs.map((name, r) => `${fixed(O[query * outputs.length + r])} ${name}`).join(", ");
  return [
    h("em", { class: "attn-c-query" }, reader[query]),
    " reads ",
    h("em", { class: "attn-c-key" }, words[best]),
    ` most (weight ${fixed(A[query * m + best])}) and gets `,
    h("span", { class: "attn-c-output" }, got),
    ".",
  ];
}

function build({ model, signal, set, state }) {
  const texts = textsOf(model);
  const { reader, n, m, outputs } = texts;
  let result = null;
  let lit = -1;

  const source = tokenRow({
    signal,
    onQuery: (token) => light(state().order.indexOf(token)),
    onOrder: (order) => set({ order }),
    onDrag: () => draw(state()),
    now: () => state().order,
  });
  source.element.setAttribute("aria-label", "The source’s tokens in order");
  const moves = orderMoves({ signal, order: () => state().order, onOrder: (order) => set({ order }) });
  const controls = {
    query: select({
      control: "query",
      label: "reader’s token",
      signal,
      onInput: (query) => set({ query: Number(query) }),
    }),
    temperature: temperature({ ...TEMPERATURES, signal, onInput: (value) => set({ temperature: value }) }),
    alone: checkbox({ control: "alone", label: "its ribbons only", signal, onInput: (alone) => set({ alone }) }),
    moves,
  };
  const askers = reader.map((word, i) =>
    h("button", { type: "button", class: "attn-chip", "data-query": i, "data-reader": i }, word),
  );
  const shares = h("div", { class: "attn-shares", "aria-hidden": "true" });
  const layer = s("g");
  const picture = s("svg", { class: "attn-arcs", height: HIGH_PX, "aria-hidden": "true" }, layer);
  const answers = h("div", { class: "attn-gets", "aria-hidden": "true" });
  const crossing = h(
    "div",
    { class: "attn-reading attn-crossing" },
    h("div", { class: "attn-side" }, "source"),
    source.element,
    h("div", { class: "attn-answer" }, shares, picture),
    h("div", { class: "attn-side" }, "reader"),
    h("div", { class: "attn-askers" }, askers),
    h("div", { class: "attn-answer" }, answers),
  );
  crossing.addEventListener(
    "click",
    ({ target }) => {
      const asker = target instanceof Element && target.closest("[data-reader]");
      if (asker) set({ query: Number(asker.getAttribute("data-reader")) });
    },
    { signal },
  );
  const readout = h("p", { class: "attn-readout" });
  const onCell = (row, col) => {
    light(row === state().query ? col : -1);
    setText(
      readout,
      row < 0 || !result
        ? "Choose a reader’s word. Drag a source’s word: what is read does not depend on the order."
        : `${reader[row]} → ${result.words[col]}: score ${fixed(result.S[row * m + col])}, weight ${fixed(result.A[row * m + col], 3)}`,
    );
  };
  const onRow = (query) => set({ query });
  const maps = {
    scores: heatmap({
      panel: "scores",
      kind: "scores",
      title: "Scores",
      rowUnit: "reader",
      unit: "source",
      digits: 1,
      onCell,
      onRow,
      signal,
    }),
    weights: heatmap({
      panel: "weights",
      kind: "weights",
      title: "Weights",
      rowUnit: "reader",
      unit: "source",
      arrow: "softmax",
      onCell,
      onRow,
      signal,
    }),
    output: heatmap({
      panel: "output",
      kind: "outputs",
      title: "Outputs",
      rowUnit: "reader",
      unit: "coordinate",
      corner: "coord.",
      arrow: "× V",
      digits: 1,
      onRow,
      signal,
    }),
  };
  const flow = h(
    "div",
    { class: "attn-flow attn-lines attn-answer" },
    Object.values(maps).map(({ element }) => element),
  );

  /** Let one source word's ribbon stand out. */
  function light(place) {
    lit = place;
    if (result) draw(state());
  }

  function draw(now) {
    const above = source.centers();
    const below = askers.map((asker) => asker.offsetLeft + asker.offsetWidth / 2);
    drawRibbons({ layer, above, below, A: result.A, chosen: now.query, alone: now.alone, lit });
    const at = (x, text, name) => h("span", { class: name, style: `inset-inline-start:${x.toFixed(1)}px` }, text);
    shares.replaceChildren(...above.map((x, j) => at(x, fixed(result.A[now.query * m + j]).replace("0.", "."), null)));
    const got = (i) => outputs.map((name, r) => `${fixed(result.O[i * outputs.length + r], 1)} ${name}`).join(", ");
    answers.replaceChildren(...below.map((x, i) => at(x, got(i), i === now.query ? "attn-chosen" : null)));
  }

  onCell(-1, -1);
  return {
    controls,
    panels: { ribbons: crossing, matrices: onDemand("Scores, weights, outputs", signal, flow) },
    readout,
    draw(now, { theme, width }) {
      result = read(texts, now);
      controls.query.update(
        now.query,
        reader.map((word, i) => [i, word]),
      );
      controls.temperature.update(now.temperature);
      controls.alone.update(now.alone);
      source.update({ tokens: texts.source, order: now.order, query: lit < 0 ? -1 : now.order[lit] });
      askers.forEach((asker, i) => asker.setAttribute("aria-pressed", String(i === now.query)));
      draw(now);
      const sentence = describe(result, texts, now.query);
      const spoken = sentence.map((part) => (typeof part === "string" ? part : part.textContent)).join("");
      const cell = fit(flow, { width, rows: reader, panels: [result.words, result.words, outputs], most: CELL_PX });
      const shared = { n, theme, cell, rows: reader, rowIds: inOrder(n), current: now.query };
      const byKey = { ...shared, m, cols: result.words, colIds: now.order };
      maps.scores.update({
        ...byKey,
        values: result.S,
        limit: SCORES_END,
        sentence: "Scores of every reader (row) with every source (column)",
        formula: () => [sym("S")],
      });
      maps.weights.update({ ...byKey, values: result.A, sentence: `Weights. ${spoken}`, formula: () => [sym("A")] });
      maps.output.update({
        ...shared,
        m: outputs.length,
        cols: outputs,
        colIds: outputs,
        values: result.O,
        limit: Math.max(0.5, colorLimit(texts.V)),
        sentence: "Output of every reader",
        formula: () => [sym("O")],
      });
      return sentence;
    },
  };
}

/**
 * @param {import("../js/store.js").Model} model
 * @returns {Record<string, import("../js/ask.js").Ask>}
 */
const asks = (model) => {
  const texts = textsOf(model);
  const word = (state) => h("em", { class: "attn-c-query" }, texts.reader[state.query]);
  return {
    most: {
      question: (state) => ["Which of the source’s words will ", word(state), " read most?"],
      control: { kind: "choice", choices: (state) => state.order.map((token) => [token, texts.source[token]]) },
      truth: (state) => state.order[mostRead(read(texts, state).A, state.query, texts.m)],
      words: (guess, truth) =>
        guess === truth
          ? `Yes, ${texts.source[truth]}.`
          : `You said ${texts.source[guess]}; it is ${texts.source[truth]}.`,
    },
    moved: {
      question: (state) => ["Turn the source round. Will what ", word(state), " gets change?"],
      control: {
        kind: "choice",
        choices: () => [
          [true, "it changes"],
          [false, "it stays"],
        ],
      },
      truth(state) {
        const [before, after] = [state.order, [...state.order].reverse()].map(
          (order) => read(texts, { ...state, order }).O,
        );
        return before.some((value, at) => Math.abs(value - after[at]) > 1e-9);
      },
      words: (guess, truth) => `${guess === truth ? "Yes, it" : "It"} ${truth ? "changes" : "stays"}.`,
      then: (state) => ({ order: [...state.order].reverse() }),
    },
  };
};

export default defineLab({ settings, build, asks });
