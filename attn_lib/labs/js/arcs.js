// A sentence that is read: the words in order, and from the query's word an arc to every word that it reads. All arcs
// together are as wide as one whole, so that one sees how it is shared. Where the words do not fit into one line, a bar
// for each word instead.
import { h, patch, s, setStyle, stillness, wordWidth } from "./dom.js";
import { fixed, inCell } from "./numbers.js";

const WORD_PX = { most: 26, least: 15 }; // size of the words in one line; smaller ones are broken into several
const PAD_EM = 0.5; // left and right of a word, as in labs.css
const GAP_PX = 6; // between two words at least
const WHOLE_PX = 50; // the width of weight 1
const HAIR_PX = 0.8; // the thinnest arc that is seen
const SELF_PX = 20; // a word that reads itself has a stub of this height
const CASING_PX = 3; // paper around an arc where it crosses others
const TRAVEL_MS = 250; // as the words glide
const WORTH_SAYING = 0.045; // of a weight under a word
const MANY = 10; // so many words have as many rows of matrices below them: their arcs are flatter still
const FLATTER = 0.65;
const BARS = 12; // in place of arcs; the rest is added up

/** How high the arc to a word at this distance is: flat, so that words, arcs and matrices fit into one view. */
const rise = (distance) => 14 + 88 * (Math.abs(distance) / 900) ** 0.8;

/**
 * Where each arc starts at the query, ends at its key, how wide and how high it is. The nearest word has the outermost
 * slot, so that arcs of one side do not cross.
 * @param {{centers: number[], row: number, weights: ArrayLike<number>, whole: number, flat?: number}} reading  places left to right
 */
export function arcGeometry({ centers, row, weights, whole, flat = 1 }) {
  const from = centers[row];
  const places = centers.map((_, j) => j);
  const left = places.filter((j) => j < row).reverse();
  const right = places.filter((j) => j > row).reverse();
  const arcs = new Array(centers.length);
  let slot = from - whole / 2;
  for (const j of [...left, row, ...right]) {
    const wide = weights[j] * whole;
    const start = slot + wide / 2;
    slot += wide;
    arcs[j] = {
      start,
      end: j === row ? start : centers[j],
      wide,
      high: j === row ? SELF_PX : rise(centers[j] - from) * flat,
    };
  }
  return arcs;
}

/** An arc as an SVG path that stands on the line y. */
export function arcPath({ start, end, high }, y) {
  const span = end - start;
  if (Math.abs(span) < 2) return `M${start.toFixed(1)} ${y}v${(-high).toFixed(1)}`;
  const radius = Math.abs(span / 2).toFixed(1);
  return `M${start.toFixed(1)} ${y}a${radius} ${high.toFixed(1)} 0 0 ${span > 0 ? 1 : 0} ${span.toFixed(1)} 0`;
}

/** The size at which words fit into one line, or 0 where none does. */
export function wordSize(tokens, width) {
  const ems = tokens.reduce((sum, token) => sum + wordWidth(token) + 2 * PAD_EM, 0);
  const size = Math.min(WORD_PX.most, (width - (tokens.length - 1) * GAP_PX) / ems);
  return size < WORD_PX.least ? 0 : size;
}

/**
 * @param {object} options
 * @param {any} options.tokens  a `tokenRow`
 * @param {(place: number) => void} [options.onKey]  an arc or a bar was chosen
 * @param {(place: number) => void} [options.onPoint]  one came under the pointer; −1 when it left
 * @param {AbortSignal} options.signal
 */
