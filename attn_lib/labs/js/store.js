// A lab's state: the model's traits, changed together, sent and drawn at most once a frame.

const same = (a, b) => a === b || JSON.stringify(a) === JSON.stringify(b);

/**
 * Anywidget's model, or the page's.
 * @typedef {object} Model
 * @property {(key: string) => any} get
 * @property {(key: string, value: any) => void} set
 * @property {() => void} save_changes
 * @property {(event: string, listener: () => void) => void} on
 * @property {(event: string, listener: () => void) => void} off
 */

/**
 * @param {Model} model
 * @param {string[]} keys  the traits that are the lab's state
 * @param {(state: object) => void} draw  called in a frame after every change, with the last state
 */
export function createStore(model, keys, draw) {
  const get = () => Object.fromEntries(keys.map((key) => [key, model.get(key)]));
  let state = get();
  let frame = 0;
  const unsent = new Set();

  const request = () => (frame ||= requestAnimationFrame(flush));
  function flush() {
    frame = 0;
    for (const key of unsent) model.set(key, state[key]);
    if (unsent.size) model.save_changes();
    unsent.clear();
    draw(state);
  }
  /** @type {[string, () => void][]} */
  const listeners = keys.map((key) => [
    `change:${key}`,
    () => {
      if (unsent.has(key) || same(model.get(key), state[key])) return; // ours, or an echo
      state = { ...state, [key]: model.get(key) };
      request();
    },
  ]);
  for (const [event, listener] of listeners) model.on(event, listener);

  return {
    get state() {
      return state;
    },
    /** Change some of the state; the picture and the kernel follow in the next frame. */
    set(patch) {
      const changed = Object.keys(patch).filter((key) => !same(patch[key], state[key]));
      if (!changed.length) return;
      state = { ...state, ...patch };
      for (const key of changed) unsent.add(key);
      request();
    },
    /** Draw again with the same state, for a new theme or width. */
    redraw: request,
    /** Draw now, once, so that the first picture needs no frame. */
    start: () => draw(state),
    stop() {
      cancelAnimationFrame(frame);
      if (unsent.size) flush(); // the last change is never lost
      for (const [event, listener] of listeners) model.off(event, listener);
    },
  };
}
