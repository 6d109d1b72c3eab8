// Labelled native controls. Each returns { element, update(value, options) } and calls `onInput` with a clean value.
import { h, setText, stillness, sym } from "./dom.js";
import { significant } from "./numbers.js";

/** All controls of a lab, in as many columns as there is room for. */
export const controlGrid = (controls, more = "") =>
  h(
    "div",
    { class: `attn-controls ${more}` },
    Object.values(controls).map(({ element }) => element),
  );

/**
 * Text under a control: a `hint` of what it does, or why it is off, in sight (`why`) or for its tooltip and screen
 * readers alone (`off`).
 * @typedef {{why?: string, off?: string, hint?: string}} Hints
 */

/**
 * @param {HTMLInputElement | HTMLSelectElement} input
 * @param {HTMLElement} note
 * @param {Hints} hints
 */
function explain(input, note, { why, off, hint }) {
  input.disabled = Boolean(why || off);
  input.title = off || "";
  setText(note, why || off || hint || "");
  note.hidden = !(why || off || hint);
  note.classList.toggle("attn-sr", !why && Boolean(off));
}

/**
 * A slider with its value beside it; `toInput` and `fromInput` translate (a logarithmic slider moves in log₁₀).
 * @param {{
 *   control: string,
 *   label: any,
 *   min: number,
 *   max: number,
 *   step?: number,
 *   toInput?: (value: number) => number,
 *   fromInput?: (position: number) => number,
 *   text: (value: number) => string,
 *   onInput: (value: number) => void,
 *   signal: AbortSignal,
 * }} options
 */
export function slider({
  control,
  label,
  min,
  max,
  step = 1,
  toInput = Number,
  fromInput = Number,
  text,
  onInput,
  signal,
}) {
  const input = h("input", { type: "range", min, max, step, "data-control": control });
  const value = h("output");
  const note = h("small", { class: "attn-why", hidden: true });
  const element = h("div", { class: "attn-control" }, h("label", {}, h("span", {}, label), input, value), note);
  input.addEventListener("input", () => onInput(fromInput(Number(input.value))), { signal });
  return {
    element,
    /**
     * @param {number} current
     * @param {Hints & {most?: number}} [how]
     */
    update(current, { why, off, hint, most = max } = {}) {
      if (Number(input.max) !== most) input.max = most;
      const position = String(toInput(current));
      if (input.value !== position) input.value = position;
      setText(value, text(current));
      input.setAttribute("aria-valuetext", text(current));
      explain(input, note, { why, off, hint });
    },
  };
}

/** The temperature of a softmax: a slider in log₁₀ T whose stops have three figures. */
export function temperature({ low, high, signal, onInput }) {
  return slider({
    control: "temperature",
    label: ["temperature ", sym("T")],
    min: Math.log10(low),
    max: Math.log10(high),
    step: 0.02,
    toInput: (T) => Number(Math.log10(T).toFixed(2)),
    fromInput: (position) => Number((10 ** position).toPrecision(3)),
    text: significant,
    signal,
    onInput,
  });
}

/** A choice from a list of [value, words]. */
export function select({ control, label, onInput, signal }) {
  const input = h("select", { "data-control": control });
  const note = h("small", { class: "attn-why", hidden: true });
  const element = h("div", { class: "attn-control" }, h("label", {}, h("span", {}, label), input), note);
  input.addEventListener("change", () => onInput(input.value), { signal });
  return {
    element,
    /**
     * @param {string} current
     * @param {any[][]} choices
     * @param {Hints} [hints]
     */
    update(current, choices, { why, hint } = {}) {
      explain(input, note, { why, hint });
      if (String(choices) !== input.dataset.choices) {
        input.replaceChildren(...choices.map(([value, words]) => h("option", { value }, words)));
        input.dataset.choices = String(choices);
      }
      input.value = current;
    },
  };
}

