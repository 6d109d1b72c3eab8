// TrainingLab: a model learns; its loss, its answers and the attention of every head at each stored step.
import { chart, theNumbers } from "../js/chart.js";
import { select, stepper } from "../js/controls.js";
import { h, setText, textWidth } from "../js/dom.js";
import { defineLab } from "../js/frame.js";
import { fitMultiples, heatmap } from "../js/heatmap.js";
import { fixed, inCell } from "../js/numbers.js";
import { strips } from "../js/strips.js";
import { choice, inOrder, nearest, whole } from "../js/settings.js";

const BEAT_MS = 350;
const NARROW_PX = 500;
const WIDE_PX = 620; // the curves stand beside the arcs
const GAP_PX = 36;
const ARCS_PX = 72;
const CELL_PX = 22;
const LEFT = 34; // alike in all charts, so that their steps stand above each other

const runOf = (name, model) => model.get("runs").find((run) => run.name === name) ?? model.get("runs")[0];
const heads = ({ layers, heads: each }) => layers * each;
const nameOf = (run, head) =>
  `layer ${Math.floor(head / run.heads) + 1}${run.heads > 1 ? `, head ${(head % run.heads) + 1}` : ""}`;
const capital = (words) => words[0].toUpperCase() + words.slice(1);
const word = ({ vocabulary }, token) => (vocabulary <= 26 ? String.fromCharCode(97 + token) : String(token));

function settings(state, model) {
  const run = runOf(state.run, model);
  return {
    run: choice(
      model.get("runs").map(({ name }) => name),
      run.name,
    ),
    step: nearest(run.steps, run.begin),
    head: whole(0, heads(run) - 1),
    query: whole(0, run.tokens.length - 1),
  };
}

/**
 * The weights of every head at a stored moment: thousandths, two digits of base 36 each; of a causal model without the
 * keys to come.
 */
function weightsOf(run, moment) {
  const n = run.tokens.length;
  const text = run.weights[moment];
  let at = 0;
  return inOrder(heads(run)).map(() => {
    const A = new Float64Array(n * n);
    for (let i = 0; i < n; i++)
      for (let j = 0; j < (run.causal ? i + 1 : n); j++, at += 2)
        A[i * n + j] = parseInt(text.slice(at, at + 2), 36) / 1000;
    return A;
  });
}

const mostRead = (A, query, n) => {
  const a = A.subarray(query * n, query * n + n);
  return a.indexOf(Math.max(...a));
};

function describe(run, weights, moment, { step, head, query }) {
  const n = run.tokens.length;
  const most = mostRead(weights[head], query, n);
  const token = (at) => `${word(run, run.tokens[at])} at place ${at + 1}`;
  return (
    `After ${step} steps the loss is ${fixed(run.loss[moment], 3)} nats, and ` +
    `${fixed(100 * run.accuracy[moment], 1)} % of the answers are right. ` +
    `In ${nameOf(run, head)}, ${token(query)} reads ${token(most)} most (weight ` +
    `${fixed(weights[head][query * n + most], 3)}).`
  );
}

