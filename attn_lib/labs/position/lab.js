// PositionLab: four ways to tell a layer where its tokens stand; a pair that moves on together; other orders.
import { bars } from "../js/bars.js";
import { chart, theNumbers } from "../js/chart.js";
import { colorLimit } from "../js/colors.js";
import { seed, select, slider } from "../js/controls.js";
import { h, setText, sym } from "../js/dom.js";
import { normals } from "../js/draws.js";
import { defineLab } from "../js/frame.js";
import { fit, heatmap } from "../js/heatmap.js";
import { attentionScores, attentionWeights, causalMask, matmul, takeRows } from "../js/math.js";
import { meters } from "../js/meters.js";
import { fixed } from "../js/numbers.js";
import { addPositions, alibiBias, equivarianceGap, rope, sinusoidalPositions } from "./encodings.js";
import { choice, even, inOrder, permutation, whole } from "../js/settings.js";
import { orderMoves, tokenRow } from "../js/token_row.js";
import { ruler } from "./ruler.js";

const KINDS = [
  ["none", "none"],
  ["learned", "learned table"],
  ["sinusoidal", "sinusoidal table"],
  ["alibi", "ALiBi"],
  ["rope", "RoPE"],
];
const NAMES = {
  none: "no positions",
  learned: "a learned table",
  sinusoidal: "sinusoidal positions",
  alibi: "ALiBi",
  rope: "RoPE",
};
const MASKS = [
  ["none", "none"],
  ["causal", "causal (no future)"],
];
const TOKENS = { fewest: 3, most: 16 };
const WIDEST = 32;
const MAP_WIDTH = 64; // columns of the random scene's W_Q and W_K: the first d are used
const D_V = 4;
const SEEDS = 9999;
const REACH = 12; // the query of the pair stands at this position, its key up to as far to each side
const FARTHEST = 64;
const ROWS = 2 * REACH + FARTHEST + 1; // of the learned table
const SLOPE = 0.5; // of the first of eight heads
const ROUNDING = 1e-9;
const TABLE_PX = 282; // of the gaps, beside the chart

const subscript = (number) => String(number).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);

function settings(state) {
  const n = whole(TOKENS.fewest, TOKENS.most);
  const count = n.clean(state.n);
  return {
    positions: choice(
      KINDS.map(([name]) => name),
      "rope",
    ),
    n,
    d: even(2, WIDEST),
    offset: whole(-REACH, REACH),
    shift: whole(0, FARTHEST),
    query: whole(0, count - 1),
    order: permutation(count),
    mask: choice(MASKS.map(([name]) => name)),
    seed: whole(0, SEEDS),
  };
}

/** Tokens and maps, those of `random_scene`, and the table that is added. */
function drawScene({ positions, n, d, seed: number }) {
  const map = (stream, width) => normals(number, stream, d * width).map((value) => value / Math.sqrt(d));
  const firstColumns = (M) =>
    Float64Array.from({ length: d * d }, (_, at) => M[Math.floor(at / d) * MAP_WIDTH + (at % d)]);
  const tables = { learned: () => normals(number, 4, ROWS * d), sinusoidal: () => sinusoidalPositions(ROWS, d) };
  return {
    n,
    d,
    positions,
    X: normals(number, 0, n * d),
    W_Q: firstColumns(map(1, MAP_WIDTH)),
    W_K: firstColumns(map(2, MAP_WIDTH)),
    W_V: map(3, D_V),
    table: tables[positions]?.() ?? null,
  };
}

const placed = ({ table, d }, X, places) => (table ? addPositions(X, table, d, places) : X);

/** Project tokens that stand at the given places. */
function queriesAndKeys(scene, X, places) {
  const { d, positions, W_Q, W_K } = scene;
  const there = placed(scene, X, places);
  const [Q, K] = [W_Q, W_K].map((W) => matmul(there, W, places.length, d, d));
  return positions === "rope" ? [rope(Q, d, places), rope(K, d, places)] : [Q, K];
}

