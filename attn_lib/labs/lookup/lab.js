// LookupLab: a query among keys in the plane → a weight for each key → the same weights mix the values.
import { checkbox, select, slider, temperature } from "../js/controls.js";
import { h, s, setStyle, sym } from "../js/dom.js";
import { defineLab } from "../js/frame.js";
import { convexHull, dotScores, exactScores, gaussianScores, hardWeights, withLength } from "./scores.js";
import { attentionWeights, entropyBits, matmul } from "../js/math.js";
import { meters } from "../js/meters.js";
import { fixed } from "../js/numbers.js";
import { letterTag, nameTag, plane } from "../js/plane.js";
import { choice, coordinates, flag, real } from "../js/settings.js";
import { weightedSum } from "../js/sum.js";

const REACH = 2;
const TEMPERATURES = { low: 0.01, high: 100 };
const ONE_LENGTH = 1.4;
const FOUND = 0.0075; // the query moves in hundredths: nearer than that, it stands on the key
const KERNELS = [
  ["gaussian", "Gaussian: distance"],
  ["dot", "dot product: projection"],
];
const KERNEL_NAMES = { gaussian: "Gaussian kernel", dot: "dot product" };
const SIDE = { most: 380, least: 250, narrow: 228, gap: 18 };

const settings = (_, model) => ({
  key_points: coordinates(2 * model.get("entries").names.length, REACH),
  value_points: coordinates(2 * model.get("entries").names.length, 1),
  query_x: real(-REACH, REACH),
  query_y: real(-REACH, REACH),
  lookup: choice(["exact", "hard", "soft"]),
  kernel: choice(KERNELS.map(([name]) => name)),
  temperature: real(TEMPERATURES.low, TEMPERATURES.high),
  one_length: flag,
});

/** Scores, weights and output of a state. */
function look({ names, outputs, keys: given, V: own }, state) {
  const q = [state.query_x, state.query_y];
  const keys = state.key_points.length ? Float64Array.from(state.key_points) : given;
  const V = state.value_points.length ? Float64Array.from(state.value_points) : own;
  const K = state.one_length ? withLength(keys, ONE_LENGTH) : keys;
  const m = names.length;
  const near = gaussianScores(q, K);
  const along = dotScores(q, K);
  const S = state.lookup === "exact" ? exactScores(q, K, FOUND) : state.kernel === "gaussian" ? near : along;
  const soft = (T) => attentionWeights(S, 1, m, T);
  const a = state.lookup === "hard" ? hardWeights(S) : soft(state.lookup === "soft" ? state.temperature : 1);
  const best = (scores) => scores.indexOf(Math.max(...scores));
  return {
    names,
    outputs,
    q,
    keys,
    K,
    V,
    m,
    S,
    a,
    soft,
    nearest: best(near),
    longest: best(along),
    o: matmul(a, V, 1, m, 2),
  };
}

/** One sentence that says what the picture shows. */
function describe({ names, a, nearest, longest }, { lookup, kernel }) {
  const [first, second] = Array.from(a, (weight, j) => [weight, names[j]]).sort((x, y) => y[0] - x[0]);
  if (!first[0]) return "The query stands on no key, so a dictionary finds nothing.";
  if (lookup === "exact") return `The query stands on ${first[1]}, and a dictionary gives its value.`;
  if (lookup === "hard")
    return (
      `The ${kernel === "gaussian" ? "nearest key" : "longest projection"} is ${first[1]}; a hard ` +
      "lookup reads it alone."
    );
  const then = second && second[0] >= 0.005 ? `, then ${second[1]} (${fixed(second[0])})` : "";
  return (
    `By the ${KERNEL_NAMES[kernel]} the query reads ${first[1]} most (weight ` +
    `${fixed(first[0])})${then}. Nearest key and longest projection ` +
    `${nearest === longest ? "are the same" : "differ"}.`
  );
}

/** Show a value's colour: green to red and blue to yellow, at one lightness. */
function pigment(element, [red, yellow]) {
  setStyle(element, "--red", red);
  setStyle(element, "--yellow", yellow);
  return element;
}

/** @returns {number[][]} */
const pointsOf = (flat) => Array.from({ length: flat.length / 2 }, (_, j) => [flat[2 * j], flat[2 * j + 1]]);

