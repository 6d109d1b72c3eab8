// The page host: brings every lab of a built page alive, with no kernel and no network.
import { parseFragment } from "./fragment.js";
import { link } from "./frame.js";
import { start } from "./start.js";

/** A model like anywidget's, over plain data. */
function plainModel(data) {
  const listeners = new Map();
  return {
    get: (key) => data[key],
    set(key, value) {
      if (data[key] === value) return;
      data[key] = value;
      for (const listener of [...(listeners.get(`change:${key}`) ?? [])]) listener();
    },
    save_changes() {},
    on(event, listener) {
      if (!listeners.has(event)) listeners.set(event, new Set());
      listeners.get(event).add(listener);
    },
    off: (event, listener) => listeners.get(event)?.delete(listener),
  };
}

/** Give the figure an id that no other element of the page has; of two labs with one name the first keeps it. */
function name(figure, wanted) {
  const yields = (element) => element === figure || element.matches("figure.attn-lab:not([data-ready])");
  const free = (id) => [...document.querySelectorAll(`[id="${CSS.escape(id)}"]`)].every(yields);
  let id = wanted || figure.dataset.lab.toLowerCase();
  for (let k = 2; !free(id); k++) id = `${wanted || figure.dataset.lab.toLowerCase()}-${k}`;
  figure.id = id;
  return id;
}

/** What a lab in a page shares: links to its present state. */
function linking(id) {
  const host = {
    shareLabel: "Copy link",
    share(state, initial) {
      const address = link(id, state, initial);
      host.shared(address.slice(address.indexOf("#")));
      return address;
    },
    /** Let the address bar say the same as the link that was copied, or nothing after a reset. */
    shared(hash) {
      if (hash || parseFragment(location.hash)?.name === id)
        history.replaceState(null, "", hash || location.href.split("#")[0]);
    },
  };
  return host;
}

function begin(figure) {
  if (figure.dataset.ready) return null;
  const id = name(figure, figure.id);
  const lab = start(figure, figure.dataset.lab, () => ({
    model: plainModel(JSON.parse(figure.querySelector("script.attn-state").textContent)),
    host: linking(id),
  }));
  return lab && { id, figure, lab };
}

function run() {
  const started = [...document.querySelectorAll("figure.attn-lab[data-lab]")].map(begin).filter(Boolean);
  const follow = (block = /** @type {ScrollLogicalPosition} */ ("start")) => {
    const target = parseFragment(location.hash);
    const found = target && started.find(({ id }) => id === target.name);
    if (!found) return;
    if (target.fields.length) found.lab.apply(target.fields);
    found.figure.scrollIntoView({ block });
  };
  addEventListener("hashchange", () => follow());
  // A link of the text sets a lab again after the reader has moved it: the address does not change then.
  addEventListener("click", ({ target }) => {
    const again = target instanceof Element && target.closest("a[href^='#']");
    if (again && again.getAttribute("href") === location.hash) follow("nearest");
  });
  follow();
}

if (document.readyState === "loading") addEventListener("DOMContentLoaded", run);
else run();