export function arcs({ tokens, onKey = () => {}, onPoint = () => {}, signal }) {
  const layer = s("g");
  const feet = s("g");
  const picture = s("svg", { class: "attn-arcs attn-answer", "aria-hidden": "true" }, layer, feet);
  const shares = h("div", { class: "attn-shares attn-answer", "aria-hidden": "true" });
  const strip = h("div", { class: "attn-strip attn-answer", "aria-hidden": "true" });
  const element = h("div", { class: "attn-reading" }, picture, tokens.element, shares, strip);
  let view = null;
  let shown = null; // the geometry that is drawn
  let moving = 0;
  let lit = -1;

  const placeOf = (target) => {
    const part = target instanceof Element && target.closest("[data-place]");
    return part ? Number(part.getAttribute("data-place")) : -1;
  };
  for (const part of [picture, strip]) {
    part.addEventListener("click", ({ target }) => placeOf(target) >= 0 && onKey(placeOf(target)), { signal });
    part.addEventListener("pointerover", ({ target }) => onPoint(placeOf(target)), { signal });
    part.addEventListener("pointerleave", () => onPoint(-1), { signal });
  }
  signal.addEventListener("abort", () => cancelAnimationFrame(moving));

  function paint(geometry) {
    shown = geometry;
    const { row, high } = view;
    const y = high - 2;
    const order = geometry.map((_, j) => j).sort((i, j) => geometry[j].high - geometry[i].high);
    const path = (j, more) => s("path", { d: arcPath(geometry[j], y), ...more });
    patch(
      layer,
      order
        .filter((j) => geometry[j].wide > 0)
        .map((j) => {
          const { wide } = geometry[j];
          const dim = lit >= 0 && lit !== j ? "attn-dim" : wide > 2 ? null : "attn-faint";
          const casing =
            wide > 2 && j !== row ? path(j, { class: "attn-casing", "stroke-width": wide + CASING_PX }) : null;
          const arc = path(j, { class: "attn-arc", "stroke-width": Math.max(HAIR_PX, wide).toFixed(2) });
          return s("g", { "data-place": j, class: dim }, casing, arc, path(j, { class: "attn-hit" }));
        }),
    );
    const foot = (at, wide, role) =>
      s("rect", {
        x: (at - Math.max(2, wide) / 2).toFixed(1),
        y,
        width: Math.max(2, wide).toFixed(1),
        height: 3,
        class: role,
      });
    const { whole } = view;
    patch(feet, [
      ...geometry.flatMap(({ end, wide }, j) => (j === row || wide === 0 ? [] : [foot(end, wide, "attn-keyfoot")])),
      foot(view.centers[row], whole, "attn-queryfoot"),
    ]);
  }

  /** From what is drawn to what belongs there, as the words glide. */
  function travel(target) {
    cancelAnimationFrame(moving);
    const from = shown;
    if (!from || from.length !== target.length || stillness()) return paint(target);
    const began = performance.now();
    const tick = (now) => {
      const t = Math.min(1, Math.max(0, (now - began) / TRAVEL_MS));
      const eased = t < 0.5 ? 2 * t * t : 1 - 2 * (1 - t) ** 2;
      const mix = (a, b) => a + (b - a) * eased;
      paint(
        target.map((to, j) => {
          const old = from[view.cameFrom?.[j] ?? j];
          return Object.fromEntries(Object.keys(to).map((key) => [key, mix(old[key], to[key])]));
        }),
      );
      moving = t < 1 ? requestAnimationFrame(tick) : 0;
    };
    tick(began);
  }

  function drawLine(weights, { size }) {
    element.classList.add("attn-oneline");
    setStyle(element, "--word", `${size.toFixed(2)}px`);
    const centers = tokens.centers();
    const gaps = centers.slice(1).map((center, j) => center - centers[j]);
    view.centers = centers;
    view.whole = Math.min(WHOLE_PX, ...(gaps.length ? [0.9 * Math.min(...gaps)] : []));
    const { width, high } = view;
    picture.setAttribute("width", width);
    picture.setAttribute("height", high);
    patch(
      shares,
      centers.map((center, j) => {
        const said = weights[j] >= WORTH_SAYING ? inCell(weights[j], 2) : "";
        return h("span", { style: `inset-inline-start:${center.toFixed(1)}px` }, said);
      }),
    );
    return arcGeometry(view);
  }

  function drawBars(weights, words) {
    element.classList.remove("attn-oneline");
    setStyle(element, "--word", "");
    shown = null;
    const ranked = Array.from(weights, (_, j) => j).sort((i, j) => weights[j] - weights[i]);
    const alone = ranked.slice(0, words.length <= BARS + 1 ? words.length : BARS).sort((i, j) => i - j);
    const rest = ranked.slice(alone.length);
    const bar = (name, weight, place) => [
      h("b", { "data-place": place, class: place === view.row ? "attn-asks" : null }, name),
      h("div", { "data-place": place }, h("s", { style: `inline-size:${(100 * weight).toFixed(2)}%` })),
      h("span", {}, view.forbidden?.[place] ? "–" : fixed(weight).replace("0.", ".")),
    ];
    patch(strip, [
      ...alone.flatMap((j) => bar(words[j], weights[j], j)),
      ...(rest.length
        ? bar(
            `${rest.length} others`,
            rest.reduce((sum, j) => sum + weights[j], 0),
            null,
          )
        : []),
    ]);
  }

  return {
    element,
    /** Draw again while a word is dragged. */
    follow() {
      if (!view?.size) return;
      view.centers = tokens.centers();
      paint(arcGeometry(view));
    },
    /** Let one arc stand out; −1 for none. */
    light(place) {
      if (place === lit) return;
      lit = place;
      if (view?.size && !moving) paint(shown);
    },
    /**
     * `weights` are those of the query at place `row`, for each place from left to right; what is `forbidden` has none.
     * @param {{width: number, words: string[], order: number[], row: number, weights: ArrayLike<number>,
     *   forbidden?: boolean[]}} next
     */
    update({ width, words, order, row, weights, forbidden }) {
      const size = wordSize(words, width);
      const flat = words.length < MANY ? 1 : FLATTER;
      const high = Math.ceil(rise(width) * flat + 4);
      const was = view;
      const moved = was && (was.row !== row || String(was.order) !== String(order));
      const cameFrom =
        moved && was.order.length === order.length ? order.map((token) => was.order.indexOf(token)) : null;
      view = {
        size,
        width,
        high,
        flat,
        row,
        order: [...order],
        weights,
        forbidden,
        cameFrom,
        centers: [],
        whole: WHOLE_PX,
      };
      tokens.dim(forbidden ? order.filter((_, j) => forbidden[j]) : []);
      if (!size) return drawBars(weights, words);
      const geometry = drawLine(weights, { size });
      if (moved || moving) travel(geometry);
      else paint(geometry);
    },
  };
}