/** A box to tick. */
export function checkbox({ control, label, onInput, signal }) {
  const input = h("input", { type: "checkbox", "data-control": control });
  const element = h("div", { class: "attn-control" }, h("label", { class: "attn-check" }, input, h("span", {}, label)));
  input.addEventListener("change", () => onInput(input.checked), { signal });
  return {
    element,
    update(current, shown = true) {
      element.hidden = !shown;
      input.checked = current;
    },
  };
}

const BEAT_MS = 1000;

/**
 * The steps of a computation: a slider, and buttons that go back, go on, or play to the end.
 * @param {object} options
 * @param {string} options.control
 * @param {any} options.label
 * @param {(step: number) => void} options.onInput
 * @param {AbortSignal} options.signal
 * @param {(current: number, most: number) => string} [options.text]  how a step is named beside the slider
 * @param {number} [options.beat]  ms from step to step
 * @param {() => boolean} [options.still]  whether playing is one jump, by default where the reader asks for less motion
 */
export function stepper({
  control,
  label,
  text = (current, most) => `${current} of ${most}`,
  beat: pause = BEAT_MS,
  still = stillness,
  onInput,
  signal,
}) {
  const input = h("input", { type: "range", min: 0, step: 1, "data-control": control });
  const value = h("output");
  const button = (action, words) => h("button", { type: "button", class: "attn-text", "data-action": action }, words);
  const [previous, play, next] = [button("previous", "Previous"), button("play", "Play"), button("next", "Next")];
  const element = h(
    "div",
    { class: "attn-control attn-stepper" },
    h("label", {}, h("span", {}, label), input, value),
    h("div", { class: "attn-actions" }, previous, play, next),
  );
  let view = { current: 0, most: 0 };
  let beat = 0;
  let expected = 0; // the step that playing has asked for

  function stop() {
    clearTimeout(beat);
    beat = 0;
    name();
  }
  const name = () => setText(play, beat ? "Pause" : still() ? "To the end" : "Play");
  const go = (step) => onInput((expected = Math.min(view.most, Math.max(0, step))));
  function playOn() {
    go(view.current === view.most ? 0 : view.current + 1);
    beat = setTimeout(() => (view.current === view.most ? stop() : playOn()), pause);
    name();
  }
  const listen = (target, type, run) => target.addEventListener(type, run, { signal });
  const by = (run) => () => (stop(), run());
  listen(
    input,
    "input",
    by(() => go(Number(input.value))),
  );
  listen(
    previous,
    "click",
    by(() => go(view.current - 1)),
  );
  listen(
    next,
    "click",
    by(() => go(view.current + 1)),
  );
  listen(play, "click", () => (beat ? stop() : still() ? go(view.most) : playOn()));
  signal.addEventListener("abort", stop);

  return {
    element,
    update(current, most) {
      view = { current, most };
      if (beat && (current !== expected || current === most)) stop(); // moved by something else, or at the end
      if (Number(input.max) !== most) input.max = most;
      if (input.value !== String(current)) input.value = current;
      setText(value, text(current, most));
      input.setAttribute("aria-valuetext", text(current, most));
      previous.setAttribute("aria-disabled", current === 0); // not disabled: that would lose the focus
      next.setAttribute("aria-disabled", current === most);
      name();
    },
  };
}

/** A seed: a number, and a button that takes the next one. */
export function seed({ label, most, onInput, signal }) {
  const input = h("input", { type: "number", min: 0, max: most, step: 1, "data-control": "seed" });
  const next = h("button", { type: "button", class: "attn-text", "data-action": "resample" }, "Resample");
  const element = h("div", { class: "attn-control attn-seed" }, h("label", {}, h("span", {}, label), input), next);
  input.addEventListener(
    "change",
    () => {
      const value = Math.round(Number(input.value));
      onInput(Math.min(most, Math.max(0, Number.isFinite(value) ? value : 0)));
    },
    { signal },
  );
  next.addEventListener("click", () => onInput((Number(input.value) + 1) % (most + 1)), { signal });
  return {
    element,
    update(current, shown) {
      element.hidden = !shown;
      if (input.value !== String(current)) input.value = current;
    },
  };
}
