// TilingLab: scores read tile by tile; a maximum, a sum and an accumulator are all that is kept.
import { seed, select, slider, stepper } from "../js/controls.js";
import { h, setStyle, setText, sym } from "../js/dom.js";
import { normals } from "../js/draws.js";
import { defineLab } from "../js/frame.js";
import { fit, heatmap } from "../js/heatmap.js";
import {
  attentionScores,
  attentionWeights,
  causalMask,
  matmul,
  mergeStates,
  outputOf,
  rescaling,
  softmaxState,
  windowMask,
} from "../js/math.js";
import { meters } from "../js/meters.js";
import { fixed, tiny } from "../js/numbers.js";
import { choice, inOrder, whole } from "../js/settings.js";
import { carried } from "./carried.js";

const N = 9;
const D_K = 8;
const D_V = 3;
const SEEDS = 9999;
const WINDOW = 3;
const PADDED = 4;
const BYTES = 8; // of a double
const LARGE = 8192;
const LEDGER_PX = 460;
const SCORES_END = 4;
const OUTPUTS_END = 2;
const CELL_PX = 36;
const SMALL_PX = 26;
const BESIDE_PX = 24;
const LEAST_PX = 268; // of the scores, with digits
const MASKS = [
  ["none", "none"],
  ["causal", "causal (no future)"],
  ["window", `causal, last ${WINDOW} keys`],
  ["padding", `first ${PADDED} keys are padding`],
];

const keeper = (mask) =>
  ({ none: () => true, causal: causalMask(), window: windowMask(WINDOW), padding: (_, j) => j >= PADDED })[mask];

/** The tiles in the order in which they are read; a wholly masked one is `skipped`. */
function tilesOf({ tile_queries: rows, tile_keys: cols, mask }) {
  const keep = keeper(mask);
  const tiles = [];
  for (let row = 0; row < N; row += rows)
    for (let col = 0; col < N; col += cols) {
      const tile = { row, col, rows: Math.min(rows, N - row), cols: Math.min(cols, N - col) };
      const kept = cells(tile).filter(([i, j]) => keep(i, j)).length;
      tiles.push({ ...tile, skipped: kept === 0, whole: kept === tile.rows * tile.cols });
    }
  return tiles;
}

const cells = ({ row, col, rows, cols }) =>
  inOrder(rows * cols).map((at) => [row + Math.floor(at / cols), col + (at % cols)]);
const read = (tiles) => tiles.filter(({ skipped }) => !skipped);
const holds = (tile, query) => tile.row <= query && query < tile.row + tile.rows;

function settings(state) {
  const side = whole(1, N);
  const [tile_queries, tile_keys] = [side.clean(state.tile_queries), side.clean(state.tile_keys)];
  const mask = choice(MASKS.map(([name]) => name));
  const tiles = read(tilesOf({ tile_queries, tile_keys, mask: mask.clean(state.mask) }));
  return {
    tile_queries: side,
    tile_keys: side,
    mask,
    step: whole(0, tiles.length),
    query: whole(0, N - 1),
    seed: whole(0, SEEDS),
  };
}

const NOTHING = { maximum: -Infinity, normaliser: 0, accumulator: new Float64Array(D_V) };

/** Scores, tiles and outputs of a state, and the chosen query's numbers around its present step. */
function compute(state) {
  const V = normals(state.seed, 2, N * D_V);
  const mask = state.mask === "none" ? undefined : keeper(state.mask);
  const S = attentionScores(normals(state.seed, 0, N * D_K), normals(state.seed, 1, N * D_K), {
    n: N,
    m: N,
    width: D_K,
    mask,
  });
  const grid = tilesOf(state);
  const tiles = read(grid);
  const { query, step } = state;
  const readTile = ({ col, cols }) =>
    softmaxState(S.subarray(query * N + col, query * N + col + cols), V.subarray(col * D_V, (col + cols) * D_V), D_V);
  const after = (steps) =>
    tiles
      .slice(0, steps)
      .filter((tile) => holds(tile, query))
      .map(readTile)
      .reduce(mergeStates, NOTHING);
  const tile = tiles[step - 1] ?? null;
  const own = tile !== null && holds(tile, query);
  const [before, now] = [after(Math.max(0, step - 1)), after(step)];
  const A = attentionWeights(S.subarray(query * N, query * N + N), 1, N);
  return {
    S,
    grid,
    tiles,
    tile,
    own,
    before,
    now,
    factor: own ? rescaling(before, now.maximum) : null,
    added: own ? readTile(tile) : null,
    finished: !tiles.slice(step).some((next) => holds(next, query)),
    soFar: outputOf(now),
    exact: matmul(A, V, 1, N, D_V),
  };
}