/** Attend from tokens X (n×d) that stand at positions 0 … n−1. */
function attend(scene, X, mask) {
  const { n, d, positions } = scene;
  const places = inOrder(n);
  const [Q, K] = queriesAndKeys(scene, X, places);
  const bias = positions === "alibi" ? alibiBias(n, n, { slope: SLOPE }) : undefined;
  const S = attentionScores(Q, K, { n, m: n, width: d, bias, mask: mask === "causal" ? causalMask() : undefined });
  const A = attentionWeights(S, n, n);
  return { S, A, O: matmul(A, matmul(placed(scene, X, places), scene.W_V, n, d, D_V), n, n, D_V) };
}

/** Scores of a query at position REACH + shift for the keys around it, all the same token; −∞ where a mask forbids. */
function curve(scene, token, shift, masked) {
  const { d, X, positions } = scene;
  const places = Array.from({ length: 2 * REACH + 1 }, (_, at) => at + shift);
  const [Q, K] = queriesAndKeys(
    scene,
    takeRows(
      X,
      d,
      places.map(() => token),
    ),
    places,
  );
  const bias = positions === "alibi" ? alibiBias(1, places.length, { slope: SLOPE, offset: REACH }) : undefined;
  const mask = masked === "causal" ? causalMask(REACH) : undefined;
  return attentionScores(Q.subarray(REACH * d, (REACH + 1) * d), K, { n: 1, m: places.length, width: d, bias, mask });
}

/** What a position contributes: rows of a table (n×d), or ALiBi's bias (n×n). */
function encodings({ positions, n, d, table }, mask) {
  if (positions === "alibi")
    return {
      values: alibiBias(n, n, { slope: SLOPE }).map((bias, at) =>
        mask === "causal" && at % n > at / n ? -Infinity : bias,
      ),
      m: n,
    };
  if (positions === "rope")
    return {
      values: rope(
        Float64Array.from({ length: n * d }, (_, at) => 1 - (at % 2)),
        d,
      ),
      m: d,
    };
  return { values: table ? table.slice(0, n * d) : new Float64Array(n * d), m: d };
}

/** @type {[string, (order: number[]) => number[]][]} */
const ORDERS = [
  ["reversed", (tokens) => [...tokens].reverse()],
  ["rotated by one", (tokens) => [tokens.at(-1), ...tokens.slice(0, -1)]],
  ["first two swapped", ([first, second, ...rest]) => [second, first, ...rest]],
];

const gapText = (size) => (size < ROUNDING ? "0" : fixed(size));

/** The layer in the present order, and how much it notices that order and others. */
function arrange(scene, { n, d, order, mask }) {
  const still = attend(scene, scene.X, mask).O;
  const gap = (permutation) =>
    equivarianceGap((moved) => attend(scene, moved, mask).O, scene.X, { d, width: D_V, permutation, still });
  return {
    ...attend(scene, takeRows(scene.X, d, order), mask),
    encoded: encodings(scene, mask),
    gaps: [
      ...ORDERS.map(([name, of]) => ({ name, value: gap(of(inOrder(n))) })),
      { name: "the present order", value: gap(order) },
    ],
    norm: Math.hypot(...still),
  };
}

/** A pair's scores against the offset, as it stands and moved on, with axes that hold them. */
function move(scene, { query, shift, mask }) {
  const [before, after] = [0, shift].map((by) =>
    Array.from(curve(scene, query, by, mask), (score, at) => [at - REACH, score]),
  );
  const scores = [...before, ...after].map(([, score]) => score).filter(Number.isFinite);
  const [low, high] = [Math.min(...scores), Math.max(...scores)];
  const margin = Math.max(0.08 * (high - low), 0.5 - (high - low) / 2); // a flat curve gets an axis too
  return {
    before,
    after,
    x: {
      label: ["offset ", { sym: "j" }, " − ", { sym: "i" }],
      domain: [-REACH, REACH],
      text: (value) => fixed(value, 0),
    },
    y: { label: "score", domain: [low - margin, high + margin], text: (value) => fixed(value, 1) },
    uprights: mask === "causal" ? [{ x: 0.5, text: "forbidden by the mask" }] : [],
    series: [
      { name: `query at ${REACH}`, points: before },
      { name: `query at ${REACH + shift}`, kind: "points", points: after },
    ],
  };
}

