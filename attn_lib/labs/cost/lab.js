// CostLab: what attention costs as the context grows, five ways to compute it.
import { chart, theNumbers } from "../js/chart.js";
import { select, slider } from "../js/controls.js";
import { attentionCost, layerCost, windowTile } from "./counts.js";
import { h, panelTitle, setStyle, setText, sym } from "../js/dom.js";
import { defineLab } from "../js/frame.js";
import { byteSize, fixed, powerOfTen, scientific } from "../js/numbers.js";
import { choice, whole } from "../js/settings.js";

const LONGEST = 2 ** 20;
const WIDEST = 16384;
const HEADS = 128;
const LONG = 128 * 1024;
const BYTES = 2; // of a 16-bit number
const LENGTHS = Array.from({ length: 17 }, (_, k) => 2 ** (k + 4));
const VARIANTS = [
  ["full", "full attention"],
  ["cached", "cached decoding"],
  ["tiled", "tiled attention"],
  ["windowed", "windowed attention"],
  ["linear", "linear attention"],
];
// of the axes, at every width and number of heads
const OPERATIONS = /** @type {[number, number]} */ ([1e4, 1e17]);
const MEMORY = /** @type {[number, number]} */ ([1e2, 1e15]);
const MARGINS = { left: 42, right: 122 };
// The bars' decades do not move with the settings, so that bars can be compared between them
const DECADES = { operations: [7, 15], memory: [3, 13] };

/** The heads share the width evenly: the largest number that can, up to the one given. */
const sharing = (d) => {
  const number = whole(1, Math.min(HEADS, d));
  const fit = (heads) => (d % heads ? fit(heads - 1) : heads);
  return { clean: (value) => fit(number.clean(value)), read: (text) => fit(number.read(text)) };
};

const settings = (state) => {
  const d = whole(1, WIDEST);
  return {
    n: whole(1, LONGEST),
    d,
    h: sharing(d.clean(state.d)),
    window: whole(1, LONGEST),
    variant: choice(VARIANTS.map(([name]) => name)),
  };
};

/** Multiply-adds of scores and mixing, and bytes, of one variant on n tokens. */
function spent(variant, n, { d, h: heads, window }) {
  if (variant === "cached") return { operations: n * (n + 1) * d, memory: BYTES * (2 * n * d + heads * n) };
  const { operations, memory } = attentionCost(variant === "full" ? "plain" : variant, n, d / heads, window);
  return { operations: heads * operations, memory: BYTES * heads * memory };
}

/** Where curves cross, and how high. */
function crossings({ variant, d, h: heads, window }, state) {
  const full = (n) => 2 * n * n * d;
  if (variant === "cached")
    return /** @type {[number, string][]} */ ([
      [4 * d - 1, "n = 4d − 1"],
      [12 * d - 1, "n = 12d − 1"],
    ]).map(([x, text]) => ({ x, y: x * (x + 1) * d, text }));
  const own = { windowed: [[window, "n = w"]], linear: [[d / heads + 0.5, "n = d/h + ½"]] }[variant] ?? [];
  return [[2 * d, "n = 2d"], [6 * d, "n = 6d"], ...own].map(([x, text]) => ({
    x,
    y: text === "n = w" ? spent("windowed", window, state).operations : full(x),
    text,
    side: text.endsWith("d") ? undefined : "right",
  }));
}

const sup = (text) => h("sup", {}, text);
const [n, d, heads, w] = [() => sym("n"), () => sym("d"), () => sym("h"), () => sym("w")];

