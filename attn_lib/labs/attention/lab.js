// AttentionLab: who reads whom, as arcs; scores → weights → outputs; one pair coordinate by coordinate; the chosen
// query's sum written out.
import { arcs } from "../js/arcs.js";
import { colorLimit } from "../js/colors.js";
import { checkbox, seed, select, slider, temperature } from "../js/controls.js";
import { h, onDemand, setText, sym } from "../js/dom.js";
import { normals } from "../js/draws.js";
import { defineLab } from "../js/frame.js";
import { fit, heatmap } from "../js/heatmap.js";
import { attentionScores, attentionWeights, causalMask, entropyBits, matmul, takeRows } from "../js/math.js";
import { meters } from "../js/meters.js";
import { fixed } from "../js/numbers.js";
import { pairPanel, pairScales } from "../js/pair.js";
import { choice, flag, inOrder, oneOf, permutation, real, whole } from "../js/settings.js";
import { weightedSum } from "../js/sum.js";
import { orderMoves, tokenRow } from "../js/token_row.js";

const MASKS = [
  ["none", "none"],
  ["causal", "causal (no future)"],
];
const TEMPERATURES = { low: 0.01, high: 100 };
const SEEDS = 9999;
const CELL_PX = { few: 23, many: 20, from: 10 }; // at most, so that words, arcs and matrices are in one view

const isRandom = (scene) => "n" in scene;
const count = (scene) => (isRandom(scene) ? scene.n : scene.tokens.length);
const widest = (scene) => (isRandom(scene) ? scene.d_k : scene.W_Q[0].length);
const narrowest = (scene) => (isRandom(scene) ? 1 : widest(scene));
const subscript = (number) => String(number).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);
const flat = (rows) => Float64Array.from(rows.flat());

const sceneOf = (name, model) => model.get("scenes").find((scene) => scene.name === name) ?? model.get("scenes")[0];

/** A token of the scene; the scene's own where the state names none. */
const token = (scene) => {
  const index = whole(0, count(scene) - 1);
  return { ...index, clean: (value) => (value === index.clean(value) ? value : scene.query) };
};

function settings(state, model) {
  const scene = sceneOf(state.scene, model);
  return {
    scene: choice(
      model.get("scenes").map(({ name }) => name),
      scene.name,
    ),
    query: token(scene),
    key: oneOf([null, ...inOrder(count(scene))], null),
    order: permutation(count(scene)),
    d_k: whole(narrowest(scene), widest(scene)),
    scale: flag,
    temperature: real(TEMPERATURES.low, TEMPERATURES.high),
    mask: choice(MASKS.map(([name]) => name)),
    seed: whole(0, SEEDS),
  };
}

/** A scene's tokens and its projected vectors, in the scene's own order. */
function project(scene, seedNumber) {
  const n = count(scene);
  const width = widest(scene);
  if (isRandom(scene)) {
    const { d, d_v } = scene;
    const X = normals(seedNumber, 0, n * d);
    const weights = (stream, columns) => normals(seedNumber, stream, d * columns).map((value) => value / Math.sqrt(d));
    return {
      tokens: Array.from({ length: n }, (_, i) => `x${subscript(i + 1)}`),
      outputs: Array.from({ length: d_v }, (_, r) => String(r + 1)),
      coordinates: [],
      Q: matmul(X, weights(1, width), n, d, width),
      K: matmul(X, weights(2, width), n, d, width),
      V: matmul(X, weights(3, d_v), n, d, d_v),
      n,
      width,
      d_v,
    };
  }
  const d = scene.X[0].length;
  const d_v = scene.W_V[0].length;
  const X = flat(scene.X);
  return {
    tokens: scene.tokens,
    outputs: scene.outputs,
    coordinates: scene.keys ?? [],
    Q: matmul(X, flat(scene.W_Q), n, d, width),
    K: matmul(X, flat(scene.W_K), n, d, width),
    V: matmul(X, flat(scene.W_V), n, d, d_v),
    n,
    width,
    d_v,
  };
}

/** Scores, weights and outputs of a state, tokens in their present order. */
function attend({ tokens, outputs, Q, K, V, n, width, d_v }, state) {
  const queries = takeRows(Q, width, state.order);
  const keys = takeRows(K, width, state.order);
  const S = attentionScores(queries, keys, {
    n,
    m: n,
    width,
    d_k: state.d_k,
    scale: state.scale ? undefined : 1,
    mask: state.mask === "causal" ? causalMask() : undefined,
  });
  const A = attentionWeights(S, n, n, state.temperature);
  const values = takeRows(V, d_v, state.order);
  const row = state.order.indexOf(state.query);
  const most = A.subarray(row * n, row * n + n).reduce((best, a, j, all) => (a > all[best] ? j : best), 0);
  return {
    n,
    d_v,
    outputs,
    tokens: state.order.map((token) => tokens[token]),
    q: queries.subarray(row * width, row * width + state.d_k),
    keys,
    S,
    A,
    V: values,
    O: matmul(A, values, n, n, d_v),
    row,
    // the key that is looked at: where none is chosen, the one that is read most
    col: state.key === null ? most : state.order.indexOf(state.key),
    forbidden: Array.from(S, (score) => score === -Infinity),
  };
}

