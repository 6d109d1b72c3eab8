// ContributionLab: the edges of a trained model, by weight, by what they carry and by what their cut costs; cut them
// and see.
import { colorLimit } from "../js/colors.js";
import { bars } from "../js/bars.js";
import { chart, inHtml } from "../js/chart.js";
import { begin, contributions, spearman, spearmanCeiling, unpack } from "./edges.js";
import { checkbox, seed, select, slider } from "../js/controls.js";
import { h, panelTitle, patch, setText, textButton } from "../js/dom.js";
import { uniforms } from "../js/draws.js";
import { defineLab } from "../js/frame.js";
import { fitMultiples, heatmap } from "../js/heatmap.js";
import { meters } from "../js/meters.js";
import { fixed } from "../js/numbers.js";
import { choice, flag, inOrder, tuples, whole } from "../js/settings.js";
import { strips } from "../js/strips.js";

const [SHORTEST, LONGEST] = [4, 12];
const SEEDS = 9999;
const LAYERS = 2;
const LISTED = 8; // edges in the table
const NAMED = 3; // in the chart
const LARGE = 0.9; // a weight
const SMALL = 0.01; // nats
const weight = { sym: "a", sub: "ij" };
const MEASURES = {
  weight: { words: "attention weight", label: [weight] },
  norm: {
    words: "length of what it carries",
    label: ["‖", weight, " ", { sym: "v", sub: "j" }, " ", { sym: "W", sub: "O" }, "‖"],
  },
  effect: { words: "what its cut costs", label: ["log ", { sym: "p" }, " lost, nats"] },
};
const NAMES = Object.keys(MEASURES);
const WORDS = NAMES.map((name) => [name, MEASURES[name].words]);

function settings(state, model) {
  const heads = model.get("heads");
  const period = whole(SHORTEST, LONGEST);
  const n = 2 * period.clean(state.period) - 1;
  const isHead = ([layer, head]) => layer < LAYERS && head < heads;
  return {
    model: choice([model.get("model")]),
    period,
    seed: whole(0, SEEDS),
    sort: choice(NAMES),
    renormalise: flag,
    cut: tuples(
      4,
      (edge) => isHead(edge) && edge[2] < n && edge[3] <= edge[2],
      "layer,head,query,key of each edge, key ≤ query",
    ),
    zero: tuples(2, isHead, "layer,head of each silent head"),
  };
}

const WIDE_PX = 640; // the arcs stand beside the scatter
const GAP_PX = 36;

/** The sequence: `period` tokens drawn, twice without the last, which is the right answer. */
function sequence({ period, seed: drawn }, vocabulary) {
  const darts = uniforms(drawn, 0, vocabulary);
  const once = inOrder(vocabulary)
    .sort((a, b) => darts[a] - darts[b])
    .slice(0, period);
  const tokens = [...once, ...once].slice(0, -1);
  return {
    once,
    tokens,
    n: tokens.length,
    target: once.at(-1),
    names: tokens.map((_, i) => String.fromCharCode(65 + (i % period)) + (i < period ? "" : "′")),
  };
}

const size = (edge, measure) => Math.round(Math.abs(edge[measure]) * 1e9); // rounding errors are no order
const ranked = (edges, measure) => [...edges].sort((a, b) => size(b, measure) - size(a, measure));
function toggled(list, item) {
  const rest = list.filter((each) => String(each) !== String(item));
  return rest.length < list.length ? rest : [...list, item];
}
const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