/** What a variant spends: as a formula, with the numbers put in, and what is to be known of it. */
const WORDS = {
  full: {
    operations: () => [["2", n(), sup("2"), d()], (now) => `= 2 · ${now.n}² · ${now.d}`],
    memory: () => [[heads(), n(), sup("2"), " weights"], (now) => `= ${now.h} · ${now.n}² · 2 bytes`],
    note: () => "Every query meets every key at once, and all the weights are held.",
  },
  cached: {
    operations: () => [[n(), "(", n(), " + 1)", d()], (now) => `= ${now.n} · ${now.n + 1} · ${now.d}`],
    memory: () => [
      ["2", n(), d(), " kept, ", heads(), n(), " weights"],
      (now) => `= ${now.n} · ${2 * now.d + now.h} · 2 bytes`,
    ],
    note: (now) =>
      "Token after token: the newest reads the keys and values kept of all before it, here with " +
      `${scientific(2 * now.n * now.d)} multiply-adds. The same numbers as full causal attention; ` +
      "without causality nothing could be kept.",
  },
  tiled: {
    operations: () => [["2", n(), sup("2"), d()], (now) => `= 2 · ${now.n}² · ${now.d}`],
    memory: () => [[heads(), " tiles of 256 × 1024"], () => "whatever n is"],
    note: () =>
      "The same function with the same operations. Only one tile of scores is held in each head, so " +
      "that memory does not grow.",
  },
  windowed: {
    operations: () => [["about 2", n(), w(), d()], () => "in whole tiles"],
    memory: (now) => [[heads(), ` tiles of ${windowTile(now.window).join(" × ")} at most`], () => "whatever n is"],
    note: (now) =>
      "Another function: a query sees the " +
      `${now.window === 1 ? "key of its own token only" : `${now.window} keys up to its own`}. ` +
      (now.window === 1
        ? "Nothing else can ever be read."
        : "To read from the last token back to the first takes ⌈(n − 1)/(w − 1)⌉ = " +
          `${Math.ceil((now.n - 1) / (now.window - 1))} layers.`),
  },
  linear: {
    operations: () => [
      [n(), "(2", d(), sup("2"), "/", heads(), " + ", d(), ")"],
      (now) => `= ${now.n} · (2 · ${now.d}²/${now.h} + ${now.d})`,
    ],
    memory: (now) => [[heads(), ` states of ${now.d / now.h} × ${now.d / now.h + 1}`], () => "whatever n is"],
    note: () =>
      "Another function: φ(q)·φ(k) in place of exp(q·k/√dₖ). The keys are summed up once, and each " +
      "query reads the sum.",
  },
};
const LAYER = {
  projections: () => [["4", n(), d(), sup("2")], (now) => `= 4 · ${now.n} · ${now.d}²`],
  feed_forward: () => [["8", n(), d(), sup("2")], (now) => `= 8 · ${now.n} · ${now.d}²`],
};

/** The formulas of the present variant and of the layer around it. */
function formulaTable() {
  const rows = ["attention", "projections", "feed-forward", "memory"].map((name, row) => {
    const cells = [
      h("td", { class: "attn-in-symbols" }),
      h("td", { class: "attn-in-numbers" }),
      h("td", { "data-row": row, "data-col": 0 }),
    ];
    return { cells, tr: h("tr", {}, h("th", { scope: "row" }, name), cells) };
  });
  const element = h(
    "table",
    { "data-panel": "formulas", class: "attn-formulas" },
    h("caption", { class: "attn-sr" }, "What one layer spends: multiply-adds, and memory"),
    h(
      "tbody",
      {},
      rows.map(({ tr }) => tr),
    ),
  );
  return {
    element,
    update(now, cost, layer) {
      const words = WORDS[now.variant];
      const shown = [
        [words.operations(now), cost.operations, scientific],
        [LAYER.projections(), layer.projections, scientific],
        [LAYER.feed_forward(), layer.feed_forward, scientific],
        [words.memory(now), cost.memory, byteSize],
      ];
      shown.forEach(([[symbols, numbers], value, text], row) => {
        const [first, second, last] = rows[row].cells;
        first.replaceChildren(...symbols);
        setText(second, numbers(now));
        last.dataset.value = value;
        setText(last, `= ${text(value)}`);
      });
    },
  };
}

