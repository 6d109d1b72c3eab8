// What every lab has: title, copy and reset, state in the link, notices, one spoken sentence, theme, width, clean
// removal.
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
 * A lab's own elements; `draw` shows a state and gives the sentence that says what is shown.
 * @typedef {object} Made
 * @property {Node[]} elements
 * @property {Node[]} [after]
 * @property {(state: object, look: {theme: string, width: number}) => string} draw
 * @property {Function} [stop]
 */

/**
 * Make a lab's `render` for both hosts.
 *
 * @param {object} lab
 * @param {(state: any, model: Model) => Record<string, {clean: Function, read: Function}>} lab.settings
 *   what each trait of the state may be, given the others; in the order in which a link is read
 * @param {(parts: Parts) => Made} lab.build
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
    const spoken = h("p", { class: "attn-sentence", "aria-live": "polite" });
    const root = h(
      "div",
      { class: "attn-live" },
      h("div", { class: "attn-head" }, h("p", { class: "attn-title" }, model.get("title")), copy, reset),
      notice,
    );

    let width = 0;
    let speaking = 0;
    let copied = 0;

    const draw = (state) => {
      const sentence = built.draw(clean(state), { theme: root.dataset.theme, width: width || UNSEEN_PX });
      clearTimeout(speaking);
      if (!spoken.textContent) setText(spoken, sentence);
      else speaking = setTimeout(() => setText(spoken, sentence), SPEAK_AFTER_MS);
    };
    const store = createStore(model, keys, draw);
    /** A change by the reader: the rest of the state is first made good, so that what is shown is what is kept. */
    const set = (patch) => {
      say();
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
    root.append(...built.elements, spoken, ...(built.after ?? []));
    el.append(root);

    reset.addEventListener(
      "click",
      () => {
        say();
        store.set(initial);
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
        store.set(state);
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

/** The link to a lab in its present state. */
export const link = (name, state, initial) => location.href.split("#")[0] + formatFragment(name, state, initial);
