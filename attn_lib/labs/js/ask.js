// Guess first: a lab may ask before it answers. The guess stays in the page; nothing is counted.
import { h, setText } from "./dom.js";

/**
 * What a lab can ask. `then` is what the lab does once the guess is made: it sets that state.
 * @typedef {object} Ask
 * @property {(state: any) => (Node | string)[]} question
 * @property {Slide | Choices} control
 * @property {(state: any) => any} truth
 * @property {(guess: any, truth: any, state: any) => string} words  "You said 4 ×; it is 2 ×."
 * @property {(state: any) => object} [then]
 */

/** @typedef {{kind: "slider", min: number, max: number, step: number, text: (value: number) => string}} Slide */
/** @typedef {{kind: "choice", choices: (state: any) => [any, string][]}} Choices */

/**
 * The question, a control for the guess, *Show* and *Skip*.
 * @param {object} options
 * @param {Ask} options.ask
 * @param {any} options.state
 * @param {(guess: any) => void} options.onGuess  while the reader moves it
 * @param {(guess: any) => void} options.onShow  undefined when skipped
 * @param {AbortSignal} options.signal
 */
function askForm({ ask, state, onGuess, onShow, signal }) {
  const { element, value } = ask.control.kind === "slider" ? slide(ask.control) : choose(ask.control.choices(state));
  const button = (action, words, kind) => h("button", { type: "button", class: kind, "data-action": action }, words);
  const show = button("show", "Show", "attn-go");
  const skip = button("skip", "Skip", "attn-text");
  const said = () => {
    show.disabled = value() === undefined;
    onGuess(value());
  };
  element.addEventListener("input", said, { signal });
  show.addEventListener("click", () => onShow(value()), { signal });
  skip.addEventListener("click", () => onShow(undefined), { signal });
  show.disabled = value() === undefined;
  return h(
    "div",
    { class: "attn-ask" },
    h("p", { class: "attn-question" }, ask.question(state)),
    h("div", { class: "attn-guess" }, element, show, skip),
  );
}

function slide({ min, max, step, text }) {
  const input = h("input", {
    type: "range",
    min,
    max,
    step,
    value: min,
    "data-control": "guess",
    "aria-label": "guess",
  });
  const output = h("output");
  const write = () => {
    output.textContent = text(Number(input.value));
    input.setAttribute("aria-valuetext", output.textContent);
  };
  input.addEventListener("input", write);
  write();
  return { element: h("label", { class: "attn-slide" }, input, output), value: () => Number(input.value) };
}

const IN_SIGHT = 10; // choices; more are a list to open
let asked = 0; // radio buttons of one question share a name that no other question has

function choose(choices) {
  if (choices.length > IN_SIGHT) return pick(choices);
  const name = `attn-guess-${++asked}`;
  const element = h(
    "fieldset",
    { class: "attn-choices" },
    h("legend", { class: "attn-sr" }, "guess"),
    choices.map(([, words], at) =>
      h("label", {}, h("input", { type: "radio", name, value: at, "data-control": "guess" }), h("span", {}, words)),
    ),
  );
  const value = () => {
    /** @type {HTMLInputElement} */
    const checked = element.querySelector("input:checked");
    return checked ? choices[Number(checked.value)][0] : undefined;
  };
  return { element, value };
}

function pick(choices) {
  const element = h(
    "select",
    { "data-control": "guess", "aria-label": "guess" },
    h("option", { value: "" }, "choose …"),
    choices.map(([, words], at) => h("option", { value: at }, words)),
  );
  return { element, value: () => (element.value === "" ? undefined : choices[Number(element.value)][0]) };
}

/**
 * A lab's question from its asking to its answer. While it stands there, it takes the place of the sentence, and what
 * would answer it (`.attn-answer`) is hidden.
 * @param {object} options
 * @param {Ask} [options.ask]
 * @param {HTMLElement} options.says  the sentence
 * @param {HTMLElement} options.root
 * @param {() => any} options.state
 * @param {(patch: object) => void} options.set
 * @param {() => void} options.redraw
 * @param {AbortSignal} options.signal
 */
export function asking({ ask, says, root, state, set, redraw, signal }) {
  /** @type {HTMLElement | null} */
  let form = null;
  let guess = null;
  const verdict = h("span", { class: "attn-verdict" });
  root.classList.toggle("attn-asks", Boolean(ask));

  function end(value) {
    form?.replaceWith(says);
    form = null;
    guess = value ?? null;
    root.classList.remove("attn-asking");
    setText(verdict, "");
  }
  function answer(value) {
    const asked = state();
    end(value);
    if (value !== undefined) {
      const said = ask.words(value, ask.truth(asked), asked);
      if (ask.then) set(ask.then(asked));
      setText(verdict, ` ${said}`);
    }
    /** @type {HTMLElement} */
    const next = root.querySelector("input:not(:disabled), select:not(:disabled), button:not(:disabled)");
    next?.focus({ preventScroll: true }); // the button that had it is gone
    redraw();
  }
  return {
    verdict,
    get form() {
      return form;
    },
    get guess() {
      return guess;
    },
    end,
    /** Ask, if there is a question. */
    begin() {
      end(undefined);
      if (!ask) return;
      const onGuess = (value) => {
        guess = value ?? null;
        redraw();
      };
      form = askForm({ ask, state: state(), onGuess, onShow: answer, signal });
      says.replaceWith(form);
      root.classList.add("attn-asking");
    },
  };
}
