// ScoreScaleLab: many scores from one draw, raw and divided by √d_k, at every key width.
import { chart, theNumbers } from "../js/chart.js";
import { seed, select, slider } from "../js/controls.js";
import { h, setText, sym } from "../js/dom.js";
import { defineLab } from "../js/frame.js";
import { softmaxRow } from "../js/math.js";
import { fixed, scientific, significant } from "../js/numbers.js";
import { bells } from "./bells.js";
import { measure, predicted, scoresAt, startDraw, TOKENS } from "./draw.js";
import { choice, real, whole } from "../js/settings.js";
import { slices } from "../js/slices.js";

const WIDEST = 512;
const WIDTHS = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512];
const SEEDS = 9999;
const VECTORS = [
  ["independent", "independent, N(0, 1)"],
  ["uniform", "independent, uniform on (−1, 1)"],
  ["shifted", "independent, N(μ, 1)"],
  ["tied-self", "tied: a token with itself"],
  ["tied-other", "tied: two tokens"],
];
const BINS = 40;
const SIDE = 40; // of the histograms' axes, in predicted deviations of a scaled score: the same at every width
const REACH = 64; // of the axis of both bells, in predicted deviations of a scaled score
const FIRST_MS = 60; // what the first picture may take at once
const COLUMN = { least: 272, gap: 28 }; // as .attn-columns in labs.css
const MARGINS = { left: 42, right: 114 }; // alike in all four curves

const raw = [{ sym: "q" }, "·", { sym: "k" }];
const scaled = [...raw, "/√", { sym: "d", sub: "k" }];
const d_k = () => sym("d", "k");

const settings = () => ({
  d_k: whole(1, WIDEST),
  vectors: choice(VECTORS.map(([name]) => name)),
  mu: real(0, 2),
  cosine: real(0, 1),
  seed: whole(0, SEEDS),
});

/** The formula that mean and variance of q·k obey, with its numbers. */
function formula(state) {
  const [mean, variance] = predicted(state.d_k, state).map(scientific);
  const root = ["√", h("span", { class: "attn-root" }, d_k())];
  const score = () => [sym("q"), "·", sym("k")];
  const after = [
    ", and Var(",
    ...score(),
    "/",
    ...root,
    ") = ",
    scientific(predicted(state.d_k, state)[1] / state.d_k),
  ];
  const Var = () => ["Var(", ...score(), ") = "];
  const E = () => ["E(", ...score(), ") = "];
  return {
    independent: () => [...Var(), d_k(), ` = ${variance}`, ...after],
    uniform: () => [...Var(), d_k(), "(⅓)² = ", d_k(), `/9 = ${variance}`, ...after],
    shifted: () => [
      ...E(),
      d_k(),
      sym("μ"),
      `² = ${mean}, `,
      ...Var(),
      d_k(),
      "(1 + 2",
      sym("μ"),
      `²) = ${variance}`,
      ...after,
    ],
    "tied-self": () => [
      sym("q"),
      " = ",
      sym("k"),
      ": ",
      ...E(),
      d_k(),
      ` = ${mean}, `,
      ...Var(),
      "2",
      d_k(),
      ` = ${variance}`,
      ...after,
    ],
    "tied-other": () => [
      ...E(),
      sym("c"),
      d_k(),
      ` = ${mean}, `,
      ...Var(),
      d_k(),
      "(1 + ",
      sym("c"),
      `²) = ${variance}`,
      ...after,
    ],
  }[state.vectors]();
}