/** What a point weighs, as the area of a halo, and the point itself. */
const entry = (x, y, value, weight) => [
  weight > 0 && pigment(s("circle", { class: "attn-halo", cx: x, cy: y, r: 5.5 + 16 * Math.sqrt(weight) }), value),
  pigment(s("circle", { class: "attn-pigment", cx: x, cy: y, r: 5.5 }), value),
];

/** The key nearest to the query stands on the circle. */
function circleGuide({ q, K, nearest }, X, Y) {
  const [x, y] = pointsOf(K)[nearest];
  return [
    s("circle", { class: "attn-guide", cx: X(q[0]), cy: Y(q[1]), r: Math.hypot(X(x) - X(q[0]), Y(y) - Y(q[1])) }),
  ];
}

/** Every key's foot on the line through the query, the farthest one marked. */
function projectionGuide({ q, K, longest }, X, Y) {
  const square = q[0] ** 2 + q[1] ** 2;
  if (!square) return [];
  const foot = (/** @type {number[]} */ [x, y]) => [q[0], q[1]].map((c) => (c * (x * q[0] + y * q[1])) / square);
  const far = 3 / Math.sqrt(square);
  /** @type {(name: string, from: number[], to: number[]) => Element} */
  const line = (name, [x1, y1], [x2, y2]) => s("line", { class: name, x1: X(x1), y1: Y(y1), x2: X(x2), y2: Y(y2) });
  const keys = pointsOf(K);
  return [
    line("attn-guide", [-far * q[0] * REACH, -far * q[1] * REACH], [far * q[0] * REACH, far * q[1] * REACH]),
    ...keys.map((key) => line("attn-drop", key, foot(key))),
    line("attn-reach", [0, 0], foot(keys[longest])),
  ];
}

/** For a dot product, keys and query are arrows from the origin: their tips can be pulled. */
function arrows({ q, K }, X, Y) {
  /** @type {[number, number]} */
  const from = [X(0), Y(0)];
  /** @type {(name: string, tip: number[]) => Element} */
  const to = (name, [x, y]) => arrow(from, [X(x), Y(y)], name, [0, 0]);
  return [...pointsOf(K).map((key) => to("attn-keyarrow", key)), to("attn-queryarrow", q)];
}

function keyMarks(now, state, side) {
  const { names, q, K, V, a, nearest } = now;
  const values = pointsOf(V);
  return (X, Y) => {
    const at = pointsOf(K).map(([x, y]) => [X(x), Y(y)]);
    const guide = state.lookup === "exact" ? () => [] : state.kernel === "gaussian" ? circleGuide : projectionGuide;
    return [
      state.one_length && s("circle", { class: "attn-rim", cx: X(0), cy: Y(0), r: X(ONE_LENGTH) - X(0) }),
      ...guide(now, X, Y),
      ...(guide === projectionGuide ? arrows(now, X, Y) : []),
      ...at.flatMap(([x, y], j) => entry(x, y, values[j], a[j])),
      ...at.map((point, j) =>
        nameTag(names[j], point, [X(0), Y(0)], {
          side,
          distance: 10 + 14 * Math.sqrt(a[j]),
          more: a[j] >= 0.005 && fixed(a[j]),
          avoid: [X(q[0]), Y(q[1])],
        }),
      ),
      s("circle", { class: "attn-query", cx: X(q[0]), cy: Y(q[1]), r: 6.5 }),
      letterTag("q", [X(q[0]), Y(q[1])], at[nearest], 15),
    ];
  };
}

/** a_j v_j, head to tail from the origin, the largest first: they end in the output. */
function chain({ a, V, m }) {
  const order = Array.from({ length: m }, (_, j) => j)
    .filter((j) => a[j] > 0.002)
    .sort((i, j) => a[j] - a[i]);
  let at = [0, 0];
  return order.map((j) => {
    const from = at;
    at = [at[0] + a[j] * V[2 * j], at[1] + a[j] * V[2 * j + 1]];
    return { j, from, to: at };
  });
}

