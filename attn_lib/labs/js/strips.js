// Several readings of one sentence, each a strip: the words, and arcs from the one that asks. For heads, for layers.
import { arcGeometry, arcPath } from "./arcs.js";
import { h, patch, s, setStyle, textWidth } from "./dom.js";
import { inCell } from "./numbers.js";

const WHOLE_PX = 40; // the width of weight 1
const TITLE_PX = 20;
const WORDS_PX = 24;
const SHARES_PX = 18;
const WORTH_SAYING = 0.1; // of a weight under a word
const LEAST_WORD_PX = 11;

/**
 * One reading: `weights` of the word at place `row`, places from left to right; `marked` words are read on.
 * @typedef {object} Strip
 * @property {string | Node} title
 * @property {ArrayLike<number>} weights
 * @property {number} row
 * @property {boolean} [chosen]
 * @property {boolean[]} [gone]  what is cut: its arc is a dashed line
 */

/**
 * @param {object} options
 * @param {(strip: number, place: number) => void} [options.onWord]
 * @param {AbortSignal} options.signal
 */
export function strips({ onWord = () => {}, signal }) {
  const picture = s("svg", { role: "img", class: "attn-chart attn-strips" });
  const element = h("div", { class: "attn-answer" }, picture);
  picture.addEventListener(
    "click",
    ({ target }) => {
      const word = target instanceof Element && target.closest("[data-place]");
      if (word) onWord(Number(word.getAttribute("data-strip")), Number(word.getAttribute("data-place")));
    },
    { signal },
  );

  /** The words, and what their weights are. */
  function wordsOf({ weights, row }, k, words, centers, { x, y, size, gap }) {
    return words.flatMap((word, j) => {
      const asks = j === row;
      const at = { x: (x + centers[j]).toFixed(1), "text-anchor": "middle" };
      const share = weights[j] >= WORTH_SAYING ? inCell(weights[j], 2) : "";
      return [
        s("rect", {
          class: "attn-wordhit",
          "data-strip": k,
          "data-place": j,
          x: (x + centers[j] - gap / 2).toFixed(1),
          y: y + 2,
          width: gap.toFixed(1),
          height: WORDS_PX,
        }),
        s(
          "text",
          {
            ...at,
            y: y + 18,
            style: `font-size:${size}px`,
            class: asks ? "attn-word-asks" : "attn-word-read",
            "data-strip": k,
            "data-place": j,
          },
          word,
        ),
        s("text", { ...at, y: y + WORDS_PX + 12, class: "attn-f-weight" }, share),
      ];
    });
  }

  function draw(strip, k, words, at) {
    const { x, y, wide, arcsHigh, size } = at;
    const gap = wide / words.length;
    const centers = words.map((_, j) => (j + 0.5) * gap);
    const whole = Math.min(WHOLE_PX, 0.9 * gap, 0.5 * arcsHigh);
    const line = y + TITLE_PX + arcsHigh;
    const flat =
      (arcsHigh - 6) /
      Math.max(...arcGeometry({ centers, row: 0, weights: words.map(() => 0), whole }).map(({ high }) => high));
    const arcs = arcGeometry({ centers, row: strip.row, weights: strip.weights, whole, flat });
    const order = arcs.map((_, j) => j).sort((i, j) => arcs[j].high - arcs[i].high);
    const path = (j, more) => s("path", { d: arcPath(arcs[j], 0), ...more });
    const drawn = order
      .filter((j) => arcs[j].wide > 0.02)
      .map((j) =>
        s(
          "g",
          { class: strip.gone?.[j] ? "attn-cutarc" : arcs[j].wide > 2 ? null : "attn-faint" },
          arcs[j].wide > 2 && j !== strip.row
            ? path(j, { class: "attn-casing", "stroke-width": (arcs[j].wide + 3).toFixed(2) })
            : null,
          path(j, {
            class: "attn-arc",
            "stroke-width": strip.gone?.[j] ? "1.6" : Math.max(0.8, arcs[j].wide).toFixed(2),
          }),
        ),
      );
    return [
      s(
        "text",
        { x: x.toFixed(1), y: y + 14, class: strip.chosen ? "attn-striptitle attn-chosen" : "attn-striptitle" },
        strip.title,
      ),
      s(
        "g",
        { transform: `translate(${x.toFixed(1)} ${line})` },
        drawn,
        s("rect", {
          class: "attn-queryfoot",
          x: (centers[strip.row] - whole / 2).toFixed(1),
          y: -1,
          width: whole.toFixed(1),
          height: 3,
        }),
      ),
      ...wordsOf(strip, k, words, centers, { x, y: line, size, gap }),
    ];
  }

  return {
    element,
    /**
     * @param {object} view
     * @param {number} view.width
     * @param {string[]} view.words
     * @param {Strip[]} view.strips
     * @param {number} [view.columns]
     * @param {number} [view.high]  px of the arcs
     * @param {{from: [number, number], to: [number, number]}[]} [view.ties]  dotted lines, from a strip's word to another's
     * @param {string} view.sentence
     */
    update({ width, words, strips: all, columns = 1, high = 70, ties = [], sentence }) {
      const gapX = 32;
      const wide = (width - (columns - 1) * gapX) / columns;
      const each = TITLE_PX + high + WORDS_PX + SHARES_PX + 10;
      const place = (k) => ({
        x: (k % columns) * (wide + gapX),
        y: Math.floor(k / columns) * each,
        wide,
        arcsHigh: high,
      });
      const longest = textWidth(words) / 12.5; // px of width per px of size
      const size = Math.max(LEAST_WORD_PX, Math.min(17, (wide / words.length - 4) / longest));
      const total = Math.ceil(all.length / columns) * each;
      picture.setAttribute("width", String(Math.floor(width)));
      picture.setAttribute("height", String(total));
      picture.setAttribute("viewBox", `0 0 ${Math.floor(width)} ${total}`);
      picture.setAttribute("aria-label", sentence);
      setStyle(element, "min-block-size", `${total}px`);
      const end = ([k, j], below) => {
        const { x, y } = place(k);
        return [x + ((j + 0.5) * wide) / words.length, y + TITLE_PX + high + (below ? WORDS_PX + 2 : -4)];
      };
      patch(picture, [
        ...all.flatMap((strip, k) => draw(strip, k, words, { ...place(k), size: size.toFixed(1) })),
        ...ties.map(({ from, to }) => {
          const [[x0, y0], [x1, y1]] = [end(from, true), end(to, false)];
          return s("path", { class: "attn-tie", d: `M${x0.toFixed(1)} ${y0}L${x1.toFixed(1)} ${y1}` });
        }),
      ]);
    },
  };
}