function describe({ edges, byEffect, probabilities, logp, target, names, nameOf }, { cut, zero, period }) {
  const done = [cut.length && `${count(cut.length, "edge")} cut`, zero.length && `${count(zero.length, "head")} silent`]
    .filter(Boolean)
    .join(" and ");
  const [first] = byEffect;
  const dear =
    first && size(first, "effect") > 0
      ? `The edge that matters most is ${nameOf(first.at)}, weight ${fixed(first.weight)}: its cut ` +
        `costs ${fixed(first.effect)} nats.`
      : "No edge that is left has any effect.";
  const large = edges.filter(({ weight }) => weight > LARGE);
  const idle = large.filter(({ effect }) => Math.abs(effect) < SMALL).length;
  return (
    `${done ? `With ${done}, the` : "The"} right answer ${names[period - 1]} has probability ` +
    `${fixed(probabilities[target], 3)} (log p ${fixed(logp)}). ${dear} Of ` +
    `${count(large.length, "edge")} with a weight over ${LARGE}, ${idle} change log p by less than ` +
    `${SMALL}.`
  );
}

function build({ model, signal, set, state }) {
  const shapes = model.get("shapes");
  const [[, [vocabulary, d]], , [, [, width]]] = shapes; // E, P, W_Q of a head
  const heads = model.get("heads");
  const trained = { params: unpack(model.get("parameters"), shapes), heads, d, vocabulary, width };
  const everyHead = inOrder(LAYERS * heads).map((at) => [Math.floor(at / heads), at % heads]);
  const titleOf = (/** @type {number[]} */ [layer, head]) =>
    `layer ${layer + 1}${heads > 1 ? `, head ${head + 1}` : ""}`;
  let begun = null;
  let result = null;

  const toggle = (edge) => set({ cut: toggled(state().cut, edge) });
  const controls = {
    seed: seed({ label: "sequence", most: SEEDS, signal, onInput: (value) => set({ seed: value }) }),
    period: slider({
      control: "period",
      label: "period",
      min: SHORTEST,
      max: LONGEST,
      text: String,
      signal,
      onInput: (period) => set({ period }),
    }),
    sort: select({ control: "sort", label: "edges by", signal, onInput: (sort) => set({ sort }) }),
    renormalise: checkbox({
      control: "renormalise",
      label: "after a cut, let the row’s other weights grow",
      signal,
      onInput: (renormalise) => set({ renormalise }),
    }),
  };
  const silencers = everyHead.map((head) =>
    checkbox({
      control: `zero-${head.join("-")}`,
      label: `silence ${titleOf(head)}`,
      signal,
      onInput: () => set({ zero: toggled(state().zero, head) }),
    }),
  );

  const readout = h("p", { class: "attn-readout" });
  const onCell = (head) => (i, j) => {
    const edge = result?.all.find(({ at }) => String(at) === `${[head, i, j]}`);
    if (!edge) return setText(readout, "Choose a cell to cut its edge or to put it back. The framed row answers.");
    const { at, weight, norm, effect, cut } = edge;
    setText(
      readout,
      `${result.nameOf(at)} (query ${i}, key ${j}, from 0): ` +
        `${cut ? "cut" : `weight ${fixed(weight, 3)}, carries ${fixed(norm)}, its cut costs ${fixed(effect)} nats`}`,
    );
  };
  const panelsOf = (name) =>
    everyHead.map((head, which) =>
      heatmap({
        panel: `${name}s`,
        kind: name === "effect" ? "scores" : "weights",
        title: titleOf(head),
        attributes: { "data-head": which },
        onCell: onCell(head),
        onRow: (i, j) => j <= i && toggle([...head, i, j]),
        signal,
      }),
    );
  const panels = Object.fromEntries(NAMES.map((name) => [name, panelsOf(name)]));
  const flow = h("div", { class: "attn-flow attn-edges" });

  const cuts = h("div", { class: "attn-cuts", role: "group", "aria-label": "Edges that are cut", tabindex: -1 });
  cuts.addEventListener(
    "click",
    ({ target }) => {
      if (!target.dataset.edge) return;
      cuts.focus({ preventScroll: true }); // the button goes away
      toggle(target.dataset.edge.split(",").map(Number));
    },
    { signal },
  );

  const answers = bars({ panel: "answers", title: "What comes next?", heads: ["token", "probability"] });
  const headings = ["weight", "carries", "nats lost"].map((words) => h("th", { scope: "col" }, words));
  const rows = inOrder(LISTED).map((rank) => {
    const button = textButton("cut");
    const cells = NAMES.map((_, col) => h("td", { "data-row": rank, "data-col": col }));
    button.addEventListener("click", () => result?.ranking[rank] && toggle(result.ranking[rank].at), { signal });
    return { button, cells, tr: h("tr", {}, h("th", { scope: "row" }, button), cells) };
  });
  const table = h(
    "div",
    { class: "attn-panel" },
    panelTitle(`The first ${LISTED} edges`, h("span", { class: "attn-formula" }, "choose one to cut it")),
    h(
      "div",
      { class: "attn-scroll attn-measured attn-edgelist" },
      h(
        "table",
        { "data-panel": "edges", "aria-label": "The first edges" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "query ← key"), headings)),
        h(
          "tbody",
          {},
          rows.map(({ tr }) => tr),
        ),
      ),
    ),
  );
  let points = []; // the edges that the scatter shows, layer by layer
  const scatter = chart({
    panel: "scatter",
    title: "What each cut costs: press a point to cut it",
    height: 300,
    onPick(layer, at, pressed) {
      const edge = points[layer]?.[at];
      light(edge);
      if (edge && pressed) toggle(edge.at);
    },
    signal,
  });
  const reading = strips({
    onWord(strip, place) {
      const edge = shownRows[strip];
      if (edge && place <= edge.row) toggle([...edge.head, edge.row, place]);
    },
    signal,
  });
  let shownRows = [];
  /** Let one edge stand out wherever it is shown. */
  function light(edge) {
    for (const name of NAMES)
      panels[name].forEach((heat, which) => {
        const own = edge && String(everyHead[which]) === String(edge.at.slice(0, 2));
        heat.light(own ? edge.at[2] : -1, own ? edge.at[3] : -1);
      });
    if (edge) onCell([edge.at[0], edge.at[1]])(edge.at[2], edge.at[3]);
    else onCell()();
  }
  const meter = meters();
  onCell()();

  function compute(now) {
    const drawn = `${now.seed} ${now.period}`;
    if (begun?.drawn !== drawn) {
      const read = sequence(now, vocabulary);
      begun = { drawn, read, first: begin(trained, read.tokens) };
    }
    const { read, first } = begun;
    const run = (state) => contributions(trained, first, { ...state, target: read.target });
    const found = run(now);
    const intact = now.cut.length + now.zero.length ? (begun.intact ??= run({ cut: [], zero: [] }).logp) : found.logp;
    const all = found.edges();
    const edges = all.filter(({ cut, silent }) => !cut && !silent);
    const byEffect = ranked(edges, "effect");
    const nameOf = (at) => `${titleOf(at)}: ${read.names[at[2]]} ← ${read.names[at[3]]}`;
    return { ...found, ...read, intact, all, edges, byEffect, nameOf, ranking: ranked(edges, now.sort) };
  }

  function drawPanels({ n, names, all }, { sort }, { theme, width }) {
    const { words, label } = MEASURES[sort];
    const shown = panels[sort];
    if (flow.firstChild !== shown[0].element) flow.replaceChildren(...shown.map(({ element }) => element));
    const cell = fitMultiples(flow, {
      width,
      rows: names,
      cols: names,
      titles: ["‖aij vj WO‖, silent"],
      lines: width < 500 ? 4 : heads,
    });
    const places = inOrder(n);
    const forbidden = inOrder(n * n).map((at) => at % n > at / n);
    const view = {
      n,
      m: n,
      theme,
      cell,
      rows: names,
      cols: names,
      rowIds: places,
      colIds: places,
      current: n - 1,
      forbidden,
    };
    if (sort !== "weight") view.limit = colorLimit(all.map((edge) => edge[sort]));
    shown.forEach((heat, which) => {
      const own = all.filter(({ at }) => at[0] * heads + at[1] === which);
      const [values, later] = [new Float64Array(n * n), []];
      for (const {
        at: [, , i, j],
        cut,
        [sort]: value,
      } of own)
        [values[i * n + j], later[i * n + j]] = [value, cut];
      const formulaKey = own[0].silent;
      heat.update({
        ...view,
        values,
        later,
        formulaKey,
        boxes: own
          .filter(({ cut }) => cut)
          .map(({ at: [, , row, col] }) => ({ kind: "word", row, col, rows: 1, cols: 1, word: "×" })),
        sentence: `${words}, ${titleOf(everyHead[which])}`,
        formula: () => [...inHtml(label), formulaKey ? ", silent" : ""],
      });
    });
  }

  function drawCuts({ nameOf }, { cut }) {
    patch(cuts, [
      h("span", {}, cut.length ? "Cut:" : "Nothing is cut."),
      ...cut.map((edge) =>
        h(
          "button",
          { type: "button", class: "attn-chip", "data-edge": edge, "aria-label": `Put back ${nameOf(edge)}` },
          `${nameOf(edge)} ×`,
        ),
      ),
    ]);
  }

  /** What the framed row reads in layer 2, and what layer 1 has read where that looks most. */
  function drawReading({ n, all, names }, width, high) {
    /** @param {number[]} at */
    const weightsOf = (at, row) => {
      const [layer, head] = at;
      const weights = new Float64Array(n);
      const gone = new Array(n).fill(false);
      for (const { at, weight, cut } of all)
        if (at[0] === layer && at[1] === head && at[2] === row) [weights[at[3]], gone[at[3]]] = [weight, cut];
      return { weights, gone };
    };
    const upper = inOrder(heads).map((head) => ({ head: [LAYERS - 1, head], row: n - 1 }));
    const sums = inOrder(n).map((j) => upper.reduce((sum, { head, row }) => sum + weightsOf(head, row).weights[j], 0));
    const via = sums.indexOf(Math.max(...sums));
    shownRows = [...upper, ...inOrder(heads).map((head) => ({ head: [0, head], row: via }))];
    reading.update({
      width,
      words: names,
      columns: heads,
      high,
      strips: shownRows.map(({ head, row }) => ({
        title: width / heads < 260 ? titleOf(head) : `${titleOf(head)}: what ${names[row]} reads`,
        row,
        ...weightsOf(head, row),
      })),
      ties: inOrder(heads).map((k) => ({ from: [k, via], to: [heads + k, via] })),
      sentence: `What ${names[n - 1]} reads in layer 2, and what ${names[via]} had read in layer 1.`,
    });
  }

  function drawScatter({ edges, byEffect, names }, { sort }, width) {
    const across = sort === "norm" ? "norm" : "weight";
    points = inOrder(LAYERS).map((layer) => edges.filter(({ at }) => at[0] === layer));
    const costs = edges.map(({ effect }) => effect);
    // the axis of a sequence only ever grows: what is cut then moves the points, not the scale
    begun.low = Math.min(begun.low ?? 0, 5 * Math.floor((Math.min(0, ...costs) + SMALL) / 5));
    begun.high = Math.max(begun.high ?? 0, 5 * Math.ceil((Math.max(1, ...costs) * 1.05) / 5));
    const dear = byEffect.slice(0, NAMED).filter(({ effect }) => Math.abs(effect) >= SMALL);
    scatter.update({
      width,
      x: {
        label: [`${MEASURES[across].words} `, ...MEASURES[across].label],
        domain: [0, across === "weight" ? 1 : Math.max(1, ...edges.map(({ norm }) => norm)) * 1.02],
      },
      y: { label: "nats lost", domain: [begun.low, begun.high] },
      series: ["accent", "cool"].map((color, layer) => ({
        name: `layer ${layer + 1}`,
        kind: "dots",
        cap: layer ? "square" : "round",
        color,
        quiet: true,
        points: points[layer].map((edge) => [edge[across], edge.effect]),
      })),
      notes: dear.map((edge) => ({
        x: edge[across],
        y: edge.effect,
        text: `${names[edge.at[2]]} ← ${names[edge.at[3]]}`,
        ring: false,
      })),
      sentence: `${edges.length} edges; the dearest are named.`,
    });
  }

  const side = h("div", { class: "attn-edgeside" }, reading.element, answers.element);
  scatter.element.classList.add("attn-answer");
  const what = h("div", { class: "attn-edgeview" }, scatter.element, side);
  return {
    controls: {
      ...controls,
      ...Object.fromEntries(everyHead.map((head, at) => [`zero-${head.join("-")}`, silencers[at]])),
    },
    panels: {
      scatter: h("div", {}, what, cuts),
      maps: h("div", { class: "attn-answer" }, flow),
      edges: h("div", { class: "attn-answer" }, table),
      spread: meter.element,
    },
    readout,
    draw(now, look) {
      result = compute(now);
      const { probabilities, once, names, edges, ranking, logp, intact } = result;
      controls.seed.update(now.seed, true);
      controls.period.update(now.period);
      controls.sort.update(now.sort, WORDS);
      controls.renormalise.update(now.renormalise);
      silencers.forEach((box, at) => box.update(now.zero.some((head) => String(head) === String(everyHead[at]))));
      drawPanels(result, now, look);
      drawCuts(result, now);

      const chances = once.map((token) => probabilities[token]);
      const others = chances.reduce((rest, p) => rest - p, 1);
      const says = [...names.slice(0, now.period - 1), `${names[now.period - 1]}, right`, "any other"];
      answers.update({
        most: 1,
        rows: [...chances, others].map((value, at) => ({ name: says[at], value, text: fixed(value, 3) })),
      });
      rows.forEach(({ button, cells, tr }, rank) => {
        const entry = ranking[rank];
        tr.hidden = !entry;
        if (!entry) return;
        setText(button, result.nameOf(entry.at));
        NAMES.forEach((name, col) => {
          cells[col].dataset.value = entry[name];
          setText(cells[col], fixed(entry[name]));
        });
      });
      const beside = look.width >= WIDE_PX;
      drawScatter(result, now, beside ? Math.round(0.5 * look.width) - GAP_PX : look.width);
      drawReading(result, beside ? Math.round(0.5 * look.width) : look.width, heads > 1 ? 38 : 52);
      const agreement = (name) => {
        const pairs = [edges.map((edge) => edge[name]), edges.map(({ effect }) => Math.abs(effect))];
        const [found, ceiling] = [spearman(...pairs), spearmanCeiling(...pairs)];
        return Number.isNaN(found) ? "none" : `${fixed(found)} of at most ${fixed(ceiling)}`;
      };
      meter.update({
        "log p of the right answer": [`${fixed(logp)} nats`, `, ${fixed(intact)} intact`],
        "rank correlation with the size of the effect: weight": agreement("weight"),
        [MEASURES.norm.words]: agreement("norm"),
      });
      return describe(result, now);
    },
  };
}

/**
 * @param {import("../js/store.js").Model} model
 * @returns {Record<string, import("../js/ask.js").Ask>}
 */
const asks = (model) => ({
  dearest: {
    question: () => [
      "E′ reads F in layer 2, and F had read E in layer 1. Which of the two edges costs more when it is cut?",
    ],
    control: {
      kind: "choice",
      choices: () => [
        ["2", "E′ ← F, in layer 2"],
        ["1", "F ← E, in layer 1"],
      ],
    },
    truth(state) {
      const shapes = model.get("shapes");
      const [[, [vocabulary, d]], , [, [, width]]] = shapes;
      const trained = {
        params: unpack(model.get("parameters"), shapes),
        heads: model.get("heads"),
        d,
        vocabulary,
        width,
      };
      const read = sequence(state, vocabulary);
      const edges = contributions(trained, begin(trained, read.tokens), { ...state, target: read.target }).edges();
      return String(ranked(edges, "effect")[0].at[0] + 1);
    },
    words: (guess, truth) => (guess === truth ? "Yes." : `It is the edge in layer ${truth}.`),
  },
});

export default defineLab({ settings, build, asks });