/** Before, rescaled (by the number in the first column), added, after, so far, exact: maximum, sum and accumulator. */
function ledgerOf({ before, now, factor, added, soFar, exact }) {
  const blank = Array(2 + D_V).fill(null);
  const row = ({ maximum, normaliser, accumulator }, f = 1) => [
    maximum,
    f * normaliser,
    ...accumulator.map((value) => f * value),
  ];
  return [
    row(before),
    added ? [factor, ...row(before, factor).slice(1)] : blank,
    added ? row(added, rescaling(added, now.maximum)) : blank,
    row(now),
    [null, null, ...soFar],
    [null, null, ...exact],
  ];
}

const range = (from, count) => (count === 1 ? `${from + 1}` : `${from + 1} to ${from + count}`);

function describe({ tiles, tile, own, factor, now, finished }, { step, query }) {
  if (!tile) return `Nothing is read yet; ${tiles.length} tiles are to come.`;
  const says =
    `Step ${step} of ${tiles.length}: queries ${range(tile.row, tile.rows)} meet keys ` +
    `${range(tile.col, tile.cols)}. `;
  if (!own) return `${says}Query ${query + 1} is not among them and keeps its numbers.`;
  return (
    `${says}For query ${query + 1} what was summed before is multiplied by ${fixed(factor)}; its sum ` +
    `of weights is now ${fixed(now.normaliser)}, and ` +
    `${finished ? "it is done" : "it has more to read"}.`
  );
}

/** The largest block of tiles of one kind, to write a word on: rows of tiles with a stretch of columns in common. */
function largest(grid, fits) {
  const rows = [...new Set(grid.map(({ row }) => row))];
  let best = { row: 0, col: 0, rows: 0, cols: 0 };
  rows.forEach((row, from) => {
    let common = inOrder(N);
    for (const at of rows.slice(from)) {
      const line = grid.filter((tile) => tile.row === at && fits(tile));
      common = common.filter((j) => line.some(({ col, cols }) => col <= j && j < col + cols));
      if (!common.length || common.at(-1) - common[0] >= common.length) break;
      const block = { row, col: common[0], rows: at + line[0].rows - row, cols: common.length };
      if (block.rows * block.cols > best.rows * best.cols) best = block;
    }
  });
  return best;
}

/** What is kept for the chosen query, before and after the present tile. */
function ledger() {
  const title = h("b");
  const names = [
    ["before"],
    ["× ", sym("e"), h("sup", {}, sym("μ"), "−", sym("μ"), "′")],
    ["+ this tile"],
    ["= after"],
    [sym("u"), "/", sym("ℓ")],
    ["exact"],
  ];
  const head = [sym("μ"), sym("ℓ"), ...inOrder(D_V).map((r) => sym("u", String(r + 1)))];
  const rows = names.map((name, row) => ({
    th: h("th", { scope: "row" }, name),
    tds: inOrder(2 + D_V).map((col) => h("td", { "data-row": row, "data-col": col })),
  }));
  const group = (from, to) =>
    h(
      "tbody",
      {},
      rows.slice(from, to).map(({ th, tds }) => h("tr", {}, th, tds)),
    );
  const table = h(
    "table",
    { "data-panel": "state" },
    h("caption", { class: "attn-sr" }, "Largest score μ, sum of powers ℓ and weighted sum u of the chosen query"),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("td"),
        head.map((name) => h("th", { scope: "col" }, name)),
      ),
    ),
    group(0, 3),
    group(3, 4),
    group(4, 6),
  );
  return {
    element: h(
      "div",
      { class: "attn-ledger" },
      h(
        "div",
        { class: "attn-panel-title" },
        title,
        h(
          "span",
          { class: "attn-formula" },
          sym("μ"),
          " largest score, ",
          sym("ℓ"),
          " sum, ",
          sym("u"),
          " weighted sum",
        ),
      ),
      h("div", { class: "attn-scroll" }, table),
    ),
    update(query, values) {
      setText(title, `What query ${query + 1} keeps`);
      values.forEach((line, row) =>
        line.forEach((value, col) => {
          const td = rows[row].tds[col];
          if (value === null) td.removeAttribute("data-value");
          else td.setAttribute("data-value", value);
          setText(td, value === null ? "" : fixed(value));
        }),
      );
    },
  };
}

