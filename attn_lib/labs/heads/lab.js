// HeadsLab: the weights of every head and their mean, how the width is shared out, and how one matrix joins the heads.
import { colorLimit } from "../js/colors.js";
import { checkbox, seed, select, slider } from "../js/controls.js";
import { h, s, setText, sym } from "../js/dom.js";
import { normals } from "../js/draws.js";
import { defineLab } from "../js/frame.js";
import { fit, fitMultiples, heatmap } from "../js/heatmap.js";
import { attentionScores, attentionWeights, entropyBits, matmul } from "../js/math.js";
import { meters } from "../js/meters.js";
import { fixed, tiny } from "../js/numbers.js";
import { choice, flag, inOrder, oneOf, whole } from "../js/settings.js";
import { strips } from "../js/strips.js";

const SEEDS = 9999;
const NARROW_PX = 500;
const flat = (rows) => Float64Array.from(rows.flat());
const subscript = (number) => String(number).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);
const sceneOf = (name, model) => model.get("scenes").find((scene) => scene.name === name) ?? model.get("scenes")[0];
const isRandom = (scene) => scene.name === "random";
const divisors = (heads) =>
  inOrder(heads)
    .map((k) => k + 1)
    .filter((k) => heads % k === 0);

function settings(state, model) {
  const scene = sceneOf(state.scene, model);
  const heads = oneOf(scene.heads, beginning(scene).heads);
  const h = heads.clean(state.heads);
  const query = whole(0, scene.n - 1);
  return {
    scene: choice(
      model.get("scenes").map(({ name }) => name),
      scene.name,
    ),
    heads,
    kv_heads: oneOf([null, ...divisors(h)], null),
    head: whole(0, h - 1),
    query: { ...query, clean: (value) => (value === query.clean(value) ? value : beginning(scene).query) },
    swapped: flag,
    seed: whole(0, SEEDS),
  };
}

/** What a scene begins with. */
const beginning = (scene) => (isRandom(scene) ? { heads: 4, head: 1, query: 2 } : { heads: 2, head: 0, query: 1 });

/** Some columns of a matrix with `width` columns. */
const columns = (M, width, from, count) => {
  const rows = M.length / width;
  const out = new Float64Array(rows * count);
  for (let i = 0; i < rows; i++) out.set(M.subarray(i * width + from, i * width + from + count), i * count);
  return out;
};

/** The tokens' vectors and the four maps, at full width. */
function mapsOf(scene, { heads, swapped, seed: seedNumber }) {
  const { d, n } = scene;
  if (isRandom(scene)) {
    const map = (stream) => normals(seedNumber, stream, d * d).map((value) => value / Math.sqrt(d));
    return {
      tokens: inOrder(n).map((i) => `x${subscript(i + 1)}`),
      outputs: inOrder(d).map((c) => String(c + 1)),
      X: normals(seedNumber, 0, n * d),
      W_Q: map(1),
      W_K: map(2),
      W_V: map(3),
      W_O: map(4),
    };
  }
  const { W_Q, W_K, W_V, outputs } = scene.maps[heads];
  return {
    tokens: swapped ? [...scene.tokens].reverse() : scene.tokens,
    outputs,
    X: flat(swapped ? scene.swapped : scene.X),
    W_Q: flat(W_Q),
    W_K: flat(W_K),
    W_V: flat(W_V),
    W_O: Float64Array.from({ length: d * d }, (_, at) => (at % (d + 1) === 0 ? 1 : 0)),
  };
}

/** Weights and readings of each head, the heads side by side, the output, and what each head adds to it. */
function attend({ X, W_Q, W_K, W_V, W_O }, { n, d }, heads, groups) {
  const width = d / heads;
  const project = (W, at) => matmul(X, columns(W, d, at * width, width), n, d, width);
  const joined = new Float64Array(n * d);
  const weights = [];
  const parts = [];
  for (let r = 0; r < heads; r++) {
    const group = Math.floor((r * groups) / heads);
    const S = attentionScores(project(W_Q, r), project(W_K, group), { n, m: n, width });
    const A = attentionWeights(S, n, n);
    const read = matmul(A, project(W_V, group), n, n, width);
    for (let i = 0; i < n; i++) joined.set(read.subarray(i * width, (i + 1) * width), i * d + r * width);
    weights.push(A);
    parts.push(matmul(read, W_O.subarray(r * width * d, (r + 1) * width * d), n, width, d));
  }
  const mean = new Float64Array(n * n).map((_, at) => weights.reduce((sum, A) => sum + A[at], 0) / heads);
  const output = matmul(joined, W_O, n, d, d);
  const sum = output.map((_, at) => parts.reduce((all, part) => all + part[at], 0));
  return {
    weights,
    mean,
    joined,
    output,
    parts,
    difference: Math.hypot(...output.map((value, at) => sum[at] - value)),
  };
}