/** Entropy of a row that is even over the keys it may read. */
const mostBits = (S, row, n) => Math.log2(S.subarray(row * n, row * n + n).filter((score) => score > -Infinity).length);

/** One sentence that says what the picture shows. */
function describe({ n, tokens, A, row }) {
  const [first, second] = Array.from(A.subarray(row * n, row * n + n), (weight, j) => [weight, tokens[j]]).sort(
    (a, b) => b[0] - a[0],
  );
  const key = (word) => h("em", { class: "attn-c-key" }, word);
  return [
    h("em", { class: "attn-c-query" }, tokens[row]),
    " reads ",
    key(first[1]),
    ` most (weight ${fixed(first[0])})`,
    ...(second && second[0] >= 0.005 ? [", then ", key(second[1]), ` (${fixed(second[0])})`] : []),
    ".",
  ];
}

/**
 * Where the colours of a scene end, whatever is done with it: scores at its largest scaled one (others are said to be
 * beyond), outputs at its largest value, since each is a mean of values.
 */
function colourEnds({ Q, K, V, n, width }) {
  const scaled = attentionScores(Q, K, { n, m: n, width });
  return { scores: Math.max(4, colorLimit(scaled)), outputs: Math.max(0.5, colorLimit(V)) };
}

const radical = () => ["√", h("span", { class: "attn-root" }, sym("d", "k"))];