/** A function that computes anew only if its key is new. */
function remember(compute) {
  let known = null;
  let value = null;
  return (key, ...given) => {
    if (key !== known) [known, value] = [key, compute(...given)];
    return value;
  };
}

/** One sentence that says what the picture shows. */
function describe(score, shifted, gaps, { positions, offset, shift }) {
  const moves = Math.abs(shifted - score) < ROUNDING ? "stays" : `becomes ${fixed(shifted)}`;
  const said =
    score === -Infinity
      ? "forbidden by the mask: the key stands after its query."
      : `${fixed(score)} and ${moves} when both tokens move on by ${shift}.`;
  return (
    `With ${NAMES[positions]} the score at offset ${fixed(offset, 0)} is ${said} ` +
    `The gap is ${gapText(gaps[0].value)} for the reversed order, ${gapText(gaps[1].value)} for the rotated one.`
  );
}

const REASONS = {
  none: "Nothing in the layer knows a position: in any order each token computes what it computed before.",
  learned: "Each position adds a row of its own, so a token that moves becomes another vector.",
  sinusoidal:
    "Each position adds a row of its own, so a token that moves becomes another vector. Its rows are " +
    "waves, but the score also holds products of content and position, and those change with a shift.",
  alibi:
    "The bias sees only the distance |i − j|. Reversal sends i to n−1−i and keeps every distance, so " +
    "the bias matrix is its own reversal and the gap is 0; an order that changes distances is " +
    "noticed.",
  rope:
    "Turning query and key makes their product depend on i − j alone: a shift changes nothing. " +
    "Reversal turns i − j into j − i, and the layer notices.",
};
const MASK = "A causal mask lets a token read only what stands before it, and in another order that is something else.";
/** Why the layer notices an order, or does not. */
const reasonFor = (positions, mask) =>
  mask === "none"
    ? REASONS[positions]
    : positions === "none"
      ? `Nothing is added, and yet the order is noticed. ${MASK}`
      : positions === "alibi"
        ? `The bias sees only the distance |i − j| and would miss a reversal; the mask does not. ${MASK}`
        : `${REASONS[positions]} ${MASK}`;

const FORMULAS = {
  none: () => ["nothing is added"],
  learned: () => ["row ", sym("p", "i"), " added to the token at ", sym("i")],
  sinusoidal: () => ["row ", sym("p", "i"), " added to the token at ", sym("i")],
  alibi: () => ["−½|", sym("i"), " − ", sym("j"), "| added to the scores"],
  rope: () => ["cos, sin of each pair’s turn"],
};