function compute(scene, state) {
  const groups = state.kv_heads ?? state.heads;
  const given = mapsOf(scene, state);
  /** @type {Record<string, any>} */
  const result = { ...given, ...attend(given, scene, state.heads, groups), groups, d_k: scene.d / state.heads };
  if (!isRandom(scene)) {
    const other = attend(mapsOf(scene, { ...state, swapped: !state.swapped }), scene, state.heads, groups);
    const verb = (O) => O.subarray(scene.d, 2 * scene.d);
    result.swapEffect = Math.hypot(...verb(result.output).map((value, c) => value - verb(other.output)[c]));
  }
  const { d } = scene;
  const shared = d * groups * result.d_k;
  result.parameters = { W_Q: d * d, W_K: shared, W_V: shared, W_O: d * d, total: 2 * d * d + 2 * shared };
  return result;
}

function describe({ tokens, weights, mean, parameters, swapEffect }, { n, d }, { heads, head, query }) {
  const a = weights[head].subarray(query * n, query * n + n);
  const first = a.indexOf(Math.max(...a));
  const count = `${parameters.total} parameters${parameters.total === 4 * d * d ? ` = 4 · ${d}²` : ""}`;
  const swap =
    swapEffect === undefined ? "" : ` Exchange the two nouns, and the output of bites moves by ${fixed(swapEffect)}.`;
  return (
    `In head ${head + 1} of ${heads}, ${tokens[query]} reads ${tokens[first]} most (weight ` +
    `${fixed(a[first])}); averaged over the heads that weight is ${fixed(mean[query * n + first])}. ` +
    `${count}.${swap}`
  );
}

const MATRICES = [
  ["Q", "columns"],
  ["K", "columns"],
  ["V", "columns"],
  ["O", "rows"],
];
const TOP = 24;

/** The four matrices drawn to scale, cut into heads: their area is the number of parameters. */
function parameterBlocks() {
  const matrices = MATRICES.map(([name, along], at) => ({
    name,
    along,
    shared: name === "K" || name === "V",
    letter: s(
      "text",
      { y: TOP - 9, "text-anchor": "middle", class: "attn-letter" },
      "W",
      s("tspan", { dy: 3, class: "attn-index" }, name),
    ),
    blocks: s("g"),
    shape: s("text", { "text-anchor": "middle" }),
    count: s("text", { "text-anchor": "middle", class: "attn-count" }),
    plus: at < MATRICES.length - 1 ? s("text", { "text-anchor": "middle" }, "+") : null,
  }));
  const picture = s(
    "svg",
    { role: "img", class: "attn-chart" },
    matrices.flatMap(({ letter, blocks, shape, count, plus }) => [letter, blocks, shape, count, plus]),
  );
  const [split, total] = [h("p"), h("p")];
  const element = h("div", { class: "attn-parameters" }, picture, h("div", {}, split, total));
  let drawn = "";
  let placed = 0;

  /** Put letters and numbers in their places. */
  function place(side, gap) {
    if (placed === side) return;
    placed = side;
    picture.setAttribute("width", 4 * side + 3 * gap);
    picture.setAttribute("height", TOP + side + 38);
    matrices.forEach(({ letter, blocks, shape, count, plus }, at) => {
      const middle = at * (side + gap) + side / 2 - 1;
      for (const text of [letter, shape, count]) text.setAttribute("x", middle);
      blocks.setAttribute("transform", `translate(${at * (side + gap)} ${TOP})`);
      shape.setAttribute("y", TOP + side + 15);
      count.setAttribute("y", TOP + side + 32);
      plus?.setAttribute("x", middle + (side + gap) / 2);
      plus?.setAttribute("y", TOP + side + 32);
    });
  }

  /** The blocks of one matrix, the chosen one filled; a frame around what sharing saves. */
  function cut(side, along, count, chosen, share) {
    const step = (side * share) / count;
    const blocks = inOrder(count).map((k) => {
      const [at, size] = [k * step, Math.max(1, step - 2)];
      const [x, y, width, height] = along === "columns" ? [at, 0, size, side - 2] : [0, at, side - 2, size];
      return s("rect", { class: k === chosen ? "attn-block attn-chosen" : "attn-block", x, y, width, height });
    });
    return share < 1
      ? [
          ...blocks,
          s("rect", {
            class: "attn-saved",
            x: side * share,
            y: 0.5,
            width: side * (1 - share) - 2.5,
            height: side - 3,
          }),
        ]
      : blocks;
  }

  return {
    element,
    update({ d, heads, groups, head, d_k, parameters, width }) {
      const next = [d, heads, groups, head, width].join();
      if (next === drawn) return;
      drawn = next;
      const gap = width < NARROW_PX ? 14 : 28;
      const side = Math.min(66, (width - 3 * gap) / 4);
      place(side, gap);
      const of = ({ shared }) => (shared ? groups : heads);
      picture.setAttribute(
        "aria-label",
        "The four matrices cut into blocks. " +
          `${matrices.map((each) => `W ${each.name}: ${of(each)} blocks of ${each.along}`).join("; ")}. ` +
          `Head ${head + 1} is filled.`,
      );
      for (const each of matrices) {
        const { name, along, shared, blocks, shape, count } = each;
        const chosen = shared ? Math.floor((head * groups) / heads) : head;
        blocks.replaceChildren(...cut(side, along, of(each), chosen, shared ? groups / heads : 1));
        setText(shape, along === "rows" ? `${heads * d_k} × ${d}` : `${d} × ${of(each) * d_k}`);
        setText(count, String(parameters[`W_${name}`]));
      }
      split.replaceChildren(
        `The width ${d} is shared out: `,
        h("b", {}, `${heads} × ${d_k}`),
        heads > 1
          ? `. Each head reads all ${d} coordinates of a token and projects them to ${d_k}.`
          : ". The one head has all of it.",
      );
      const full = parameters.total === 4 * d * d;
      total.replaceChildren(
        h("b", {}, parameters.total),
        ...(full
          ? [" parameters, ", h("b", {}, "4", sym("d"), "²"), ", whatever the number of heads."]
          : [` parameters: ${heads / groups} heads share a key head. With a key head for each: ${4 * d * d}.`]),
      );
    },
  };
}

