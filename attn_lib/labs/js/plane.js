// A plane: points with names on two axes, drawn as SVG; some of them may be moved, by pointer or by arrow keys.
import { FONT, h, panelTitle, patch, s, setStyle, textWidth } from "./dom.js";
import { fixed } from "./numbers.js";

const PAD = 8; // px between the edge and the plane's reach
const STEP = 0.05; // of an arrow key; with Shift five of them

/**
 * A point that can be moved: by pointer, or with the arrow keys when it has the focus.
 * @typedef {object} Handle
 * @property {string} name  its accessible name
 * @property {(x: number, y: number) => void} onMove
 * @property {() => number[]} now  where it stands, also when it is not drawn there yet
 */

/**
 * @param {object} options
 * @param {string} options.panel  the page contract's name
 * @param {string} options.title
 * @param {number} options.reach  both axes run from −reach to reach, points to `most` at the utmost
 * @param {number} [options.most]
 * @param {Handle[]} [options.handles]
 * @param {boolean} [options.anywhere]  the first of them also comes where the plane is pressed
 * @param {AbortSignal} options.signal
 */
export function plane({ panel, title, reach, most = reach, handles = [], anywhere = false, signal }) {
  const formula = h("span", { class: "attn-formula" });
  const layers = { axes: s("g"), marks: s("g") };
  const picture = s("svg", { role: "img", class: "attn-chart", "font-family": FONT }, Object.values(layers));
  const grips = handles.map(({ name }) => h("button", { type: "button", class: "attn-grip", "data-point": name }));
  const field = h("div", { class: anywhere ? "attn-plane attn-anywhere" : "attn-plane" }, picture, grips);
  const element = h("div", { class: `attn-panel attn-panel-${panel}` }, panelTitle(title, formula), field);
  let size = 0;

  const X = (x) => PAD + ((x + reach) / (2 * reach)) * (size - 2 * PAD);
  const Y = (y) => size - X(y);
  const listen = (target, type, run) => target.addEventListener(type, run, { signal });
  const clamp = (value) => Math.min(most, Math.max(-most, Math.round(value * 100) / 100));
  const moveTo = (k, x, y) => handles[k].onMove(clamp(x), clamp(y));
  const follow = (k, { clientX, clientY }) => {
    const box = picture.getBoundingClientRect();
    const there = (p) => ((p - PAD) / (size - 2 * PAD)) * 2 * reach - reach;
    moveTo(k, there(clientX - box.left), -there(clientY - box.top));
  };
  if (grips.length) takeHold();

  function takeHold() {
    let pointer = null;
    let held = 0;
    listen(field, "pointerdown", (event) => {
      const k = grips.indexOf(event.target);
      // a finger on the plane may be scrolling the page: it must take the point itself
      if (event.button || (k < 0 && (!anywhere || event.pointerType === "touch"))) return;
      event.preventDefault();
      held = Math.max(0, k);
      grips[held].focus({ preventScroll: true });
      pointer = event.pointerId;
      field.setPointerCapture(pointer);
      if (k < 0) follow(held, event);
    });
    listen(field, "pointermove", (event) => {
      if (event.pointerId === pointer) follow(held, event);
    });
    for (const type of ["pointerup", "pointercancel"]) listen(field, type, () => (pointer = null));
    listen(field, "click", (event) => {
      if (anywhere && event.pointerType === "touch" && !grips.includes(event.target)) follow(0, event);
    });
    grips.forEach((grip, k) => listen(grip, "keydown", (event) => step(k, event)));
  }

  function step(k, event) {
    const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const [right, up] = ways[event.key] ?? [0, 0];
    if (!(right || up) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const by = event.shiftKey ? 5 * STEP : STEP;
    const [x, y] = handles[k].now();
    moveTo(k, x + right * by, y + up * by);
  }

  return {
    element,
    formula,
    /**
     * @param {object} view
     * @param {number} view.side  px
     * @param {number[][]} [view.points]  where the points that move are drawn
     * @param {(X: Function, Y: Function) => Node[]} view.marks  what is drawn, from behind to before
     * @param {{x: [string, string], y: [string, string]}} [view.ends]  words at the ends of the axes
     * @param {string} view.sentence  what the picture shows, for those who do not see it
     */
    update({ side, points = [], marks, ends, sentence }) {
      if (side !== size) {
        size = side;
        setStyle(element, "inline-size", `${side}px`); // the title wraps above its plane
        picture.setAttribute("viewBox", `0 0 ${side} ${side}`);
        picture.setAttribute("width", side);
        picture.setAttribute("height", side);
        layers.axes.replaceChildren(...axes(ends));
      }
      picture.setAttribute("aria-label", `${title}. ${sentence}`);
      patch(layers.marks, marks(X, Y).filter(Boolean));
      grips.forEach((grip, k) => {
        const [x, y] = points[k];
        setStyle(grip, "inset-inline-start", `${X(x)}px`);
        setStyle(grip, "inset-block-start", `${Y(y)}px`);
        const label = `${handles[k].name}: ${fixed(x)}, ${fixed(y)}. The arrow keys move it.`;
        if (grip.ariaLabel !== label) grip.ariaLabel = label;
      });
    },
  };

  function axes(ends = { x: [], y: [] }) {
    const [low, middle, high] = [X(-reach), X(0), X(reach)];
    const word = (text, attributes) => text && s("text", { class: "attn-tick", ...attributes }, text);
    return [
      s("rect", { class: "attn-field", x: 0.5, y: 0.5, width: size - 1, height: size - 1, rx: 4 }),
      s("line", { class: "attn-grid", x1: low, x2: high, y1: middle, y2: middle }),
      s("line", { class: "attn-grid", x1: middle, x2: middle, y1: low, y2: high }),
      word(ends.x[0], { x: low, y: middle + 13 }),
      word(ends.x[1], { x: high, y: middle + 13, "text-anchor": "end" }),
      word(ends.y[0], { x: middle + 6, y: high - 2 }),
      word(ends.y[1], { x: middle + 6, y: low + 10 }),
    ].filter(Boolean);
  }
}

/**
 * A name beside a point, on the side away from `centre`; above or below it where the edge is too near.
 * @param {string} text
 * @param {number[]} point  px
 * @param {number[]} centre
 * @param {{distance?: number, side: number, more?: string | false, avoid?: number[]}} look
 *   px from the point; the plane's side; a quiet word after the name; a point not to be covered
 */
export function nameTag(text, [x, y], [centreX, centreY], { distance = 11, side, more, avoid = [centreX, centreY] }) {
  const dx = x - centreX;
  const dy = y - centreY;
  const length = textWidth([more ? `${text} ${more}` : text]);
  const room = dx > 0 ? side - x : x;
  const sideways = Math.abs(dx) > 0.45 * Math.abs(dy) && room > distance + length + 2;
  const [left, right] = [length / 2 + 3, side - length / 2 - 3];
  const at = sideways
    ? {
        x: x + Math.sign(dx) * distance,
        y: y + 4 + 0.6 * distance * (dy / Math.hypot(dx, dy)),
        "text-anchor": dx > 0 ? "start" : "end",
      }
    : {
        x: Math.min(right, Math.max(left, x)),
        y: y > avoid[1] ? y + distance + 9 : y - distance,
        "text-anchor": "middle",
      };
  return s("text", { class: "attn-name", ...at }, text, more && s("tspan", { class: "attn-aside", dx: 5 }, more));
}

/**
 * A letter beside a point, on the side away from its neighbour.
 * @param {string} letter
 * @param {number[]} point
 * @param {number[]} neighbour
 * @param {number} distance
 */
export function letterTag(letter, [x, y], [otherX, otherY], distance) {
  const length = Math.hypot(x - otherX, y - otherY);
  const [right, down] = length > 0.5 ? [(x - otherX) / length, (y - otherY) / length] : [0, -1];
  return s(
    "text",
    { class: "attn-letter", x: x + right * distance, y: y + down * distance + 4, "text-anchor": "middle" },
    letter,
  );
}
