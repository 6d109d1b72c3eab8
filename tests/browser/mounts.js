// A kernel's side in a page: a plain model with anywidget's methods, and a ledger of what is still held.
window.ledger = { timers: new Set(), frames: new Set(), observers: new Set(), saves: 0, paints: 0 };
const keep = (set, clear, held) => {
  const [start, stop] = [window[set], window[clear]];
  window[set] = (run, ...rest) => {
    const id = start((...given) => (held.delete(id), run(...given)), ...rest);
    held.add(id);
    return id;
  };
  window[clear] = (id) => (held.delete(id), stop(id));
};
keep("setTimeout", "clearTimeout", ledger.timers);
keep("requestAnimationFrame", "cancelAnimationFrame", ledger.frames);
window.setInterval = () => {
  throw new Error("no lab needs an interval");
};

for (const name of ["ResizeObserver", "MutationObserver", "IntersectionObserver"])
  window[name] = class extends window[name] {
    observe(...given) {
      ledger.observers.add(this);
      super.observe(...given);
    }
    disconnect() {
      ledger.observers.delete(this);
      super.disconnect();
    }
  };

for (const name of ["clearRect", "putImageData"]) {
  const paint = CanvasRenderingContext2D.prototype[name];
  CanvasRenderingContext2D.prototype[name] = function (...given) {
    if (this.canvas.isConnected) ledger.paints++; // not what is prepared out of sight
    return paint.apply(this, given);
  };
}

window.makeModel = (data) => {
  const listeners = new Map();
  const held = (event) => listeners.get(event) ?? listeners.set(event, new Set()).get(event);
  return {
    data,
    get: (key) => data[key],
    set(key, value) {
      if (data[key] === value) return;
      data[key] = value;
      for (const listener of [...held(`change:${key}`)]) listener();
    },
    save_changes: () => ledger.saves++,
    on: (event, listener) => held(event).add(listener),
    off: (event, listener) => held(event).delete(listener),
    listening: () => [...listeners.values()].reduce((sum, set) => sum + set.size, 0),
  };
};

window.frames_ = async (count) => {
  for (let k = 0; k < count; k++) await new Promise(requestAnimationFrame);
};

window.mount = (model) => {
  const el = document.createElement("div");
  document.querySelector("main").append(el);
  const end = front.default.render({ model, el });
  return {
    el,
    model,
    remove() {
      end();
      el.remove();
    },
  };
};