/** What every variant costs at a context of 128k: logarithmic bars. */
function longTable() {
  const kinds = ["operations", "memory"];
  const rows = VARIANTS.map(([name], row) => {
    const bars = kinds.map(() => h("span"));
    const values = kinds.map((_, col) => h("td", { "data-row": row, "data-col": col }));
    const cells = kinds.flatMap((kind, col) => [
      h(
        "td",
        { class: "attn-barcell attn-decades", style: `--decades: ${DECADES[kind][1] - DECADES[kind][0]}` },
        bars[col],
      ),
      values[col],
    ]);
    return { name, bars, values, tr: h("tr", {}, h("th", { scope: "row" }, name), cells) };
  });
  const head = kinds.map((kind) => h("th", { scope: "colgroup", colspan: 2 }, kind));
  const element = h(
    "table",
    { "data-panel": "long", class: "attn-long" },
    h("caption", { class: "attn-sr" }, "Every variant at a context of 128k tokens"),
    h(
      "colgroup",
      {},
      h("col"),
      kinds.flatMap((kind) => [h("col"), h("col", { class: `attn-${kind}-column` })]),
    ),
    h("thead", {}, h("tr", {}, h("td"), head)),
    h(
      "tbody",
      {},
      rows.map(({ tr }) => tr),
    ),
  );
  return {
    element,
    update(state) {
      for (const { name, bars, values, tr } of rows) {
        const cost = spent(name, LONG, state);
        tr.classList.toggle("attn-current", name === state.variant);
        kinds.forEach((kind, col) => {
          const [low, high] = DECADES[kind];
          setStyle(
            bars[col],
            "inline-size",
            `${Math.min(100, Math.max(0, (100 * (Math.log10(cost[kind]) - low)) / (high - low))).toFixed(2)}%`,
          );
          values[col].dataset.value = cost[kind];
          setText(values[col], kind === "memory" ? byteSize(cost[kind]) : scientific(cost[kind]));
        });
      }
    },
  };
}

function describe(state, cost, share) {
  const [long, full] = [spent(state.variant, LONG, state), spent("full", LONG, state)];
  const name = VARIANTS.find(([variant]) => variant === state.variant)[1];
  const against = state.variant === "full" ? "" : `, where full attention holds ${byteSize(full.memory)} of weights`;
  return (
    `${name[0].toUpperCase()}${name.slice(1)}: at n = ${state.n}, d = ${state.d}, h = ${state.h} it ` +
    `takes ${scientific(cost.operations)} multiply-adds, ${fixed(100 * share, 0)} % of the layer, ` +
    `and holds ${byteSize(cost.memory)}. At a context of 128k, ${scientific(long.operations)} and ` +
    `${byteSize(long.memory)}${against}.`
  );
}

/** One line for each variant, equal ones together; the present one is stressed. */
function variantLines(state, lengths, kind) {
  const lines = new Map();
  for (const [name] of VARIANTS) {
    const points = lengths.map((length) => [length, spent(name, length, state)[kind]]);
    const key = String(points);
    if (lines.has(key)) lines.get(key).names.push(name);
    else lines.set(key, { names: [name], points });
  }
  const quiet = { thin: true, color: "muted", dot: false };
  const drawn = [...lines.values()].map(({ names, points }) => ({
    name: names.join(", "),
    label: names.join(", "),
    dash: "none",
    points,
    ...(names.includes(state.variant) ? { color: "accent" } : quiet),
  }));
  return drawn.sort((a, b) => Number(a.color === "accent") - Number(b.color === "accent")); // the present one on top
}

const beside = { thin: true, color: "cool", dash: "5 3", dot: false };