/** The sequence, the right answers, what the model says, and what chance it gives to the right one. */
function answers(onPlace, signal) {
  const head = h("tr");
  const rows = ["right answer", "its answer", "P(right)"].map((name) => h("tr", {}, h("th", { scope: "row" }, name)));
  const table = h(
    "table",
    { "data-panel": "answers" },
    h("caption", { class: "attn-sr" }, "The sequence, place by place, and the answers"),
    h("thead", {}, head),
    h("tbody", {}, rows),
  );
  let cells = [];
  table.addEventListener(
    "click",
    ({ target }) => {
      const place = target.closest("[data-col]")?.dataset.col;
      if (place) onPlace(Number(place));
    },
    { signal },
  );

  function build(n) {
    rows.forEach((row) => row.replaceChildren(row.cells[0]));
    head.replaceChildren(
      h("th", { scope: "col" }, "model reads"),
      ...inOrder(n).map((col) => h("th", { scope: "col", "data-col": col })),
    );
    cells = rows.map((row, at) =>
      inOrder(n).map((col) => row.appendChild(h("td", { "data-row": at, "data-col": col }))),
    );
  }
  return {
    element: h(
      "div",
      { class: "attn-answers" },
      h(
        "div",
        { class: "attn-scroll", tabindex: 0, role: "group", "aria-label": "The sequence and the answers" },
        table,
      ),
    ),
    update(run, moment, query) {
      const n = run.tokens.length;
      if (cells[0]?.length !== n) build(n);
      run.tokens.forEach((token, col) => {
        const right = run.targets[col];
        const said = run.said[moment][col];
        const known = right !== null;
        setText(head.cells[col + 1], word(run, token));
        [
          [right, known ? word(run, right) : "·"],
          [said, word(run, said)],
          [run.chances[moment][col], inCell(run.chances[moment][col], 2)],
        ].forEach(([value, text], row) => {
          const td = cells[row][col];
          if (known) td.dataset.value = value;
          else delete td.dataset.value;
          setText(td, known ? text : row ? "" : text);
        });
        cells[1][col].className = known ? (said === right ? "attn-right" : "attn-wrong") : "";
        for (const cell of [head.cells[col + 1], ...cells.map((row) => row[col])])
          cell.classList.toggle("attn-asked", col === query);
      });
    },
  };
}

/** What the charts draw of a run: made once, so that a step moves the mark alone. */
function chartsOf(run, head) {
  const line = (values) => [
    { name: "held-out data", label: "", dash: "none", points: run.steps.map((step, at) => [step, values[at]]) },
  ];
  const perHead = (values) =>
    inOrder(heads(run)).map((r) => ({
      name: nameOf(run, r),
      label: heads(run) > 1 ? nameOf(run, r) : "",
      thin: r !== head,
      points: run.steps.map((step, at) => [step, values[at][r]]),
    }));
  return {
    loss: { title: "Loss, nats", series: line(run.loss), values: run.loss },
    accuracy: { title: "Accuracy", series: line(run.accuracy), values: run.accuracy },
    ...Object.fromEntries(
      run.scores.map(({ name, values }, at) => [
        `score_${at + 1}`,
        { title: capital(name), series: perHead(values), values: values.map((each) => each[head]) },
      ]),
    ),
  };
}

/**
 * What is read, and what that has read before: for each layer a strip, the last on top. In the layer below, the word
 * asks that the layer above reads most.
 */
function pathOf(run, weights, { head, query }) {
  const n = run.tokens.length;
  const last = Math.floor(head / run.heads);
  const within = head % run.heads;
  const strips = [];
  const ties = [];
  let row = query;
  for (let layer = last; layer >= 0; layer--) {
    const r = layer * run.heads + within;
    const most = mostRead(weights[r], row, n);
    const title = `${capital(nameOf(run, r))}: what ${word(run, run.tokens[row])} at place ${row + 1} reads`;
    strips.push({
      title,
      weights: weights[r].subarray(row * n, row * n + n),
      row,
      chosen: layer === last && heads(run) > 1,
    });
    if (layer) ties.push({ from: [strips.length - 1, most], to: [strips.length, most] });
    row = most;
  }
  return { strips, ties };
}