/** Bytes as two bars. */
function memory() {
  const lines = ["a tile and what its queries keep", `all ${N} × ${N} scores`].map((name, row) => {
    const bar = h("span");
    const td = h("td", { "data-row": row, "data-col": 0 });
    return { bar, td, tr: h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "attn-barcell" }, bar), td) };
  });
  const text = h("p", { class: "attn-note" });
  const table = h(
    "table",
    { "data-panel": "memory" },
    h("caption", { class: "attn-sr" }, "Bytes held at once, beside Q, K, V and O"),
    h(
      "tbody",
      {},
      lines.map(({ tr }) => tr),
    ),
  );
  return {
    element: h("div", { class: "attn-memory" }, h("div", { class: "attn-scroll" }, table), text),
    update({ tile_queries, tile_keys }) {
      const bytes = [BYTES * tile_queries * (tile_keys + 2 + D_V), BYTES * N * N];
      lines.forEach(({ bar, td }, row) => {
        setStyle(bar, "inline-size", `${((bytes[row] / Math.max(...bytes)) * 100).toFixed(2)}%`);
        td.setAttribute("data-value", bytes[row]);
        setText(td, `${bytes[row].toLocaleString("en").replace(",", " ")} bytes`);
      });
      setText(
        text,
        `Beside queries, keys, values and outputs. With ${LARGE} tokens the same tile needs the same ` +
          `${bytes[0]} bytes, the full scores ${(BYTES * LARGE * LARGE) / 2 ** 20} MiB.`,
      );
    },
  };
}

