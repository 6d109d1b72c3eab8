// What every lab has: title, main controls, the sentence, the picture; the rest in More; copy and reset, state in the
// link, notices, theme, width, clean removal.
import { asking } from "./ask.js";
import { controlGrid } from "./controls.js";
import { h, setText, textButton } from "./dom.js";
import { formatFragment } from "./fragment.js";
import { createStore } from "./store.js";
import { onTheme, theme } from "./theme.js";

const SPEAK_AFTER_MS = 350; // a screen reader hears where a slider stopped, not each step
const COPIED_MS = 1600;
const QUOTED = 60; // characters of somebody's link that a notice repeats
const REMARKS = 5; // things wrong with it that a notice names
const UNSEEN_PX = 320; // a lab in a closed dropdown or tab has no width yet: it is drawn again when it opens

/** The beginning of a long text. */
const brief = (text) => (text.length > QUOTED ? `${text.slice(0, QUOTED)}…` : text);

/** @typedef {import("./store.js").Model} Model */

/**
 * What a lab is made with.
 * @typedef {object} Parts
 * @property {Model} model
 * @property {AbortSignal} signal
 * @property {(patch: object) => void} set
 * @property {Function} state
 * @property {Function} redraw
 * @property {Element} root
 */

/**
 * A lab's own elements, in order; `draw` shows a state and gives the sentence that says what is shown. What the model's
 * `controls` and `panels` name is seen at once, the rest is in More.
 * @typedef {object} Made
 * @property {Record<string, {element: Element}>} controls
 * @property {Record<string, Element>} panels
 * @property {Node[]} [after]  notes, in More
 * @property {Element} [readout]  a line under the picture: what is under the pointer
 * @property {(state: object, look: Look) => string | (Node | string)[]} draw
 * @property {Function} [stop]
 */

/**
 * How a state is drawn: while a question is `asking`, what would answer it stays hidden; `guess` is the reader's mark.
 * @typedef {{theme: string, width: number, asking: boolean, guess: any}} Look
 */

/**
 * Make a lab's `render` for both hosts.
 *
 * @param {object} lab
 * @param {(state: any, model: Model) => Record<string, {clean: Function, read: Function}>} lab.settings
 *   what each trait of the state may be, given the others; in the order in which a link is read
 * @param {(parts: Parts) => Made} lab.build
 * @param {(model: Model) => Record<string, import("./ask.js").Ask>} [lab.asks]  what it can ask before it answers
 */