/** An arrow; a short one has no head. */
function arrow([x0, y0], [x1, y1], name, value) {
  const length = Math.hypot(x1 - x0, y1 - y0);
  const [ux, uy] = [(x1 - x0) / (length || 1), (y1 - y0) / (length || 1)];
  const head = Math.min(7, length / 2);
  const wing = (side) =>
    `${(x1 - head * ux + side * 0.55 * head * uy).toFixed(1)} ${(y1 - head * uy - side * 0.55 * head * ux).toFixed(1)}`;
  const d = `M${x0.toFixed(1)} ${y0.toFixed(1)}L${x1.toFixed(1)} ${y1.toFixed(1)}M${wing(1)}L${x1.toFixed(1)} ${y1.toFixed(1)}L${wing(-1)}`;
  return pigment(s("path", { class: name, d }), value);
}

/** The way of the output from the mean of all values (T = ∞) to the hard lookup (T → 0). */
function wayOf({ soft, V, m }) {
  const stops = Array.from({ length: 41 }, (_, k) => 10 ** (2.5 - k * 0.125));
  return stops.map((T) => matmul(soft(T), V, 1, m, 2));
}

function valueMarks(now, state, side) {
  const { names, V, a, o } = now;
  const values = pointsOf(V);
  const path = (points, X, Y) =>
    points.map(([x, y], k) => `${k ? "L" : "M"}${X(x).toFixed(1)} ${Y(y).toFixed(1)}`).join("");
  return (X, Y) => {
    const at = values.map(([x, y]) => [X(x), Y(y)]);
    const middle = [0, 1].map((r) => at.reduce((sum, point) => sum + point[r], 0) / at.length);
    return [
      s("path", {
        class: "attn-hull",
        d: `${path(
          convexHull(values).map((j) => values[j]),
          X,
          Y,
        )}Z`,
      }),
      state.lookup === "soft" && s("path", { class: "attn-way", d: path(wayOf(now), X, Y) }),
      ...chain(now).map(({ j, from, to }) =>
        arrow([X(from[0]), Y(from[1])], [X(to[0]), Y(to[1])], "attn-part", values[j]),
      ),
      ...at.flatMap(([x, y], j) => entry(x, y, values[j], a[j])),
      ...at.map((point, j) => nameTag(names[j], point, middle, { side, distance: 10 + 14 * Math.sqrt(a[j]) })),
      a.some(Boolean) && pigment(s("circle", { class: "attn-output", cx: X(o[0]), cy: Y(o[1]), r: 8 }), o),
      a.some(Boolean) && letterTag("o", [X(o[0]), Y(o[1])], at[a.indexOf(Math.max(...a))], 17),
    ];
  };
}

const OPPOSITE = { red: "green", yellow: "blue" };
const ends = (outputs) => {
  const [x, y] = outputs.map((name) => [OPPOSITE[name] ?? `−${name}`, name]);
  return { x, y };
};

const SCORE = {
  exact: () => [sym("q"), " = ", sym("k"), " ?"],
  gaussian: () => [sym("s"), " = −‖", sym("q"), " − ", sym("k"), "‖²/2; circle: the nearest key"],
  dot: () => [sym("s"), " = ", sym("q"), "·", sym("k"), "; stroke: the longest projection"],
};