function build({ model, signal, set, state, root }) {
  let projected = null;
  let projectedFor = "";
  let result = null;
  let scaled = { key: "", of: null };

  /** The scales of the pair's picture: the scene's own, whatever pair is looked at. */
  function scales(scene, now, scale) {
    const key = `${projectedFor} ${now.d_k} ${scale}`;
    if (key !== scaled.key) scaled = { key, of: { ...pairScales(scene, scale), d_k: now.d_k } };
    return scaled.of;
  }

  const tokens = tokenRow({
    signal,
    onQuery: (query) => set({ query, key: null }),
    onOrder: (order) => set({ order }),
    onDrag: () => reading.follow(),
    now: () => state().order,
  });
  const reading = arcs({
    tokens,
    signal,
    onKey: (place) => set({ key: state().order[place] }),
    onPoint: (place) => point(place < 0 ? -1 : result.row, place),
  });
  const moves = orderMoves({ signal, order: () => state().order, onOrder: (order) => set({ order }) });
  const note = h("p", { class: "attn-note" });

  const controls = {
    scene: select({ control: "scene", label: "scene", signal, onInput: chooseScene }),
    query: select({
      control: "query",
      label: "query token",
      signal,
      onInput: (query) => set({ query: Number(query), key: null }),
    }),
    d_k: slider({
      control: "d_k",
      label: ["key width ", sym("d", "k")],
      min: 1,
      max: 64,
      text: String,
      signal,
      onInput: (d_k) => set({ d_k }),
    }),
    temperature: temperature({ ...TEMPERATURES, signal, onInput: (value) => set({ temperature: value }) }),
    scale: checkbox({
      control: "scale",
      label: ["divide the scores by ", ...radical()],
      signal,
      onInput: (on) => set({ scale: on }),
    }),
    mask: select({ control: "mask", label: "mask", signal, onInput: (mask) => set({ mask }) }),
    seed: seed({ label: "seed", most: SEEDS, signal, onInput: (value) => set({ seed: value }) }),
    moves,
  };

  function chooseScene(name) {
    const scene = sceneOf(name, model);
    set({
      scene: name,
      query: scene.query,
      key: null,
      order: inOrder(count(scene)),
      d_k: isRandom(scene) ? Math.min(16, scene.d_k) : widest(scene),
    });
  }

  const readout = h("p", { class: "attn-readout" });
  const hint = "Choose a word, or drag one. Point at a cell to read its numbers.";
  /** Let one pair stand out wherever it is shown; −1 for none. */
  function point(row, col) {
    maps.scores.light(row, col);
    maps.weights.light(row, col);
    reading.light(result && row === result.row ? col : -1);
    if (row < 0 || !result) return setText(readout, hint);
    const { S, A, n } = result;
    const pair = `${result.tokens[row]} → ${result.tokens[col]}`;
    const numbers = result.forbidden[row * n + col]
      ? "forbidden by the mask, weight 0"
      : `score ${fixed(S[row * n + col])}, weight ${fixed(A[row * n + col], 3)}`;
    setText(readout, `${pair}: ${numbers}`);
  }
  const onOutput = (row, col) => {
    if (row < 0) return point(-1, -1);
    const value = fixed(result.O[row * result.d_v + col], 3);
    setText(readout, `output of ${result.tokens[row]}, ${result.outputs[col]}: ${value}`);
  };
  const onPair = (row, col) => set({ query: state().order[row], key: state().order[col] });
  const maps = {
    scores: heatmap({
      panel: "scores",
      kind: "scores",
      title: "Scores",
      unit: "key",
      digits: 1,
      onCell: point,
      onRow: onPair,
      signal,
    }),
    weights: heatmap({
      panel: "weights",
      kind: "weights",
      title: "Weights",
      unit: "key",
      arrow: "softmax",
      onCell: point,
      onRow: onPair,
      signal,
    }),
    output: heatmap({
      panel: "output",
      kind: "outputs",
      title: "Outputs",
      unit: "coordinate",
      corner: "coord.",
      arrow: "× V",
      onCell: onOutput,
      onRow: (row) => set({ query: state().order[row], key: null }),
      signal,
    }),
  };
  const flow = h(
    "div",
    { class: "attn-flow attn-lines attn-answer" },
    Object.values(maps).map((map) => map.element),
  );
  const pair = pairPanel();
  const sum = weightedSum();
  const meter = meters();
  sum.element.classList.add("attn-answer");
  meter.element.classList.add("attn-answer");
  root.classList.add("attn-brief");
  point(-1, -1);

  return {
    controls,
    panels: {
      arcs: reading.element,
      pair: pair.element,
      matrices: onDemand("Whole matrices S, A, O", signal, flow),
      sum: sum.element,
      spread: meter.element,
    },
    after: [note],
    readout,
    draw(now, { theme, width }) {
      const scene = sceneOf(now.scene, model);
      const key = `${now.scene} ${isRandom(scene) ? now.seed : ""}`;
      if (key !== projectedFor) {
        projected = project(scene, now.seed);
        projected.ends = colourEnds(projected);
        projectedFor = key;
      }
      result = attend(projected, now);
      const { n, d_v, S, A, O, V, row, col, outputs, forbidden } = result;
      const a = A.subarray(row * n, row * n + n);

      tokens.update({ tokens: projected.tokens, order: now.order, query: now.query });
      reading.update({
        width,
        words: result.tokens,
        order: now.order,
        row,
        weights: a,
        forbidden: now.mask === "none" ? undefined : forbidden.slice(row * n, row * n + n),
      });
      setText(note, scene.note);
      controls.scene.update(
        now.scene,
        model.get("scenes").map(({ name, label }) => [name, label]),
      );
      controls.query.update(
        now.query,
        projected.tokens.map((text, token) => [token, text]),
      );
      controls.d_k.update(now.d_k, {
        most: widest(scene),
        why: isRandom(scene) ? "" : "Fixed here: it is the width of this scene’s vectors.",
      });
      controls.temperature.update(now.temperature);
      controls.scale.update(now.scale);
      controls.mask.update(now.mask, MASKS);
      controls.seed.update(now.seed, isRandom(scene));

      const cell = fit(flow, {
        width,
        rows: projected.tokens,
        panels: [projected.tokens, projected.tokens, outputs],
        most: n < CELL_PX.from ? CELL_PX.few : CELL_PX.many,
      });
      const shared = { n, theme, cell, rows: result.tokens, rowIds: now.order, current: row };
      const byKey = {
        ...shared,
        m: n,
        cols: result.tokens,
        colIds: now.order,
        forbidden: now.mask === "none" ? undefined : forbidden,
      };
      const sentence = describe(result);
      const spoken = sentence.map((part) => part.textContent ?? part).join("");
      maps.scores.update({
        ...byKey,
        values: S,
        limit: projected.ends.scores,
        sentence: "Scores of every query (row) with every key (column)",
        formulaKey: now.scale,
        formula: () => [
          sym("S"),
          " = ",
          sym("Q"),
          sym("K"),
          h("sup", {}, "⊤"),
          ...(now.scale ? ["/", ...radical()] : []),
        ],
      });
      maps.weights.update({
        ...byKey,
        values: A,
        sentence: `Weights. ${spoken}`,
        formulaKey: now.temperature === 1,
        formula: () => [
          sym("A"),
          " = softmax of each row",
          ...(now.temperature === 1 ? [] : [" of ", sym("S"), "/", sym("T")]),
        ],
      });
      maps.output.update({
        ...shared,
        m: d_v,
        cols: outputs,
        colIds: outputs,
        values: O,
        limit: projected.ends.outputs,
        sentence: "Output of every query (row), coordinate by coordinate",
        formula: () => [sym("O")],
      });
      const scale = now.scale ? 1 / Math.sqrt(now.d_k) : 1;
      const { width: d_k } = projected;
      pair.update({
        width,
        scales: scales(projected, now, scale),
        query: result.tokens[row],
        key: result.tokens[col],
        coordinates: projected.coordinates,
        outputs,
        q: result.q,
        k: result.keys.subarray(col * d_k, col * d_k + now.d_k),
        v: V.subarray(col * d_v, col * d_v + d_v),
        scale,
        score: S[row * n + col],
        weights: a,
        place: col,
      });
      sum.update({
        query: result.tokens[row],
        tokens: result.tokens,
        a,
        V,
        o: O.subarray(row * d_v, row * d_v + d_v),
        outputs,
      });
      meter.update({
        "largest weight": fixed(Math.max(...a)),
        entropy: [`${fixed(entropyBits(A, row * n, n))} bits`, ` of at most ${fixed(mostBits(S, row, n))}`],
      });
      return sentence;
    },
  };
}