function build({ signal, set, state }) {
  const sceneOf = remember(drawScene);
  const arranged = remember(arrange);
  const moved = remember(move);
  let result = null;
  let drawn = "";

  const tokens = tokenRow({
    signal,
    onQuery: (query) => set({ query }),
    onOrder: (order) => set({ order }),
    now: () => state().order,
  });
  const moves = orderMoves({ signal, order: () => state().order, onOrder: (order) => set({ order }) });
  const toNumber = (name) => (value) => set({ [name]: value });
  const controls = {
    positions: select({ control: "positions", label: "positions", signal, onInput: toNumber("positions") }),
    mask: select({ control: "mask", label: "mask", signal, onInput: toNumber("mask") }),
    n: slider({
      control: "n",
      label: ["tokens ", sym("n")],
      min: TOKENS.fewest,
      max: TOKENS.most,
      text: String,
      signal,
      onInput: (n) => set({ n, order: inOrder(n), query: Math.min(state().query, n - 1) }),
    }),
    d: slider({
      control: "d",
      label: ["width ", sym("d")],
      min: 2,
      max: WIDEST,
      step: 2,
      text: String,
      signal,
      onInput: toNumber("d"),
    }),
    offset: slider({
      control: "offset",
      label: ["offset ", sym("j"), " − ", sym("i")],
      min: -REACH,
      max: REACH,
      text: (value) => fixed(value, 0),
      signal,
      onInput: toNumber("offset"),
    }),
    shift: slider({
      control: "shift",
      label: ["shift both by ", sym("s")],
      min: 0,
      max: FARTHEST,
      text: String,
      signal,
      onInput: toNumber("shift"),
    }),
    seed: seed({ label: "seed", most: SEEDS, signal, onInput: toNumber("seed") }),
    moves,
  };
  const limited = (value, low, high) => Math.min(high, Math.max(low, value));
  const line = ruler({
    last: REACH + FARTHEST + REACH,
    query: REACH,
    onOffset: (offset) => set({ offset: limited(offset, -REACH, REACH) }),
    onShift: (shift) => set({ shift: limited(shift, 0, FARTHEST) }),
    signal,
  });

  const readout = h("p", { class: "attn-readout" });
  const names = () => state().order.map((token) => `x${subscript(token + 1)}`);
  const read = (say) => (row, col) =>
    setText(
      readout,
      row < 0 || !result ? "Point at a cell, or move to it with the arrow keys, to read its numbers." : say(row, col),
    );
  const forbidden = (value) => (value === -Infinity ? "forbidden by the mask" : fixed(value, 3));
  const onRow = (row) => set({ query: state().order[row] });
  const panels = {
    encodings: heatmap({
      panel: "encodings",
      kind: "scores",
      title: "Positions",
      unit: "entry",
      rowUnit: "place",
      signal,
      onRow,
      onCell: read(
        (row, col) =>
          `position ${row}, ${state().positions === "alibi" ? "key at position" : "coordinate"} ` +
          `${state().positions === "alibi" ? col : col + 1}: ` +
          `${forbidden(result.encoded.values[row * result.encoded.m + col])}`,
      ),
    }),
    weights: heatmap({
      panel: "weights",
      kind: "weights",
      title: "Weights",
      unit: "key",
      signal,
      onRow,
      onCell: read(
        (row, col) =>
          `${names()[row]} → ${names()[col]}: score ` +
          `${forbidden(result.S[row * names().length + col])}, weight ` +
          `${fixed(result.A[row * names().length + col], 3)}`,
      ),
    }),
    output: heatmap({
      panel: "output",
      kind: "scores",
      title: "Outputs",
      unit: "coordinate",
      signal,
      onRow,
      onCell: read(
        (row, col) => `output of ${names()[row]}, coordinate ${col + 1}: ${fixed(result.O[row * D_V + col], 3)}`,
      ),
    }),
  };
  const flow = h(
    "div",
    { class: "attn-flow" },
    Object.values(panels).map(({ element }) => element),
  );
  const curves = chart({
    panel: "offsets",
    title: "Score against offset",
    height: 240,
    onDrag: (offset) => set({ offset: Math.round(offset) }),
    signal,
  });
  const noticed = bars({
    panel: "gaps",
    title: "What the layer notices",
    formula: ["‖Attention(", sym("PX"), ") − ", sym("P"), " Attention(", sym("X"), ")‖"],
    heads: ["order", "gap"],
  });
  const pair = h("div", { class: "attn-pair" }, curves.element, noticed.element);
  const numbers = theNumbers([curves], signal);
  const meter = meters();
  const reason = h("p", { class: "attn-note" });
  noticed.element.append(reason);
  read(() => "")(-1, -1);

  return {
    controls,
    panels: {
      ruler: line.element,
      offsets: pair,
      layer: h("div", { class: "attn-answer" }, tokens.element, flow),
      spread: meter.element,
    },
    after: [numbers],
    readout,
    draw(now, { theme, width }) {
      const { n, positions, offset, shift, order, query } = now;
      const key = [positions, n, now.d, now.seed].join();
      const scene = sceneOf(key, now);
      result = arranged(`${key} ${now.mask} ${order}`, scene, now);
      const pair = moved(`${key} ${query} ${shift} ${now.mask}`, scene, now);
      const [score, shifted] = [pair.before, pair.after].map((points) => points[REACH + offset][1]);
      const sentence = describe(score, shifted, result.gaps, now);

      tokens.update({ tokens: inOrder(n).map((token) => `x${subscript(token + 1)}`), order, query });
      controls.positions.update(positions, KINDS);
      controls.mask.update(now.mask, MASKS);
      for (const name of ["n", "d", "offset", "shift"]) controls[name].update(now[name]);
      controls.seed.update(now.seed, true);
      const look = [key, now.mask, order, query, theme, width].join(" ");
      if (look !== drawn) drawLayer(now, { theme, width });
      drawn = look;
      curves.update({
        x: pair.x,
        y: pair.y,
        series: pair.series,
        uprights: pair.uprights,
        at: offset,
        width: width >= TABLE_PX + 300 ? width - TABLE_PX : width,
        sentence,
      });
      line.update({ width, offset, shift, score, shifted, sentence });
      const change = shifted - score;
      meter.update({
        [`score of query ${REACH}, key ${REACH + offset}:`]: forbidden(score),
        [`of query ${REACH + shift}, key ${REACH + offset + shift}:`]: forbidden(shifted),
        change: score === -Infinity ? "none" : Math.abs(change) < ROUNDING ? "0" : fixed(change, 3),
      });
      return sentence;
    },
  };

  /** The three heatmaps and the gaps. */
  function drawLayer({ n, positions, order, query, mask }, { theme, width }) {
    const { encoded, S, A, O, gaps, norm } = result;
    const labels = names();
    const rows = labels.map((name, place) => `${place} · ${name}`);
    const numbered = (count, from = 1) => Array.from({ length: count }, (_, at) => String(at + from));
    const columns = {
      encodings: numbered(encoded.m, positions === "alibi" ? 0 : 1),
      weights: labels,
      output: numbered(D_V),
    };
    const cell = fit(flow, { width, rows, panels: Object.values(columns) });
    const shared = { n, theme, cell, rows, rowIds: order, current: order.indexOf(query) };
    const hidden = (values) => (mask === "none" ? undefined : Array.from(values, (value) => value === -Infinity));
    panels.encodings.update({
      ...shared,
      m: encoded.m,
      rowIds: inOrder(n),
      cols: columns.encodings,
      colIds: columns.encodings,
      values: encoded.values,
      limit: colorLimit(encoded.values),
      forbidden: hidden(encoded.values),
      sentence: "What each position contributes",
      formulaKey: positions,
      formula: FORMULAS[positions],
    });
    panels.weights.update({
      ...shared,
      m: n,
      cols: labels,
      colIds: order,
      values: A,
      forbidden: hidden(S),
      sentence: "Weights of every query (row) for every key (column)",
      formula: () => [sym("A"), " = softmax of each row"],
    });
    panels.output.update({
      ...shared,
      m: D_V,
      cols: columns.output,
      colIds: columns.output,
      values: O,
      limit: colorLimit(O),
      sentence: "Output of every query (row), coordinate by coordinate",
      formula: () => [sym("O"), " = ", sym("A"), sym("V")],
    });
    noticed.update({
      rows: gaps.map((gap) => ({ ...gap, text: gapText(gap.value) })),
      most: Math.max(norm, ...gaps.map(({ value }) => value)),
    });
    setText(reason, reasonFor(positions, mask));
  }
}

/**
 * Whether the pair's score survives a shift by five.
 * @returns {Record<string, import("../js/ask.js").Ask>}
 */
const asks = () => {
  const by = 5;
  return {
    shift: {
      question: (state) => [
        `With ${NAMES[state.positions]}: move query and key on by ${by}, together. Will their score change?`,
      ],
      control: {
        kind: "choice",
        choices: () => [
          [true, "it changes"],
          [false, "it stays"],
        ],
      },
      truth(state) {
        const { before, after } = move(drawScene(state), { ...state, shift: by });
        return Math.abs(after[REACH + state.offset][1] - before[REACH + state.offset][1]) > ROUNDING;
      },
      words: (guess, truth) => `${guess === truth ? "Yes, it" : "It"} ${truth ? "changes" : "stays"}.`,
      then: () => ({ shift: by }),
    },
  };
};

export default defineLab({ settings, build, asks });
