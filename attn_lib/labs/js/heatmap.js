// A heatmap: a real table of values, with its colours on one small canvas beneath the transparent cells.
import { colorMap, colorStep } from "./colors.js";
import { h, setText, stillness } from "./dom.js";
import { fixed, inCell } from "./numbers.js";

const DIGITS_UP_TO = 12; // rows or columns; more leave no room for a number
const TRAVEL_UP_TO = 16; // larger maps cross-fade instead
const TRAVEL_MS = 550;

/**
 * @param {object} options
 * @param {string} options.panel  the page contract's name: "scores", "weights", "output"
 * @param {"scores"|"weights"} options.kind  which colour map
 * @param {string} options.title  the words above it
 * @param {string} options.unit  what a column is: "key", "coordinate"
 * @param {number} [options.digits]  decimals in a cell
 * @param {(row: number, col: number) => void} options.onCell  a cell came under pointer or focus
 * @param {(row: number) => void} options.onRow  a row was chosen
 * @param {AbortSignal} options.signal
 */
export function heatmap({ panel, kind, title, unit, digits = 2, onCell, onRow, signal }) {
  const formula = h("span", { class: "attn-formula" });
  const canvas = h("canvas", { "aria-hidden": "true" });
  const caption = h("caption", { class: "attn-sr" });
  const head = h("thead");
  const body = h("tbody");
  const table = h("table", { "data-panel": panel }, caption, head, body);
  const low = h("span");
  const high = h("span");
  const ramp = h("b");
  const element = h(
    "div",
    { class: `attn-panel attn-panel-${panel}` },
    h("div", { class: "attn-panel-title" }, h("b", {}, title), formula),
    h("div", { class: "attn-scroll" }, table),
    h("div", { class: "attn-bar", "aria-hidden": "true" }, low, ramp, high),
  );
  const pen = canvas.getContext("2d");

  let view = null; // what update() was last given
  let cells = []; // per cell: the td, its text node, what it shows
  let steps = null; // per cell: its colour step, or -1 where forbidden
  let motion = 0; // the running animation frame
  let place = null; // where each row and column is drawn now: ids to fractional positions

  function build({ n, m }) {
    const corner = h("td", { class: "attn-corner" }, canvas);
    head.replaceChildren(h("tr", {}, corner, Array.from({ length: m }, () => h("th", { scope: "col" }, h("span")))));
    cells = [];
    body.replaceChildren(
      ...Array.from({ length: n }, (_, row) => {
        const tr = h("tr", {}, h("th", { scope: "row" }, h("span")));
        for (let col = 0; col < m; col++) {
          const text = document.createTextNode("");
          const td = h("td", { "data-row": row, "data-col": col, tabindex: row || col ? -1 : 0 }, text);
          cells.push({ td, text, value: undefined, ink: undefined });
          tr.append(td);
        }
        return tr;
      }),
    );
    steps = new Int16Array(n * m);
  }

  function relabel({ rows, cols, current }) {
    [...head.rows[0].cells].slice(1).forEach((th, col) => setText(th.firstChild, cols[col]));
    [...body.rows].forEach((tr, row) => {
      setText(tr.cells[0].firstChild, rows[row]);
      tr.classList.toggle("attn-current", row === current);
    });
  }

  function fill({ values, n, m, limit, theme }) {
    const withDigits = Math.max(n, m) <= DIGITS_UP_TO;
    const { dark } = colorMap(theme, kind);
    for (let at = 0; at < cells.length; at++) {
      const cell = cells[at];
      const value = values[at];
      const forbidden = view.forbidden?.[at] ?? false;
      const step = forbidden ? -1 : colorStep(kind, value, limit);
      steps[at] = step;
      const ink = forbidden ? "attn-forbidden" : dark[step] ? "attn-black" : "attn-white";
      if (ink !== cell.ink && (withDigits || forbidden || cell.ink === "attn-forbidden")) cell.td.className = cell.ink = ink;
      if (value === cell.value) continue;
      cell.value = value;
      cell.td.dataset.value = value;
      if (withDigits) cell.text.data = forbidden ? "" : inCell(value, digits);
    }
  }

  function rest() {
    const { n, m, theme } = view;
    const { colors } = colorMap(theme, kind);
    const image = new ImageData(m, n);
    for (let at = 0; at < steps.length; at++) {
      if (steps[at] < 0) continue; // forbidden: the hatching of the cell shows
      const [r, g, b] = colors[steps[at]];
      image.data.set([r, g, b, 255], at * 4);
    }
    canvas.width = m;
    canvas.height = n;
    pen.putImageData(image, 0, 0);
  }

  /** Draw every cell where its row and column are now, on a canvas as fine as the screen. */
  function drawMoving() {
    const { n, m, cell, theme, rowIds, colIds, current } = view;
    const { colors, dark } = colorMap(theme, kind);
    const dense = (window.devicePixelRatio || 1) * cell;
    canvas.width = Math.round(m * dense);
    canvas.height = Math.round(n * dense);
    pen.font = `${dense * 0.4}px ${getComputedStyle(table).fontFamily}`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (let at = 0; at < steps.length; at++) {
      if (steps[at] < 0) continue;
      const x = place.cols.get(colIds[at % m]) * dense;
      const y = place.rows.get(rowIds[Math.floor(at / m)]) * dense;
      pen.fillStyle = `rgb(${colors[steps[at]]})`;
      pen.fillRect(x, y, dense - 1, dense - 1);
      pen.fillStyle = dark[steps[at]] ? "#000" : "#fff";
      pen.fillText(cells[at].text.data, x + dense / 2, y + dense * 0.54);
    }
    if (current < 0) return;
    pen.strokeStyle = getComputedStyle(table).getPropertyValue("--accent");
    pen.lineWidth = (2 * dense) / cell;
    pen.strokeRect(pen.lineWidth / 2, place.rows.get(rowIds[current]) * dense + pen.lineWidth / 2, m * dense - pen.lineWidth, dense - pen.lineWidth);
  }

  /** Let rows and columns travel from where they are drawn to where they now belong. */
  function travel(from) {
    cancelAnimationFrame(motion);
    const { rowIds, colIds, cell } = view;
    const between = (ids, old) => ids.map((id, to) => [id, old.get(id) ?? to, to]);
    const rows = between(rowIds, from.rows);
    const cols = between(colIds, from.cols);
    const options = { duration: TRAVEL_MS, easing: "ease-in-out" };
    cols.forEach(([, start, end]) => start !== end && head.rows[0].cells[end + 1].animate([{ transform: `translateX(${(start - end) * cell}px)` }, { transform: "none" }], options));
    rows.forEach(([, start, end]) => start !== end && body.rows[end].cells[0].animate([{ transform: `translateY(${(start - end) * cell}px)` }, { transform: "none" }], options));
    element.classList.add("attn-moving");
    const started = performance.now();
    const tick = (now) => {
      const t = Math.min(1, Math.max(0, (now - started) / TRAVEL_MS));
      const eased = t < 0.5 ? 2 * t * t : 1 - 2 * (1 - t) ** 2;
      const at = (list) => new Map(list.map(([id, start, end]) => [id, start + (end - start) * eased]));
      place = { rows: at(rows), cols: at(cols) };
      if (t < 1) {
        drawMoving();
        motion = requestAnimationFrame(tick);
      } else settle();
    };
    tick(started);
  }

  const settled = ({ rowIds, colIds }) => ({ rows: new Map(rowIds.map((id, at) => [id, at])), cols: new Map(colIds.map((id, at) => [id, at])) });

  function settle() {
    cancelAnimationFrame(motion);
    motion = 0;
    place = settled(view);
    element.classList.remove("attn-moving");
    rest();
  }

  const find = (target) => {
    const td = target instanceof Element && target.closest("td[data-row]");
    return td ? [Number(td.dataset.row), Number(td.dataset.col)] : null;
  };
  const at = (row, col) => cells[row * view.m + col]?.td;
  const listen = (type, listener) => table.addEventListener(type, listener, { signal });
  for (const type of ["pointerover", "focusin"])
    listen(type, ({ target }) => {
      const cell = find(target);
      if (cell) onCell(...cell);
    });
  for (const type of ["pointerleave", "focusout"]) listen(type, () => onCell(-1, -1));
  listen("click", ({ target }) => {
    const cell = find(target);
    if (cell) onRow(cell[0]);
  });
  listen("keydown", (event) => {
    const cell = find(event.target);
    if (!cell) return;
    const [row, col] = cell;
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -col], End: [0, view.m - 1 - col] };
    if (event.key === "Enter" || event.key === " ") onRow(row);
    else if (moves[event.key]) {
      const [down, right] = moves[event.key];
      const next = col + right >= 0 && col + right < view.m ? at(row + down, col + right) : null;
      if (next) {
        event.target.tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
      }
    } else return;
    event.preventDefault();
  });

  return {
    element,
    /**
     * Show `values` (n×m). `rowIds` and `colIds` name what each row and column stands for: when their order
     * changes, the cells travel.
     * @param {{values: Float64Array, n: number, m: number, rows: string[], cols: string[], rowIds: any[], colIds: any[],
     *          current: number, limit?: number, theme: string, cell: number, formula: Node[], forbidden?: boolean[], sentence: string}} next
     */
    update(next) {
      const previous = view;
      view = next;
      const resized = !previous || previous.n !== next.n || previous.m !== next.m;
      if (resized) build(next);
      relabel(next);
      fill(next);
      setText(caption, next.sentence);
      formula.replaceChildren(...next.formula);
      setText(low, kind === "weights" ? "0" : fixed(-next.limit, next.limit < 1 ? 2 : 0));
      setText(high, kind === "weights" ? "1" : fixed(next.limit, next.limit < 1 ? 2 : 0));
      ramp.style.background = colorMap(next.theme, kind).css;
      table.style.setProperty("--columns", next.m);
      table.style.setProperty("--rows", next.n);
      table.setAttribute("aria-label", `${title}: rows are queries, columns are ${unit}s`);
      const reordered = !resized && String([previous.rowIds, previous.colIds]) !== String([next.rowIds, next.colIds]);
      if (reordered && !stillness() && Math.max(next.n, next.m) <= TRAVEL_UP_TO) travel(place);
      else if (!motion || resized || reordered) settle();
      if (reordered && Math.max(next.n, next.m) > TRAVEL_UP_TO && !stillness()) canvas.animate([{ opacity: 0.2 }, { opacity: 1 }], TRAVEL_MS);
    },
    stop: () => cancelAnimationFrame(motion),
  };
}