function build({ model, signal, set, state }) {
  let result = null;
  let scene = null;
  const list = (control, label, onInput) => select({ control, label, signal, onInput });
  const controls = {
    scene: list("scene", "scene", (name) => {
      const next = sceneOf(name, model);
      set({ scene: name, ...beginning(next), kv_heads: null });
    }),
    seed: seed({ label: "seed", most: SEEDS, signal, onInput: (value) => set({ seed: value }) }),
    swapped: checkbox({
      control: "swapped",
      label: "exchange the two nouns",
      signal,
      onInput: (swapped) => set({ swapped }),
    }),
    heads: slider({
      control: "heads",
      label: ["heads ", sym("h")],
      min: 0,
      max: 5,
      text: String,
      signal,
      toInput: (heads) => scene.heads.indexOf(heads),
      fromInput: (at) => scene.heads[at],
      onInput: (heads) => set({ heads }),
    }),
    kv_heads: list("kv_heads", "key heads", (text) =>
      set({ kv_heads: Number(text) === state().heads ? null : Number(text) }),
    ),
    head: list("head", "chosen head", (head) => set({ head: Number(head) })),
    query: list("query", "query token", (query) => set({ query: Number(query) })),
  };

  const equal = h("p", { class: "attn-readout" });
  const readout = h("p", { class: "attn-readout" });
  const onCell = (panel) => (row, col) => {
    if (row < 0 || !result)
      return setText(readout, "Point at a cell, or move to it with the arrow keys, to read its numbers.");
    const { tokens, outputs, weights, mean, joined, output, parts, W_O, d_k } = result;
    const { n, d } = scene;
    const cell = {
      mean: () =>
        `${tokens[row]} → ${tokens[col]}: mean weight ${fixed(mean[row * n + col], 3)}, in the heads ` +
        `${weights.map((A) => fixed(A[row * n + col])).join(", ")}`,
      joined: () =>
        `head ${Math.floor(col / d_k) + 1} read for ${tokens[row]}, coordinate ${(col % d_k) + 1} of ` +
        `${d_k}: ${fixed(joined[row * d + col], 3)}`,
      W_O: () =>
        `row ${row + 1}, which head ${Math.floor(row / d_k) + 1} writes with, column ` +
        `${outputs[col]}: ${fixed(W_O[row * d + col], 3)}`,
      output: () =>
        `output of ${tokens[row]}, ${outputs[col]}: ${fixed(output[row * d + col], 3)} = ${parts
          .map((part) => fixed(part[row * d + col]))
          .join(" + ")
          .replaceAll("+ −", "− ")}, head by head`,
    }[panel];
    setText(
      readout,
      cell
        ? cell()
        : `head ${panel + 1}, ${tokens[row]} → ${tokens[col]}: weight ${fixed(weights[panel][row * n + col], 3)}`,
    );
  };

  const heads = inOrder(12).map((head) =>
    heatmap({
      panel: "weights",
      kind: "weights",
      title: `Head ${head + 1}`,
      attributes: { "data-head": head },
      onCell: onCell(head),
      onRow: (query) => set({ head, query }),
      signal,
    }),
  );
  const mean = heatmap({
    panel: "mean",
    kind: "weights",
    title: "Mean",
    onCell: onCell("mean"),
    onRow: (query) => set({ query }),
    signal,
  });
  const multiples = h("div", { class: "attn-flow attn-multiples" }, mean.element);
  const onRow = (query) => set({ query });
  const panels = {
    joined: heatmap({
      panel: "joined",
      kind: "scores",
      title: "Side by side",
      unit: "coordinate",
      corner: "coord.",
      onCell: onCell("joined"),
      onRow,
      signal,
    }),
    W_O: heatmap({
      panel: "W_O",
      kind: "scores",
      title: "× joining matrix",
      unit: "coordinate",
      corner: "coord.",
      rowUnit: "row",
      onCell: onCell("W_O"),
      onRow: (row) => set({ head: Math.floor(row / result.d_k) }),
      signal,
    }),
    output: heatmap({
      panel: "output",
      kind: "scores",
      title: "equals the output",
      unit: "coordinate",
      corner: "coord.",
      onCell: onCell("output"),
      onRow,
      signal,
    }),
  };
  const joining = h(
    "div",
    { class: "attn-flow attn-joining" },
    Object.values(panels).map(({ element }) => element),
  );
  const blocks = parameterBlocks();
  const note = h("p", { class: "attn-note" });
  const meter = meters();
  onCell("mean")(-1, -1);
  const reading = strips({ onWord: (head, query) => set({ head, query }), signal });
  meter.element.classList.add("attn-answer");

  return {
    controls,
    panels: {
      reading: reading.element,
      spread: meter.element,
      maps: h("div", { class: "attn-answer" }, multiples),
      joining: h("div", { class: "attn-answer" }, joining, equal),
      blocks: blocks.element,
    },
    after: [note],
    readout,
    draw(now, { theme, width }) {
      scene = sceneOf(now.scene, model);
      result = compute(scene, now);
      const { n, d } = scene;
      const { tokens, outputs, weights, groups, d_k, parameters } = result;
      const { head, query } = now;

      controls.scene.update(
        now.scene,
        model.get("scenes").map(({ name, label }) => [name, label]),
      );
      controls.heads.update(now.heads, { most: scene.heads.length - 1 });
      controls.kv_heads.update(
        groups,
        divisors(now.heads)
          .reverse()
          .map((g) => [
            g,
            g === now.heads
              ? `${g}, one for each head`
              : g === 1
                ? "1, shared by all"
                : `${g}, each for ${now.heads / g} heads`,
          ]),
      );
      controls.head.update(
        head,
        inOrder(now.heads).map((r) => [r, `head ${r + 1}`]),
      );
      controls.query.update(
        query,
        tokens.map((text, i) => [i, text]),
      );
      controls.swapped.update(now.swapped, !isRandom(scene));
      controls.seed.update(now.seed, isRandom(scene));
      setText(note, scene.note);

      blocks.update({ d, heads: now.heads, groups, head, d_k, parameters, width });

      const says = weights.map((A, r) => {
        const row = A.subarray(query * n, query * n + n);
        return groups < now.heads
          ? `key head ${Math.floor((r * groups) / now.heads) + 1}`
          : `${tokens[query]} reads ${tokens[row.indexOf(Math.max(...row))]}`;
      });
      heads.slice(now.heads).forEach(({ element }) => element.remove());
      heads.slice(0, now.heads).forEach(({ element }) => element.isConnected || mean.element.before(element));
      const small = fitMultiples(multiples, {
        width,
        rows: tokens,
        cols: tokens,
        titles: ["over heads", ...says],
        lines: width < NARROW_PX ? 4 : 2,
      });
      const columns =
        width < NARROW_PX ? Math.min(2, now.heads) : Math.min(4, Math.ceil(now.heads / 2) + (now.heads === 2 ? 1 : 0));
      reading.update({
        width,
        words: tokens,
        columns,
        high: now.heads > 4 ? 42 : now.heads > 1 ? 74 : 110,
        strips: weights.map((A, r) => ({
          title: width / columns < NARROW_PX / 2 ? `Head ${r + 1}` : `Head ${r + 1}: ${says[r]}`,
          weights: A.subarray(query * n, query * n + n),
          row: query,
          chosen: r === head && now.heads > 1,
        })),
        sentence: `Arcs from ${tokens[query]} in each of ${now.heads} heads.`,
      });
      const places = inOrder(n);
      const square = {
        n,
        m: n,
        theme,
        cell: small,
        rows: tokens,
        cols: tokens,
        rowIds: places,
        colIds: places,
        current: query,
      };
      heads.slice(0, now.heads).forEach((panel, r) => {
        panel.element.classList.toggle("attn-chosen", r === head);
        panel.update({
          ...square,
          values: weights[r],
          sentence: `Weights of head ${r + 1}`,
          formulaKey: says[r],
          formula: () => [says[r]],
        });
      });
      const sentence = describe(result, scene, now);
      mean.update({
        ...square,
        values: result.mean,
        sentence: "Mean of the weights over all heads",
        formula: () => ["over heads"],
      });

      const all = inOrder(d).map((c) => String(c + 1));
      const cell = fit(joining, { width, rows: [...tokens, ...all], panels: [all, outputs, outputs], digits: d < 12 });
      const cuts = inOrder(now.heads)
        .slice(1)
        .map((r) => r * d_k);
      const wide = { theme, cell, m: d, plain: d > 6 };
      const joined = { ...wide, n, rows: tokens, rowIds: places, current: query };
      const shape = (rows, cols) => ` ${rows} × ${cols}`;
      panels.joined.update({
        ...joined,
        cols: all,
        colIds: all,
        values: result.joined,
        limit: colorLimit(result.joined),
        cuts: { cols: cuts },
        boxes: [{ kind: "box", row: 0, col: head * d_k, rows: n, cols: d_k }],
        current: -1,
        sentence: "What the heads read, side by side",
        formulaKey: `${now.heads} ${d}`,
        formula: () => [
          "[",
          sym("O", "1"),
          ...(now.heads > 1 ? [now.heads > 2 ? " … " : " ", sym("O", String(now.heads))] : []),
          "]",
          shape(n, `(${now.heads}·${d_k})`),
        ],
      });
      panels.W_O.update({
        ...wide,
        n: d,
        rows: all,
        rowIds: all,
        cols: outputs,
        colIds: outputs,
        current: -1,
        values: result.W_O,
        limit: colorLimit(result.W_O),
        cuts: { rows: cuts },
        boxes: [{ kind: "box", row: head * d_k, col: 0, rows: d_k, cols: d }],
        sentence: "The joining matrix: each head has its own rows",
        formulaKey: `${now.heads} ${d}`,
        formula: () => [sym("W", "O"), shape(`(${now.heads}·${d_k})`, d)],
      });
      panels.output.update({
        ...joined,
        cols: outputs,
        colIds: outputs,
        values: result.output,
        limit: colorLimit(result.output),
        sentence: "Output of every token",
        formulaKey: `${d}`,
        formula: () => [sym("O"), shape(n, d)],
      });

      const own = weights.reduce((sum, A) => sum + entropyBits(A, query * n, n), 0) / now.heads;
      const blurred = entropyBits(result.mean, query * n, n);
      setText(
        equal,
        `Each head times its own rows, added up, is the same output: the difference is ${tiny(result.difference)}.`,
      );
      meter.update({
        [`entropy of ${tokens[query]}, average of the heads`]: `${fixed(own)} bits`,
        "of the mean": `${fixed(blurred)} bits`,
        ...(result.swapEffect === undefined ? {} : { "nouns exchanged, bites moves by": fixed(result.swapEffect) }),
      });
      return sentence;
    },
  };
}

/**
 * @param {import("../js/store.js").Model} model
 * @returns {Record<string, import("../js/ask.js").Ask>}
 */
const asks = (model) => ({
  exchange: {
    question: () => ["Exchange the two nouns. Will what arrives at the verb be another vector?"],
    control: {
      kind: "choice",
      choices: () => [
        [true, "another"],
        [false, "the same"],
      ],
    },
    truth: (state) => compute(sceneOf(state.scene, model), state).swapEffect > 0.005,
    words: (guess, truth) => {
      const is = truth ? "another one" : "the same";
      return guess === truth ? `Yes, ${is}.` : `It is ${is}.`;
    },
    then: (state) => ({ swapped: !state.swapped }),
  },
});

export default defineLab({ settings, build, asks });