function build({ signal, set }) {
  const power = (options) =>
    slider({
      toInput: Math.log2,
      fromInput: (position) => Math.round(2 ** position),
      text: String,
      signal,
      ...options,
    });
  const controls = {
    variant: select({ control: "variant", label: "variant", signal, onInput: (variant) => set({ variant }) }),
    n: power({
      control: "n",
      label: ["context ", n()],
      min: 4,
      max: 20,
      step: 0.25,
      onInput: (length) => set({ n: length }),
    }),
    d: power({ control: "d", label: ["model width ", d()], min: 6, max: 14, onInput: (width) => set({ d: width }) }),
    h: power({ control: "h", label: ["heads ", heads()], min: 0, max: 7, onInput: (number) => set({ h: number }) }),
    window: power({
      control: "window",
      label: ["window ", w()],
      min: 4,
      max: 16,
      onInput: (window) => set({ window }),
    }),
  };
  const formulas = formulaTable();
  const long = longTable();
  const note = h("p", { class: "attn-note attn-two-lines" });
  const onDrag = (length) => set({ n: Math.round(2 ** (Math.round(4 * Math.log2(length)) / 4)) });
  const charts = {
    operations: chart({ panel: "operations", title: "Operations: multiply-adds", height: 380, onDrag, signal }),
    memory: chart({ panel: "memory", title: "Memory beside inputs and outputs", height: 380, onDrag, signal }),
  };

  let lines = { key: "" };
  const linesOf = (state) => {
    const key = JSON.stringify({ ...state, n: LENGTHS.includes(state.n) || state.n });
    if (key === lines.key) return lines;
    const lengths = [...new Set([...LENGTHS, state.n])].sort((a, b) => a - b);
    const line = (name, label, f) => ({ name, label, points: lengths.map((length) => [length, f(length)]), ...beside });
    return (lines = {
      key,
      operations: [
        line("projections", "projections", (length) => 4 * length * state.d ** 2),
        line("projections and feed-forward", "with feed-forward", (length) => 12 * length * state.d ** 2),
        ...variantLines(state, lengths, "operations"),
      ],
      memory: [
        line("Q, K, V and O", "Q, K, V, O", (length) => 4 * length * state.d * BYTES),
        ...variantLines(state, lengths, "memory"),
      ],
    });
  };
  const bars = h(
    "p",
    { class: "attn-note" },
    "Logarithmic bars: operations from " +
      `${DECADES.operations.map((power) => powerOfTen(10 ** power)).join(" to ")}, memory from ` +
      `${DECADES.memory.map((power) => byteSize(10 ** power)).join(" to ")}.`,
  );
  return {
    controls,
    panels: {
      operations: h("div", { class: "attn-answer" }, charts.operations.element),
      memory: h("div", { class: "attn-answer" }, charts.memory.element),
      formulas: h("div", {}, formulas.element, note),
      long: h("div", {}, panelTitle("At a context of 128k tokens", null, "attn-short"), bars, long.element),
    },
    after: [theNumbers(Object.values(charts), signal)],
    draw(now, { width }) {
      controls.variant.update(now.variant, VARIANTS);
      for (const name of ["n", "d", "h", "window"]) controls[name].update(now[name]);
      const cost = spent(now.variant, now.n, now);
      const layer = layerCost(now.n, now.d);
      const sentence = describe(
        now,
        cost,
        cost.operations / (cost.operations + layer.projections + layer.feed_forward),
      );
      formulas.update(now, cost, layer);
      setText(note, WORDS[now.variant].note(now));
      long.update(now);

      const x = {
        label: ["context length ", { sym: "n" }],
        scale: "log",
        domain: [LENGTHS[0], LONGEST],
        ticks: [32, 1024, 32768, LONGEST],
        text: (value) => (value >= LONGEST ? "1M" : value >= 1024 ? `${value / 1024}k` : String(value)),
      };
      const drawn = linesOf(now);
      const shared = {
        width,
        x,
        at: now.n,
        uprights: now.n === LONG ? [] : [{ x: LONG, text: "128k" }],
        sentence,
        ...MARGINS,
      };
      charts.operations.update({
        ...shared,
        y: { scale: "log", domain: OPERATIONS, text: powerOfTen },
        series: drawn.operations,
        notes: crossings(now, now),
      });
      charts.memory.update({
        ...shared,
        y: { scale: "log", domain: MEMORY, ticks: [1e3, 1e6, 1e9, 1e12], text: byteSize },
        series: drawn.memory,
      });
      return sentence;
    },
  };
}

/** @returns {Record<string, import("../js/ask.js").Ask>} */
const asks = () => ({
  crossing: {
    question: (state) => [
      `At width d = ${state.d}, from which context length on do scores and mixing take half of all multiply-adds?`,
    ],
    control: { kind: "slider", min: 5, max: 17, step: 0.25, text: (power) => String(Math.round(2 ** power)) },
    truth: (state) => 6 * state.d,
    words: (power, truth) => {
      const guess = Math.round(2 ** power);
      return Math.abs(Math.log2(guess / truth)) < 0.3
        ? `You said ${guess}: well put.`
        : `You said ${guess}; it is ${truth}.`;
    },
    then: (state) => ({ n: 6 * state.d }),
  },
  linear: {
    question: (state) => [
      `At width ${state.d} with ${state.h} heads, from which context length on does linear attention take fewer ` +
        "multiply-adds than full attention?",
    ],
    control: { kind: "slider", min: 4, max: 17, step: 0.25, text: (power) => String(Math.round(2 ** power)) },
    truth: (state) => Math.floor(state.d / state.h + 0.5) + 1,
    words: (power, truth) => {
      const guess = Math.round(2 ** power);
      return Math.abs(Math.log2(guess / truth)) < 0.3
        ? `You said ${guess}: well put, it is ${truth}.`
        : `You said ${guess}; it is ${truth}.`;
    },
  },
});

export default defineLab({ settings, build, asks });