function build({ model, signal, set, state }) {
  const { names, K, V, outputs } = model.get("entries");
  const entries = { names, outputs, keys: Float64Array.from(K.flat()), V: Float64Array.from(V.flat()) };
  const coordinate = (control, letter) =>
    slider({
      control,
      label: ["query ", sym("q", letter)],
      min: -REACH,
      max: REACH,
      step: 0.01,
      text: fixed,
      signal,
      onInput: (value) => set({ [control]: value }),
    });
  const controls = {
    query_x: coordinate("query_x", "x"),
    query_y: coordinate("query_y", "y"),
    lookup: select({ control: "lookup", label: "lookup", signal, onInput: (lookup) => set({ lookup }) }),
    kernel: select({ control: "kernel", label: "score", signal, onInput: (kernel) => set({ kernel }) }),
    temperature: temperature({ ...TEMPERATURES, signal, onInput: (value) => set({ temperature: value }) }),
    one_length: checkbox({
      control: "one_length",
      label: "keys of equal length",
      signal,
      onInput: (one_length) => set({ one_length }),
    }),
  };
  /** A key or a value that is moved: then all of them are the reader's own. */
  function handle(name, field, j, all) {
    const flat = () => Array.from(all(look(entries, state())));
    return {
      name,
      onMove(x, y) {
        const moved = flat();
        moved.splice(2 * j, 2, x, y);
        set({ [field]: moved });
      },
      now: () => flat().slice(2 * j, 2 * j + 2),
    };
  }
  const keys = plane({
    panel: "keys",
    title: "Query and keys",
    reach: REACH,
    handles: [
      { name: "query", onMove: (query_x, query_y) => set({ query_x, query_y }), now: () => look(entries, state()).q },
      ...names.map((name, j) => handle(`key of ${name}`, "key_points", j, (now) => now.keys)),
    ],
    anywhere: true,
    signal,
  });
  const values = plane({
    panel: "values",
    title: "Values and output",
    reach: 1.08,
    most: 1,
    handles: names.map((name, j) => handle(`value of ${name}`, "value_points", j, (now) => now.V)),
    signal,
  });
  values.formula.append(sym("o"), " = Σ ", sym("a"), sym("v"), ", in the values’ convex hull");
  const sum = weightedSum({ panel: "weights", ranked: false, scored: true });
  const meter = meters();
  let score = null;

  return {
    controls,
    panels: {
      planes: h("div", { class: "attn-flow" }, keys.element, values.element),
      sum: sum.element,
      spread: meter.element,
    },
    draw(given, { width }) {
      const now = look(entries, given);
      const { S, a, o, q, m } = now;
      const { lookup, kernel } = given;
      controls.query_x.update(given.query_x);
      controls.query_y.update(given.query_y);
      controls.lookup.update(lookup, [
        ["exact", "exact: the key itself"],
        ["hard", `hard: the ${kernel === "gaussian" ? "nearest key" : "longest projection"}`],
        ["soft", "soft: every key"],
      ]);
      controls.kernel.update(kernel, KERNELS, {
        why: lookup === "exact" ? "A dictionary only asks whether two keys are equal." : "",
        hint:
          kernel === "gaussian" ? "The nearest key scores best." : "The longest projection onto the query scores best.",
      });
      controls.temperature.update(given.temperature, {
        why: lookup === "soft" ? "" : "Only a soft lookup has a temperature.",
        hint: "T → 0: a hard lookup. T → ∞: the mean.",
      });
      controls.one_length.update(given.one_length);

      const beside = Math.floor((width - SIDE.gap) / 2);
      const side = Math.min(beside >= SIDE.least ? SIDE.most : SIDE.narrow, beside >= SIDE.least ? beside : width);
      const sentence = describe(now, given);
      const shown = lookup === "exact" ? "exact" : kernel;
      if (score !== shown) keys.formula.replaceChildren(...SCORE[(score = shown)]());
      keys.update({ side, points: [q, ...pointsOf(now.K)], marks: keyMarks(now, given, side), sentence });
      values.update({
        side,
        points: pointsOf(now.V),
        marks: valueMarks(now, given, side),
        ends: ends(outputs),
        sentence: `The output is ${outputs[0]} ${fixed(o[0])}, ${outputs[1]} ${fixed(o[1])}.`,
      });
      sum.update({ tokens: names, a, V: now.V, o, outputs, S });
      meter.update({
        "nearest key": names[now.nearest],
        "longest projection": names[now.longest],
        entropy: [`${fixed(entropyBits(a, 0, m))} bits`, ` of at most ${fixed(Math.log2(m))}`],
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
  const { names, K, V, outputs } = model.get("entries");
  const entries = { names, outputs, keys: Float64Array.from(K.flat()), V: Float64Array.from(V.flat()) };
  const best = (state) => {
    const { a } = look(entries, state);
    return a.indexOf(Math.max(...a));
  };
  return {
    cold: {
      question: () => ["As T falls towards 0, which entry will the output come to?"],
      control: { kind: "choice", choices: () => names.map((name, j) => [j, name]) },
      truth: best,
      words: (guess, truth) =>
        guess === truth ? `Yes, to ${names[truth]}.` : `You said ${names[guess]}; it comes to ${names[truth]}.`,
      then: () => ({ temperature: TEMPERATURES.low }),
    },
  };
};

export default defineLab({ settings, build, asks });