/** A histogram around a predicted mean, on an axis that reaches `side` to both sides; what lies beyond is counted. */
function histogram(scores, factor, mean, variance, side) {
  // edges change seldom while the spread grows; 1 may have come out as 1 + 2⁻⁵²
  const reach = Math.min(side, 4 * 2 ** Math.ceil(Math.log2(variance) / 2 - 1e-9));
  const width = (2 * reach) / BINS;
  const counts = new Float64Array(BINS);
  let beyond = 0;
  for (const score of scores) {
    const bin = Math.floor((factor * score - mean + reach) / width);
    if (bin >= 0 && bin < BINS) counts[bin]++;
    if (Math.abs(factor * score - mean) > side) beyond++;
  }
  const percent = Math.round((100 * beyond) / scores.length);
  const normal = (x) => Math.exp(-((x - mean) ** 2) / (2 * variance)) / Math.sqrt(2 * Math.PI * variance);
  const bars = Array.from(counts, (count, bin) => [
    mean - reach + (bin + 0.5) * width,
    count / (scores.length * width),
    width,
  ]);
  const curve = Array.from({ length: 101 }, (_, k) => mean + reach * (k / 50 - 1)).map((x) => [x, normal(x)]);
  return {
    domain: /** @type {[number, number]} */ ([mean - side, mean + side]),
    notes: [
      ...(percent ? [{ x: mean + side, y: normal(mean), text: `${percent} % beyond`, side: "left", ring: false }] : []),
      {
        x: mean + 0.9 * Math.sqrt(variance),
        y: normal(mean + 0.9 * Math.sqrt(variance)),
        text: ["N(", scientific(mean), ", ", scientific(variance), ")"].join(""),
        side: "beside",
        ring: false,
      },
    ],
    top: 1.06 * Math.max(normal(mean), ...bars.map(([, density]) => density)),
    series: [
      { name: "density", label: "", kind: "bars", points: bars },
      { points: curve, color: "ink", dash: "none", thin: true, quiet: true },
    ],
  };
}

/** @type {[string[], (value: number) => string, string][]} */
const MEASURES = [
  [["mean"], fixed, "mean"],
  [["predicted"], fixed, "predicted_mean"],
  [["variance"], scientific, "variance"],
  [["predicted"], scientific, "predicted_variance"],
  [["largest weight"], fixed, "largest_weight"],
  [["entropy, bits"], fixed, "entropy"],
  [["median ‖∇", "q", "‖"], scientific, "median_gradient"],
  [["mean ‖∇", "q", "‖"], scientific, "mean_gradient"],
];

/** Measured numbers, raw and scaled, and under two of them what is predicted. */
function measuredTable() {
  const cells = MEASURES.map((_, row) => [0, 1].map((col) => h("td", { "data-row": row, "data-col": col })));
  const score = () => [sym("q"), "·", sym("k")];
  const element = h(
    "table",
    { "data-panel": "measured", class: "attn-measured" },
    h("caption", { class: "attn-sr" }, "What is measured, raw and scaled, beside what is predicted"),
    h(
      "thead",
      {},
      h("tr", {}, h("td"), h("th", { scope: "col" }, score()), h("th", { scope: "col" }, score(), "/√", d_k())),
    ),
    h(
      "tbody",
      {},
      MEASURES.map(([[words, sub, after], , name], row) =>
        h(
          "tr",
          { class: name.startsWith("predicted") && "attn-predicted" },
          h("th", { scope: "row" }, words, sub && h("sub", {}, sub), after),
          cells[row],
        ),
      ),
    ),
  );
  return {
    element,
    update({ raw, scaled }) {
      MEASURES.forEach(([, text, name], row) => {
        [raw, scaled].forEach((each, col) => {
          cells[row][col].dataset.value = each[name];
          setText(cells[row][col], text(each[name]));
        });
      });
    },
  };
}

function describe(d_k, { raw, scaled }) {
  const said = (each) =>
    `spread by ${significant(Math.sqrt(each.variance))} (predicted ${significant(Math.sqrt(each.predicted_variance))}), ` +
    `and the largest weight of a row is ${fixed(each.largest_weight)} on average`;
  return `At dₖ = ${d_k} raw scores ${said(raw)}; divided by √dₖ they ${said(scaled)}.`;
}