function build({ model, signal, set }) {
  let run = null;
  let weights = null;
  const controls = {
    run: select({ control: "run", label: "run", signal, onInput: (name) => set({ run: name }) }),
    head: select({ control: "head", label: "chosen head", signal, onInput: (head) => set({ head: Number(head) }) }),
    query: select({
      control: "query",
      label: "query token",
      signal,
      onInput: (query) => set({ query: Number(query) }),
    }),
  };
  const steps = stepper({
    control: "step",
    label: "training step",
    text: (at) => String(run.steps[at]),
    beat: BEAT_MS,
    signal,
    onInput: (at) => set({ step: run.steps[at] }),
  });
  const onQuery = (query) => set({ query });
  const table = answers(onQuery, signal);
  const readout = h("p", { class: "attn-readout" });
  const onCell = (head) => (row, col) => {
    if (row < 0 || !run)
      return setText(readout, "Point at a cell, or move to it with the arrow keys, to read its number.");
    const token = (at) => `${word(run, run.tokens[at])} (place ${at + 1})`;
    const hidden = run.causal && col > row;
    setText(
      readout,
      `${nameOf(run, head)}, ${token(row)} → ${token(col)}: ` +
        `${hidden ? "still to come, so hidden" : `weight ${fixed(weights[head][row * run.tokens.length + col], 3)}`}`,
    );
  };
  const most = Math.max(...model.get("runs").map(heads));
  const maps = inOrder(most).map((head) =>
    heatmap({
      panel: "weights",
      kind: "weights",
      title: "",
      attributes: { "data-head": head },
      onCell: onCell(head),
      onRow: (query) => set({ head, query }),
      signal,
    }),
  );
  const others = h("div", { class: "attn-columns" });
  const multiples = h("div", { class: "attn-flow attn-multiples" });
  const note = h("p", { class: "attn-note" });
  onCell(0)(-1, -1);

  let drawn = {}; // the charts of a run and a chosen head
  const grid = h("div", { class: "attn-columns" });
  const folded = h("div");
  const path = strips({ onWord: (_, place) => set({ query: place }), signal });
  const left = h("div", {}, path.element); // with the map of a single head
  const mapped = h("div", { class: "attn-answer" }, multiples);
  const forming = h("div", { class: "attn-forming attn-answer" }, left, grid);
  const pull = (x) =>
    set({ step: run.steps.reduce((best, each) => (Math.abs(each - x) < Math.abs(best - x) ? each : best)) });
  const open = () => folded.querySelector("details")?.open;

  /** Charts are made for a run: another has other scores. */
  function chartsFor(head) {
    if (drawn.run !== run) {
      const wasOpen = open();
      grid.replaceChildren();
      others.replaceChildren();
      const charts = Object.fromEntries(
        Object.entries(chartsOf(run, head)).map(([panel, { title }]) => [
          panel,
          chart({ panel, title, ...(panel === "loss" ? { height: 150, onDrag: pull, signal } : { height: 118 }) }),
        ]),
      );
      drawn = { run, charts };
      for (const [panel, { element }] of Object.entries(charts)) (panel === "accuracy" ? others : grid).append(element);
      const numbers = theNumbers(Object.values(charts), signal);
      numbers.open = wasOpen;
      folded.replaceChildren(numbers);
    }
    if (drawn.head !== head) drawn = { ...drawn, head, views: chartsOf(run, head) };
    return drawn;
  }

  return {
    controls: { ...controls, step: steps },
    panels: { forming, maps: mapped, answers: table.element, accuracy: others },
    after: [note, folded],
    readout,
    draw(now, { theme, width }) {
      run = runOf(now.run, model);
      const { step, head, query } = now;
      const n = run.tokens.length;
      const moment = run.steps.indexOf(step);
      weights = weightsOf(run, moment);
      const tokens = run.tokens.map((token) => word(run, token));
      const all = inOrder(heads(run));
      controls.run.update(
        now.run,
        model.get("runs").map(({ name, label }) => [name, label]),
      );
      controls.head.update(
        head,
        all.map((r) => [r, nameOf(run, r)]),
      );
      controls.head.element.hidden = all.length < 2;
      controls.query.update(
        query,
        tokens.map((token, at) => [at, `${token}, place ${at + 1}`]),
      );
      steps.update(moment, run.steps.length - 1);
      table.update(run, moment, query);
      setText(note, run.note);

      maps.slice(all.length).forEach(({ element }) => element.remove());
      maps.slice(0, all.length).forEach(({ element }) => element.isConnected || multiples.append(element));
      const says = weights.map((A) => {
        const at = mostRead(A, query, n);
        return `${tokens[query]} reads ${tokens[at]} (place ${at + 1})`;
      });
      const lines = width < NARROW_PX ? all.length : Math.ceil(all.length / 2);
      const beside = width >= WIDE_PX;
      const each = beside ? Math.round(0.44 * width) : width;
      const column = beside ? width - each - GAP_PX : width;
      (all.length === 1 ? left : mapped).append(multiples);
      const cell = fitMultiples(multiples, {
        width: all.length === 1 ? column : width,
        rows: tokens,
        cols: tokens,
        titles: says,
        lines,
        most: CELL_PX,
      });
      const places = inOrder(n);
      const hidden = Array.from({ length: n * n }, (_, at) => run.causal && at % n > Math.floor(at / n));
      maps.slice(0, all.length).forEach((map, r) => {
        map.element.classList.toggle("attn-chosen", r === head && all.length > 1);
        map.rename(capital(nameOf(run, r)));
        map.update({
          n,
          m: n,
          theme,
          cell,
          rows: tokens,
          cols: tokens,
          rowIds: places,
          colIds: places,
          current: query,
          values: weights[r],
          forbidden: hidden,
          sentence: `Weights of ${nameOf(run, r)} after ${step} steps`,
          formulaKey: says[r],
          formula: () => [says[r]],
        });
      });

      const sentence = describe(run, weights, moment, now);
      const { charts, views } = chartsFor(head);
      forming.classList.toggle("attn-at-side", beside);
      const { strips: read, ties } = pathOf(run, weights, now);
      path.update({ width: column, words: tokens, strips: read, ties, high: ARCS_PX, sentence });
      const right = all.length > 1 ? textWidth(all.map((r) => nameOf(run, r))) + 10 : 14;
      const names = Object.keys(charts);
      const done = (step - run.steps[0]) / (run.steps.at(-1) - run.steps[0]);
      names.forEach((panel, at) => {
        const { series, values } = views[panel];
        charts[panel].update({
          width: each,
          left: LEFT,
          right,
          x: {
            label: "training step",
            domain: [run.steps[0], run.steps.at(-1)],
            text: String,
            untitled: at < names.length - 1,
          },
          y:
            panel === "loss"
              ? { domain: [0, Math.ceil(Math.max(...values))] }
              : { domain: [0, 1.15], ticks: [0, 0.5, 1] },
          series,
          at: step,
          sentence,
          notes: [
            {
              x: step,
              y: values[moment],
              text: fixed(values[moment], 3),
              side:
                done > 0.8
                  ? "left"
                  : panel === "loss"
                    ? "beside"
                    : done < 0.2 || values[moment] < 0.3
                      ? "above"
                      : "left",
            },
          ],
        });
      });
      return sentence;
    },
  };
}

/**
 * At which step half of the answers are right.
 * @param {import("../js/store.js").Model} model
 * @returns {Record<string, import("../js/ask.js").Ask>}
 */
const asks = (model) => {
  const run = runOf(model.get("run"), model);
  const half = run.steps[run.accuracy.findIndex((right) => right >= 0.5)] ?? run.steps.at(-1);
  return {
    half: {
      question: () => [`At which of ${run.steps.at(-1)} training steps will half of the answers be right?`],
      control: { kind: "slider", min: 0, max: run.steps.at(-1), step: run.steps[1] - run.steps[0], text: String },
      truth: () => half,
      words: (guess, truth) =>
        guess === truth
          ? `Yes, at step ${truth}.`
          : `You said step ${guess}; it is ${truth} (of the steps that are stored).`,
      then: () => ({ step: half }),
    },
  };
};

export default defineLab({ settings, build, asks });
