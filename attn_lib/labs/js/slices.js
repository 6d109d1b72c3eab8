// Long work in short slices, a few milliseconds a frame, so that the page stays quick.

const SLICE_MS = { moving: 1, still: 5 }; // while the reader moves something, and after
const STILL_AFTER_MS = 150;

/**
 * @param {() => void} done  called when a task has ended
 */
export function slices(done) {
  let task = null;
  let frame = 0;
  let touched = 0;

  /** Go on with the task for some time; true when it has ended. */
  function advance(ms) {
    const end = performance.now() + ms;
    while (performance.now() < end)
      if (task.next().done) {
        task = null;
        return true;
      }
    return false;
  }
  function tick() {
    frame = 0;
    if (advance(performance.now() - touched < STILL_AFTER_MS ? SLICE_MS.moving : SLICE_MS.still)) done();
    else frame = requestAnimationFrame(tick);
  }

  return {
    get busy() {
      return Boolean(task);
    },
    /** Say that the reader moves something: the page must stay quick. */
    touch: () => (touched = performance.now()),
    /** Begin a task (a generator); `now` is how many milliseconds it may take at once. True when it has ended. */
    start(generator, now = 0) {
      task = generator;
      if (advance(now)) return true;
      frame = requestAnimationFrame(tick);
      return false;
    },
    stop() {
      cancelAnimationFrame(frame);
      task = null;
    },
  };
}