/** The lines of one quantity over the key width. */
const lines = (by, name) => [
  {
    name: "raw",
    label: "raw",
    color: "accent",
    dash: "none",
    points: by.map(([width, { raw }]) => [width, raw[name]]),
  },
  {
    name: "scaled",
    label: "scaled",
    color: "cool",
    dash: "none",
    points: by.map(([width, { scaled }]) => [width, scaled[name]]),
  },
];
const gradients = (by) =>
  [
    ["mean", "5 3"],
    ["median", "none"],
  ].flatMap(([which, dash]) =>
    lines(by, `${which}_gradient`).map((line) => ({
      ...line,
      name: `${line.name}, ${which}`,
      label: `${line.label} ${which}`,
      dash,
    })),
  );

function build({ signal, set, redraw, root }) {
  const controls = {
    d_k: slider({
      control: "d_k",
      label: ["key width ", d_k()],
      min: 0,
      max: WIDTHS.length - 1,
      toInput: (width) => WIDTHS.findLastIndex((stop) => stop <= width),
      fromInput: (stop) => WIDTHS[stop],
      text: String,
      signal,
      onInput: (width) => set({ d_k: width }),
    }),
    vectors: select({ control: "vectors", label: "vectors", signal, onInput: (vectors) => set({ vectors }) }),
    seed: seed({ label: "seed", most: SEEDS, signal, onInput: (value) => set({ seed: value }) }),
    mu: slider({
      control: "mu",
      label: ["mean ", sym("μ")],
      min: 0,
      max: 2,
      step: 0.05,
      text: significant,
      signal,
      onInput: (mu) => set({ mu }),
    }),
    cosine: slider({
      control: "cosine",
      label: ["cosine ", sym("c")],
      min: 0,
      max: 1,
      step: 0.05,
      text: significant,
      signal,
      onInput: (cosine) => set({ cosine }),
    }),
  };
  const claim = h("p", { class: "attn-equation" });
  const table = measuredTable();
  const tied = h(
    "p",
    { class: "attn-note" },
    "Tied: one map for both, ",
    sym("W", "Q"),
    " = ",
    sym("W", "K"),
    ", so that a token’s key is its query. Tokens have ‖x‖² = d and, any two of them, cosine ",
    sym("c"),
    ". The tokens of a layer share its map: one draw wanders more, so resample.",
  );
  const note = h(
    "div",
    { class: "attn-notes" },
    h(
      "p",
      { class: "attn-note" },
      "One draw: 128 layers of 8 tokens, 1024 queries with 8 keys each. Every key width takes the " +
        "first coordinates of the same vectors. Curves: the normal distribution with the predicted " +
        "mean and variance.",
    ),
    h(
      "p",
      { class: "attn-note" },
      "‖∇",
      h("sub", {}, "q"),
      "‖: how strongly a loss that reads a query’s output in a random direction pulls on the query.",
    ),
    tied,
  );
  const charts = {
    raw: chart({ panel: "raw", title: ["Raw scores ", ...raw], height: 150 }),
    scaled: chart({ panel: "scaled", title: ["Scaled scores ", ...scaled], height: 150 }),
    variance: chart({ panel: "variance", title: "Variance", height: 140 }),
    largest_weight: chart({ panel: "largest_weight", title: "Largest weight of a row", height: 140 }),
    entropy: chart({ panel: "entropy", title: "Entropy of a row, bits", height: 156 }),
    gradient: chart({ panel: "gradient", title: ["Gradient ‖∇", { sub: "q" }, "‖ of a query"], height: 156 }),
  };
  const grid = (...names) =>
    h(
      "div",
      { class: "attn-columns" },
      names.map((name) => charts[name].element),
    );
  const numbers = theNumbers(Object.values(charts), signal);

  // The draw: done in slices, kept while only the width or the shape of the vectors changes
  let wanted = null;
  let current = null; // { draw, settings, by }: the last whole draw, or as much of the first as is known
  let drawn = { key: "", draw: null };
  const task = slices(() => redraw());
  const keyOf = ({ vectors, seed: number }, widths) => `${vectors === "uniform"} ${number} ${widths}`;
  const widthsFor = (width) => (WIDTHS.includes(width) ? WIDTHS : [...WIDTHS, width].sort((a, b) => a - b));
  const jobOf = (now) => ({
    settings: { vectors: now.vectors, mu: now.mu, cosine: now.cosine },
    widths: widthsFor(now.d_k),
    key: keyOf(now, widthsFor(now.d_k)),
    seed: now.seed,
  });
  const same = (a, b) => a && b && a.key === b.key && JSON.stringify(a.settings) === JSON.stringify(b.settings);

  function* work(job, into) {
    if (drawn.key !== job.key) {
      const { draw, run } = startDraw({
        seed: job.seed,
        uniform: job.settings.vectors === "uniform",
        widths: job.widths,
      });
      for (const _ of run()) {
        const width = [...draw.kept.keys()].at(-1);
        if (width && !into.by.has(width)) into.by.set(width, measure(draw, width, job.settings));
        into.draw = draw;
        yield;
      }
      drawn = { key: job.key, draw };
    } else into.draw = drawn.draw;
    for (const width of job.widths)
      if (!into.by.has(width)) {
        into.by.set(width, measure(into.draw, width, job.settings));
        yield;
      }
    into.whole = true;
    current = into;
  }

  /** Begin what is wanted unless something is being worked on: that is ended first, so that a drag shows pictures. */
  function follow(now) {
    const next = jobOf(now);
    if (wanted && !same(wanted, next)) task.touch();
    wanted = next;
    if (task.busy || same(current?.whole && current.job, wanted)) return;
    const into = { job: wanted, draw: null, by: new Map(), whole: false };
    current ??= into;
    task.start(work(wanted, into), current === into ? FIRST_MS : 0);
  }

  let pictured = { parts: [] }; // what the picture shows now
  let series = null; // of the curves, made anew for a new draw only
  function seriesOf(by) {
    if (series?.by === by && series.size === by.size) return series;
    const points = [...by];
    const make = (name) => lines(points, name);
    return (series = {
      by,
      size: by.size,
      variance: make("variance"),
      largest_weight: make("largest_weight"),
      entropy: make("entropy"),
      gradient: gradients(points),
    });
  }

  const both = bells();

  return {
    controls,
    panels: {
      bells: both.element,
      gradient: h("div", { class: "attn-columns" }, charts.gradient.element, h("div", {}, table.element)),
      curves: grid("variance", "largest_weight", "entropy"),
      measured: h("div", { class: "attn-beside-note" }, note),
      histograms: h("div", {}, claim, grid("raw", "scaled")),
    },
    after: [numbers],
    draw(now, { width, asking, guess }) {
      controls.d_k.update(now.d_k);
      controls.vectors.update(now.vectors, VECTORS);
      controls.seed.update(now.seed, true);
      controls.mu.update(now.mu);
      controls.cosine.update(now.cosine);
      controls.mu.element.hidden = now.vectors !== "shifted";
      controls.cosine.element.hidden = !now.vectors.startsWith("tied");
      tied.hidden = !now.vectors.startsWith("tied");
      claim.replaceChildren(...formula(now));
      follow(now);
      root.setAttribute("aria-busy", task.busy);

      const shown = current.by.has(now.d_k) ? now.d_k : null;
      if (!shown) return "The scores are being drawn.";
      const picture = [current, current.by.size, shown, width, asking, guess];
      // what is wanted is still being worked on
      if (picture.every((part, at) => part === pictured.parts[at])) return pictured.sentence;
      const result = current.by.get(shown);
      const { settings: how } = current.job;
      table.update(result);
      const sentence = describe(shown, result);
      const columns = width >= 2 * COLUMN.least + COLUMN.gap ? 2 : 1;
      const each = Math.floor((width - (columns - 1) * COLUMN.gap) / columns);
      const scores = scoresAt(current.draw, shown, how);
      const bell = (name, formula, factor) => {
        const { predicted_mean: mean, predicted_variance, variance } = result[name.toLowerCase()];
        const weights = new Float64Array(TOKENS);
        softmaxRow(
          scores.subarray(0, TOKENS).map((score) => factor * score),
          0,
          TOKENS,
          1,
          weights,
        );
        return {
          name: `${name} scores`,
          formula,
          scores,
          factor,
          mean,
          spread: Math.sqrt(variance),
          weights: Array.from(weights),
          ghost: asking && name === "Raw" && guess ? guess * Math.sqrt(predicted_variance) : null,
        };
      };
      both.update({
        width,
        reach: REACH * Math.sqrt(result.scaled.predicted_variance),
        sentence,
        pair: [bell("Raw", ["q", " · ", "k"], 1), bell("Scaled", ["q", " · ", "k", " / √", "d", "ₖ"], shown ** -0.5)],
      });
      for (const [name, factor, color] of /** @type {[string, number, string][]} */ ([
        ["raw", 1, "accent"],
        ["scaled", shown ** -0.5, "cool"],
      ])) {
        const { predicted_mean, predicted_variance, variance } = result[name];
        const {
          domain,
          top,
          series: bars,
          notes,
        } = histogram(
          scores,
          factor,
          predicted_mean,
          predicted_variance,
          SIDE * Math.sqrt(result.scaled.predicted_variance),
        );
        bars[0].color = color;
        charts[name].update({
          width: each,
          x: { label: name === "raw" ? raw : scaled, domain },
          y: { domain: [0, top], bare: true },
          series: bars,
          notes,
          sentence: `Variance ${scientific(variance)}, predicted ${scientific(predicted_variance)}.`,
        });
      }
      const x = {
        label: ["key width ", { sym: "d", sub: "k" }],
        scale: "log",
        base: 2,
        domain: [1, WIDEST],
        ticks: [1, 8, 64, 512],
        text: String,
      };
      const over = seriesOf(current.by);
      const spread = [...current.by.values()].flatMap(({ raw, scaled }) => [raw.variance, scaled.variance]);
      const steepest = Math.max(
        ...[...current.by.values()].flatMap(({ raw, scaled }) => [raw.mean_gradient, scaled.mean_gradient]),
      );
      const axes = {
        variance: {
          scale: "log",
          domain: [Math.min(0.1, ...spread), Math.max(...spread)],
          ticks: [0.1, 1, 10, 100, 1000].filter((tick) => tick <= Math.max(...spread)),
        },
        largest_weight: { domain: [0, 1], ticks: [0, 0.5, 1] },
        entropy: { domain: [0, 3], ticks: [0, 1, 2, 3] },
        gradient: { domain: [0, Math.max(0.1, steepest)] },
      };
      for (const [name, y] of Object.entries(axes))
        charts[name].update({
          width: each,
          left: MARGINS.left,
          right: MARGINS.right,
          x: { ...x, untitled: name === "variance" || name === "largest_weight" },
          y,
          series: over[name],
          at: shown,
          sentence,
        });
      pictured = { parts: picture, sentence };
      return sentence;
    },
    stop: () => task.stop(),
  };
}

const times = (value) => `${significant(value)} ×`;

/** @returns {Record<string, import("../js/ask.js").Ask>} */
const asks = () => ({
  widen: {
    question: (state) => [
      `At width ${state.d_k} you see the raw bell. How many times as wide will it be at width ${4 * state.d_k}?`,
    ],
    control: { kind: "slider", min: 0.5, max: 6, step: 0.1, text: times },
    truth: (state) => Math.sqrt(predicted(4 * state.d_k, state)[1] / predicted(state.d_k, state)[1]),
    words: (guess, truth) =>
      Math.abs(guess - truth) < 0.15
        ? `You said ${times(guess)}, and so it is: four times the width, twice the spread.`
        : `You said ${times(guess)}; it is ${times(truth)}.`,
    then: (state) => ({ d_k: 4 * state.d_k }),
  },
});

export default defineLab({ settings, build, asks });
