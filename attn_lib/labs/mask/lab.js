// MaskLab: which keys each query may look at, painted cell by cell, and what becomes of its weights.
import { checkbox, seed, select, slider } from "../js/controls.js";
import { h, setText, sym } from "../js/dom.js";
import { normals } from "../js/draws.js";
import { defineLab } from "../js/frame.js";
import { fit, heatmap } from "../js/heatmap.js";
import { attentionWeights, causalMask, matmul, prefixMask, windowMask } from "../js/math.js";
import { fixed } from "../js/numbers.js";
import { choice, flag, inOrder, tuples, whole } from "../js/settings.js";
import { shares } from "./shares.js";

const LARGEST = 12;
const SEEDS = 9999;
const SCORES_END = 4;
const CELL_PX = 32;
const NARROW_PANEL_PX = 44;
const WIDE_PX = 620; // the row's bars stand beside the map
const MASKS = [
  ["causal", "causal"],
  ["window", "causal, in a window"],
  ["prefix", "causal after a prefix"],
  ["none", "none"],
];
const SCORES = [
  ["equal", "all equal"],
  ["random", "drawn at random"],
];

const settings = () => ({
  mask: choice(MASKS.map(([name]) => name)),
  n: whole(1, LARGEST),
  m: whole(1, LARGEST),
  offset: whole(-LARGEST, LARGEST),
  window: whole(1, LARGEST),
  prefix: whole(0, LARGEST),
  length: whole(0, LARGEST),
  scores_are: choice(SCORES.map(([name]) => name)),
  inverted: flag,
  painted: tuples(2, ([i, j]) => i < LARGEST && j < LARGEST, "query,key of each painted cell"),
  query: whole(0, LARGEST - 1),
  seed: whole(0, SEEDS),
});

/** May query i look at key j? */
function keeper(state) {
  const rule = {
    causal: () => causalMask(state.offset),
    window: () => windowMask(state.window, state.offset),
    prefix: () => prefixMask(state.prefix, state.offset),
    none: () => () => true,
  }[state.mask]();
  const painted = new Set(state.painted.map(String));
  return (i, j) => ((rule(i, j) && j < state.length) !== painted.has(`${i},${j}`)) !== state.inverted;
}

function attend(state) {
  const { n, m } = state;
  const drawn = normals(state.seed, 0, LARGEST * LARGEST);
  const keep = keeper(state);
  const S = Float64Array.from({ length: n * m }, (_, at) => {
    const [i, j] = [Math.floor(at / m), at % m];
    return keep(i, j) ? (state.scores_are === "random" ? drawn[i * LARGEST + j] : 0) : -Infinity;
  });
  const A = attentionWeights(S, n, m);
  const allowed = inOrder(n).map((i) =>
    S.subarray(i * m, i * m + m).reduce((sum, score) => sum + Number(score > -Infinity), 0),
  );
  return {
    n,
    m,
    S,
    A,
    O: matmul(
      A,
      Float64Array.from({ length: m }, (_, j) => j + 1),
      n,
      m,
      1,
    ),
    allowed,
    row: Math.min(state.query, n - 1),
  };
}

function describe({ n, m, allowed, row }) {
  const empty = allowed.filter((count) => count === 0).length;
  return (
    `${allowed.reduce((sum, count) => sum + count, 0)} of ${n * m} pairs are allowed. Query ${row + 1} ` +
    `may look at ${allowed[row]} of ${m} ` +
    `keys.${empty ? ` ${empty} without any key: zero weights, zero output.` : ""}`
  );
}