export const defineLab =
  (lab) =>
  ({ model, el, host }) => {
    const ending = new AbortController();
    const { signal } = ending;
    const keys = Object.keys(lab.settings({}, model));
    const initial = Object.fromEntries(keys.map((key) => [key, model.get(key)]));
    /** The nearest state that can be drawn. */
    const clean = (state) => {
      const settings = lab.settings(state, model);
      return Object.fromEntries(keys.map((key) => [key, settings[key].clean(state[key])]));
    };

    const copy = textButton("link", host.shareLabel);
    const reset = textButton("reset", "Reset");
    const notice = h("div", { class: "attn-notice", role: "status", hidden: true });
    const says = h("p", { class: "attn-says", "aria-hidden": "true" });
    const spoken = h("p", { class: "attn-sentence attn-sr", "aria-live": "polite" });
    const root = h("div", { class: "attn-live" });

    let width = 0;
    let speaking = 0;
    let copied = 0;

    const draw = (state) => {
      const now = clean(state);
      const look = {
        theme: root.dataset.theme,
        width: width || UNSEEN_PX,
        asking: Boolean(asks.form),
        guess: asks.guess,
      };
      const sentence = [built.draw(now, look)].flat();
      says.replaceChildren(...sentence, asks.verdict);
      const words = (asks.form?.querySelector(".attn-question") ?? says).textContent;
      clearTimeout(speaking);
      if (!spoken.textContent) setText(spoken, words);
      else speaking = setTimeout(() => setText(spoken, words), SPEAK_AFTER_MS);
    };
    const store = createStore(model, keys, draw);
    /** A change by the reader: the rest of the state is first made good, so that what is shown is what is kept. */
    const set = (patch) => {
      say();
      setText(asks.verdict, ""); // it spoke of another state
      store.set(clean({ ...clean(store.state), ...patch }));
    };
    function say(...content) {
      if (notice.hidden && !content.length) return;
      notice.replaceChildren(...content);
      notice.hidden = !content.length;
    }

    const built = lab.build({
      model,
      signal,
      set,
      state: () => clean(store.state),
      redraw: () => store.redraw(),
      root,
    });
    const { head, picture, foot } = arrange(built, model, { copy, reset, signal });
    root.append(head, notice, says, picture, foot, spoken);
    el.append(root);

    const asks = asking({
      ask: lab.asks?.(model)[model.get("ask")],
      says,
      root,
      state: () => clean(store.state),
      set,
      redraw: () => store.redraw(),
      signal,
    });
    asks.begin();

    reset.addEventListener(
      "click",
      () => {
        say();
        store.set(initial);
        asks.begin();
        store.redraw();
        host.shared?.("");
      },
      { signal },
    );

    copy.addEventListener(
      "click",
      async () => {
        const text = host.share(clean(store.state), clean(initial));
        try {
          await navigator.clipboard.writeText(text);
          setText(copy, "Copied");
          clearTimeout(copied);
          copied = setTimeout(() => setText(copy, host.shareLabel), COPIED_MS);
        } catch {
          const field = h("input", { readonly: true, value: text, "aria-label": host.shareLabel });
          say("Copy it from here: ", field);
          field.select();
        }
      },
      { signal },
    );

    const dress = () => {
      root.dataset.theme = theme();
    };
    onTheme(() => {
      dress();
      store.redraw();
    }, signal);
    const resizing = new ResizeObserver(([{ contentRect }]) => {
      if (Math.round(contentRect.width) === width) return;
      width = Math.round(contentRect.width);
      store.redraw();
    });
    dress();
    width = Math.round(root.getBoundingClientRect().width);
    store.start();
    resizing.observe(root);

    return {
      /** Take a link's fields: anybody's text, so each is read, limited, and named when it cannot be used. */
      apply(fields) {
        const given = new Map(fields);
        let state = clean(initial);
        const remarks = [...given.keys()]
          .filter((key) => !keys.includes(key))
          .map((key) => `${brief(key)}: this lab has no such setting`);
        for (const key of keys.filter((name) => given.has(name))) {
          const text = given.get(key);
          try {
            const value = lab.settings(state, model)[key].read(text);
            state = clean({ ...state, [key]: value });
            if (typeof value === "number" && Number(text) !== value)
              remarks.push(`${key}=${brief(text)}: not possible here, so ${value} is used`);
          } catch (error) {
            remarks.push(`${key}=${brief(text)}: ${error.message}`);
          }
        }
        asks.end(undefined); // who sets a state wants to see it
        store.set(state);
        store.redraw();
        const more = remarks.length - REMARKS;
        if (more > 0) remarks.splice(REMARKS, more, `and ${more} more`);
        say(...(remarks.length ? [`The link could not be followed in full. ${remarks.join("; ")}.`] : []));
      },
      /** Remove everything: listeners, observers, timers, nodes. */
      stop() {
        store.stop();
        ending.abort();
        resizing.disconnect();
        clearTimeout(speaking);
        clearTimeout(copied);
        built.stop?.();
        root.remove();
      },
    };
  };

/**
 * Put a lab's elements in their places: the model's `controls` beside the title, its `panels` below, the rest in More.
 * @param {Made} built
 */
function arrange({ controls = {}, panels = {}, after = [], readout }, model, { copy, reset, signal }) {
  const part = (all, names) => {
    const shown = names.filter((name) => name in all);
    return [shown.map((name) => all[name]), Object.keys(all).filter((name) => !shown.includes(name))];
  };
  const [first, others] = part(controls, model.get("controls") ?? []);
  const [seen, folded] = part(panels, model.get("panels") ?? []);
  const element = ({ element }) => element;
  const head = h(
    "div",
    { class: "attn-head" },
    h("p", { class: "attn-title" }, model.get("title")),
    first.length ? h("div", { class: "attn-first" }, first.map(element)) : null,
  );
  const picture = h("div", { class: "attn-picture" }, seen);
  const inside = [
    others.length ? controlGrid(Object.fromEntries(others.map((name) => [name, controls[name]]))) : null,
    ...folded.map((name) => panels[name]),
    ...after,
  ].filter(Boolean);
  const more = h("div", { class: "attn-more", hidden: true }, inside);
  const opener = h(
    "button",
    { type: "button", class: "attn-text attn-opener", "data-action": "more", "aria-expanded": "false" },
    "More",
  );
  opener.addEventListener(
    "click",
    () => {
      more.hidden = !more.hidden;
      opener.setAttribute("aria-expanded", String(!more.hidden));
    },
    { signal },
  );
  const line = h("div", { class: "attn-foot" }, readout, reset, copy, inside.length ? opener : null);
  return { head, picture, foot: h("div", {}, line, more) };
}

/** The link to a lab in its present state. */
export const link = (name, state, initial) => location.href.split("#")[0] + formatFragment(name, state, initial);