function build({ signal, set }) {
  const side = (control, label) =>
    slider({ control, label, min: 1, max: N, text: String, signal, onInput: (value) => set({ [control]: value }) });
  const controls = {
    tile_queries: side("tile_queries", "tile queries"),
    tile_keys: side("tile_keys", "tile keys"),
    mask: select({ control: "mask", label: "mask", signal, onInput: (mask) => set({ mask }) }),
    query: select({
      control: "query",
      label: "chosen query",
      signal,
      onInput: (query) => set({ query: Number(query) }),
    }),
    seed: seed({ label: "seed", most: SEEDS, signal, onInput: (value) => set({ seed: value }) }),
  };
  const steps = stepper({ control: "step", label: "tiles read", signal, onInput: (step) => set({ step }) });
  const readout = h("p", { class: "attn-readout" });
  let result = null;
  let unread = null;
  const onCell = (i, j) => {
    if (i < 0 || !result) return setText(readout, "Framed: the tile in memory. Blank: still to come. Hatched: masked.");
    const score = result.S[i * N + j];
    setText(
      readout,
      `query ${i + 1} → key ${j + 1}: ` +
        `${score === -Infinity ? "masked" : unread[i * N + j] ? "not read yet" : `score ${fixed(score)}`}`,
    );
  };
  const panel = heatmap({
    panel: "scores",
    kind: "scores",
    title: "Scores",
    digits: 1,
    onCell,
    onRow: (query) => set({ query }),
    signal,
  });
  const flow = h("div", { class: "attn-flow" }, panel.element);
  const numbers = ledger();
  const held = memory();
  const bars = carried({ limits: { score: SCORES_END, sum: N, output: OUTPUTS_END } });
  const meter = meters();
  onCell(-1, -1);

  return {
    controls: { ...controls, step: steps },
    panels: {
      tiles: h("div", { class: "attn-tiling" }, flow, h("div", {}, bars.element)),
      ledger: h("div", {}, numbers.element, meter.element),
      memory: held.element,
    },
    readout,
    draw(state, { theme, width }) {
      result = compute(state);
      const { S, grid, tiles, tile } = result;
      const { query, step } = state;
      controls.tile_queries.update(state.tile_queries);
      controls.tile_keys.update(state.tile_keys);
      controls.mask.update(state.mask, MASKS);
      controls.query.update(
        query,
        inOrder(N).map((i) => [i, `query ${i + 1}`]),
      );
      controls.seed.update(state.seed, true);
      steps.update(step, tiles.length);

      const names = inOrder(N).map((i) => String(i + 1));
      const beside = width - LEDGER_PX - BESIDE_PX;
      const cell = fit(flow, {
        width: beside >= LEAST_PX ? beside : width,
        rows: names,
        panels: [names],
        most: beside >= LEAST_PX ? CELL_PX : SMALL_PX,
      });
      const coming = new Set(tiles.slice(step));
      unread = new Uint8Array(N * N);
      for (const next of coming) for (const [i, j] of cells(next)) unread[i * N + j] = 1;
      const sentence = describe(result, state);
      const word = (text, block) =>
        block.cols * cell > 62 && block.rows * cell > 20
          ? [{ kind: "word", word: h("span", {}, text).textContent, ...block }]
          : [];
      panel.update({
        n: N,
        m: N,
        theme,
        cell,
        rows: names,
        rowIds: names,
        cols: names,
        colIds: names,
        current: query,
        values: S,
        limit: SCORES_END,
        forbidden: Array.from(S, (score) => score === -Infinity),
        later: unread,
        cuts: {
          rows: inOrder(N)
            .slice(1)
            .filter((i) => i % state.tile_queries === 0),
          cols: inOrder(N)
            .slice(1)
            .filter((j) => j % state.tile_keys === 0),
        },
        boxes: [
          ...(tile ? [{ kind: "box", row: tile.row, col: tile.col, rows: tile.rows, cols: tile.cols }] : []),
          ...word(
            "to come",
            largest(
              grid,
              (each) => each.whole && coming.has(tiles.find(({ row, col }) => row === each.row && col === each.col)),
            ),
          ),
          ...word(
            "skipped",
            largest(grid, ({ skipped }) => skipped),
          ),
        ],
        sentence,
        formulaKey: `${state.tile_queries} ${state.tile_keys}`,
        formula: () => [`${state.tile_queries} × ${state.tile_keys} at a time`],
      });
      numbers.update(query, ledgerOf(result));
      bars.update({
        width: beside >= LEAST_PX ? LEDGER_PX : width,
        query,
        now: result.now,
        before: result.before,
        factor: result.factor,
        soFar: result.soFar,
        exact: result.exact,
        sentence,
      });
      const far = Math.max(...result.soFar.map((value, r) => Math.abs(value - result.exact[r])));
      meter.update({ "largest difference to the exact output": tiny(far) });
      held.update(state);
      return sentence;
    },
  };
}

/** @returns {Record<string, import("../js/ask.js").Ask>} */
const asks = () => ({
  touched: {
    question: ({ tile_queries, tile_keys, query }) => [
      `Tiles of ${tile_queries} × ${tile_keys}, read row by row. How many of them concern query ${query + 1}?`,
    ],
    control: { kind: "slider", min: 0, max: N, step: 1, text: String },
    truth: (state) => compute(state).tiles.filter((tile) => holds(tile, state.query)).length,
    words: (guess, truth) => (guess === truth ? `Yes, ${truth}.` : `You said ${guess}; it is ${truth}.`),
  },
});

export default defineLab({ settings, build, asks });