function build({ signal, set, state: now }) {
  const number = (control, label, min, max) =>
    slider({
      control,
      label,
      min,
      max,
      text: (value) => String(value).replace("-", "−"),
      signal,
      onInput: (value) => set({ [control]: value }),
    });
  const controls = {
    mask: select({ control: "mask", label: "mask", signal, onInput: (mask) => set({ mask, painted: [] }) }),
    scores_are: select({
      control: "scores_are",
      label: "scores",
      signal,
      onInput: (scores_are) => set({ scores_are }),
    }),
    n: number("n", ["queries ", sym("n")], 1, LARGEST),
    m: number("m", ["keys ", sym("m")], 1, LARGEST),
    offset: number("offset", "offset", -LARGEST, LARGEST),
    window: number("window", "window", 1, LARGEST),
    prefix: number("prefix", "prefix", 0, LARGEST),
    length: number("length", "true length", 0, LARGEST),
    query: select({
      control: "query",
      label: "chosen query",
      signal,
      onInput: (query) => set({ query: Number(query) }),
    }),
    inverted: checkbox({
      control: "inverted",
      label: "read the mask the wrong way round",
      signal,
      onInput: (inverted) => set({ inverted }),
    }),
    seed: seed({ label: "seed", most: SEEDS, signal, onInput: (value) => set({ seed: value }) }),
  };
  const readout = h("p", { class: "attn-readout" });
  let result = null;
  let pointed = [-1, -1];
  const onCell = (i, j) => {
    pointed = [i, j];
    if (i < 0 || !result)
      return setText(
        readout,
        "Press a cell to forbid it, or to allow it again; pull to paint several. A row’s number chooses it.",
      );
    const score = result.S[i * result.m + j];
    const pair = `query ${i + 1} → key ${j + 1}`;
    setText(
      readout,
      score === -Infinity
        ? `${pair}: forbidden`
        : `${pair}: score ${fixed(score)}, weight ${fixed(result.A[i * result.m + j], 3)}`,
    );
  };
  const onOutput = (i) =>
    i < 0
      ? onCell(-1, -1)
      : setText(
          readout,
          `query ${i + 1} reads ${result.allowed[i]} keys; their average place is ${fixed(result.O[i], 3)}`,
        );
  const onRow = (query) => set({ query });
  let brush = false; // what a pressed pointer makes of the cells it comes over
  const onPaint = (i, j, first) => {
    const { painted, ...rest } = now();
    const allowed = (cells) => keeper({ ...rest, painted: cells })(i, j);
    if (first) brush = !allowed(painted);
    const others = painted.filter(([row, col]) => row !== i || col !== j);
    const flipped = others.length === painted.length ? [...painted, [i, j]] : others;
    set({ query: i, painted: allowed(painted) === brush ? painted : flipped });
  };
  const panels = {
    scores: heatmap({ panel: "scores", kind: "scores", title: "Scores", digits: 1, onCell, onRow, signal }),
    weights: heatmap({ panel: "weights", kind: "weights", title: "Weights", onCell, onRow, onPaint, signal }),
    allowed: heatmap({
      panel: "allowed",
      kind: "weights",
      title: "Allowed",
      unit: "count",
      digits: 0,
      onCell: onOutput,
      onRow,
      signal,
    }),
    output: heatmap({
      panel: "output",
      kind: "outputs",
      title: "Outputs",
      unit: "coordinate",
      digits: 1,
      onCell: onOutput,
      onRow,
      signal,
    }),
  };
  const flow = h(
    "div",
    { class: "attn-flow" },
    ["weights", "allowed", "output"].map((name) => panels[name].element),
  );
  const scores = h("div", { class: "attn-flow" }, panels.scores.element);
  const row = shares();
  const painting = h("div", { class: "attn-painting attn-answer" }, flow, row.element);
  onCell(-1, -1);

  return {
    controls,
    panels: { painting, scores },
    readout,
    draw(state, { theme, width }) {
      result = attend(state);
      const { n, m, S, A, O, allowed, row: chosen } = result;
      controls.mask.update(state.mask, MASKS);
      controls.scores_are.update(state.scores_are, SCORES);
      controls.n.update(n);
      controls.m.update(m);
      controls.offset.update(state.offset, { off: state.mask === "none" && "Used by the causal masks." });
      controls.window.update(state.window, { off: state.mask !== "window" && "Used by the mask with a window." });
      controls.prefix.update(state.prefix, { off: state.mask !== "prefix" && "Used by the mask with a prefix." });
      controls.length.update(Math.min(state.length, LARGEST));
      controls.query.update(
        chosen,
        inOrder(n).map((i) => [i, `query ${i + 1}`]),
      );
      controls.inverted.update(state.inverted);
      controls.seed.update(state.seed, state.scores_are === "random");

      const rows = inOrder(n).map((i) => String(i + 1));
      const cols = inOrder(m).map((j) => String(j + 1));
      const room = width >= WIDE_PX ? Math.round(0.56 * width) : width;
      const cell = fit(flow, {
        width: room,
        rows,
        panels: [cols, ["keys"], ["place"]],
        most: CELL_PX,
        spread: false,
        digits: width >= WIDE_PX || m <= 6,
        panel: width >= WIDE_PX ? undefined : NARROW_PANEL_PX,
      });
      fit(scores, { width: room, rows, panels: [cols], most: CELL_PX });
      const shared = { n, theme, cell, rows, rowIds: rows, current: chosen };
      const byKey = { ...shared, m, cols, colIds: cols, forbidden: Array.from(S, (score) => score === -Infinity) };
      const sentence = describe(result);
      panels.scores.update({
        ...byKey,
        values: S,
        limit: SCORES_END,
        sentence: "Scores of every query (row) with every key (column)",
        formula: () => ["−∞ where forbidden"],
      });
      panels.weights.update({ ...byKey, values: A, sentence, formula: () => ["softmax of each row"] });
      panels.allowed.update({
        ...shared,
        m: 1,
        cols: ["keys"],
        colIds: [0],
        values: Float64Array.from(allowed),
        limit: m,
        sentence: "Keys that each query may look at",
        formula: () => ["in the row"],
      });
      panels.output.update({
        ...shared,
        m: 1,
        cols: ["place"],
        colIds: [0],
        values: O,
        limit: m,
        sentence: "Average place of the keys that each query read",
        formula: () => ["of 1 … m"],
      });
      if (pointed[0] < n && pointed[1] < m) onCell(...pointed);
      row.update({
        width: width >= WIDE_PX ? width - room - 60 : width,
        query: chosen,
        a: A.subarray(chosen * m, chosen * m + m),
        allowed: inOrder(m).map((j) => S[chosen * m + j] > -Infinity),
        sentence: `Weights of query ${chosen + 1}, key by key.`,
      });
      return sentence;
    },
  };
}

/** @returns {Record<string, import("../js/ask.js").Ask>} */
const asks = () => ({
  count: {
    question: ({ n, m }) => [`Causal, ${n} queries and ${m} keys: how many of the ${n * m} pairs will be allowed?`],
    control: { kind: "slider", min: 0, max: 36, step: 1, text: String },
    truth: (state) => attend(state).allowed.reduce((sum, count) => sum + count, 0),
    words: (guess, truth) => (guess === truth ? `Yes, ${truth}.` : `You said ${guess}; it is ${truth}.`),
  },
});

export default defineLab({ settings, build, asks });