const share = (value) => fixed(value).replace("0.", ".");

/**
 * What it can ask before it answers.
 * @param {import("../js/store.js").Model} model
 * @returns {Record<string, import("../js/ask.js").Ask>}
 */
function asks(model) {
  const word = (state, token) => attend(laid(state), { ...state, order: inOrder(laid(state).n) }).tokens[token];
  const laid = (state) => project(sceneOf(state.scene, model), state.seed);
  const query = (state) => h("em", { class: "attn-c-query" }, word(state, state.query));
  /** The token that is read most, and its weight, after a change of the state. */
  const most = (state, change = {}) => {
    const { A, n, row, order } = {
      ...attend(laid(state), { ...state, ...change }),
      order: change.order ?? state.order,
    };
    const weights = A.subarray(row * n, row * n + n);
    const place = weights.indexOf(Math.max(...weights));
    return { token: order[place], weight: weights[place] };
  };
  /** How much the token that is read most now gets after a change. */
  const then = (state, change) => {
    const { A, n, row } = attend(laid(state), { ...state, ...change });
    return A[row * n + (change.order ?? state.order).indexOf(most(state).token)];
  };
  const weight = /** @type {const} */ ({ kind: "slider", min: 0, max: 1, step: 0.01, text: share });
  const compared = (guess, truth) =>
    Math.abs(guess - truth) < 0.005
      ? `You said ${share(guess)}, and so it is.`
      : `You said ${share(guess)}; it is ${share(truth)}.`;
  const favourite = (state) => h("em", { class: "attn-c-key" }, word(state, most(state).token));
  const changed = (change, question) => ({
    question,
    control: weight,
    truth: (state) => then(state, change(state)),
    words: compared,
    then: change,
  });
  return {
    most: {
      question: (state) => ["Which word will ", query(state), " read most?"],
      control: { kind: "choice", choices: (state) => state.order.map((token) => [token, word(state, token)]) },
      truth: (state) => most(state).token,
      words: (guess, truth, state) =>
        guess === truth
          ? `Yes, ${word(state, truth)}.`
          : `You said ${word(state, guess)}; it is ${word(state, truth)}.`,
    },
    back: {
      question: (state) => [
        query(state),
        " reads ",
        favourite(state),
        ` with weight ${share(most(state).weight)}. How much does `,
        favourite(state),
        " read ",
        query(state),
        "?",
      ],
      control: weight,
      truth: (state) => {
        const { A, n } = attend(laid(state), state);
        return A[state.order.indexOf(most(state).token) * n + state.order.indexOf(state.query)];
      },
      words: compared,
      then: (state) => ({ query: most(state).token, key: state.query }),
    },
    reverse: changed(
      (state) => ({ order: [...state.order].reverse() }),
      (state) => [
        query(state),
        " reads ",
        favourite(state),
        ` with weight ${share(most(state).weight)}. With which, once the words are reversed?`,
      ],
    ),
    cold: changed(
      () => ({ temperature: 0.25 }),
      (state) => [
        query(state),
        " reads ",
        favourite(state),
        ` with weight ${share(most(state).weight)}. With which, at a quarter of the temperature?`,
      ],
    ),
    causal: changed(
      () => ({ mask: "causal" }),
      (state) => [
        query(state),
        " reads ",
        favourite(state),
        ` with weight ${share(most(state).weight)}. With which, once it may not look ahead?`,
      ],
    ),
  };
}

export default defineLab({ settings, build, asks });
