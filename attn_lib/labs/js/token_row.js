// The tokens, in order: choose one to be the query; drag or push one to move it.
import { glide, h, setText, textButton } from "./dom.js";

const DRAG_FROM_PX = 5; // less is a click
const GLIDE_MS = 250;

/**
 * @param {object} options
 * @param {(token: number) => void} options.onQuery
 * @param {(order: number[]) => void} options.onOrder
 * @param {() => void} [options.onDrag]  a token is dragged and stands somewhere else
 * @param {() => number[]} options.now  the order, with changes that no frame has shown yet
 * @param {AbortSignal} options.signal
 */
export function tokenRow({ onQuery, onOrder, now, onDrag = () => {}, signal }) {
  const list = h("ul", { class: "attn-tokens", "data-control": "order", "aria-label": "Tokens in order" });
  let view = { tokens: [], order: [], query: 0 };
  let items = []; // by token index
  let drag = null;

  function build(tokens) {
    items = tokens.map((text, token) => {
      const push = (side, glyph) =>
        h(
          "button",
          {
            type: "button",
            class: `attn-push attn-push-${side}`,
            "data-move": side,
            "aria-label": `Move ${text} ${side}`,
          },
          glyph,
        );
      return h(
        "li",
        { "data-token": token },
        push("left", "‹"),
        h("button", { type: "button", class: "attn-chip", "data-query": token }, text),
        push("right", "›"),
      );
    });
    list.replaceChildren();
  }

  /** Put the items in order without ever moving `fixed`, which would lose its focus or its drag. */
  function arrange(order, fixed) {
    const wanted = order.map((token) => items[token]);
    const pivot = wanted.indexOf(fixed);
    if (pivot < 0 || fixed.parentNode !== list) return list.replaceChildren(...wanted);
    wanted.slice(0, pivot).forEach((item) => list.insertBefore(item, fixed));
    list.append(...wanted.slice(pivot + 1));
  }

  function move(token, to) {
    const order = now().filter((other) => other !== token);
    order.splice(to, 0, token);
    if (String(order) !== String(now())) onOrder(order);
  }

  const tokenOf = (target) => {
    /** @type {HTMLElement} */
    const item = target instanceof Element && target.closest("[data-token]");
    return item ? Number(item.dataset.token) : null;
  };

  list.addEventListener(
    "click",
    (event) => {
      const token = tokenOf(event.target);
      const side = event.target.closest("[data-move]")?.dataset.move;
      if (token === null || drag?.moved) return;
      const at = now().indexOf(token);
      if (side) move(token, side === "left" ? Math.max(0, at - 1) : Math.min(now().length - 1, at + 1));
      else if (event.target.closest("[data-query]")) onQuery(token);
    },
    { signal },
  );

  list.addEventListener(
    "keydown",
    (event) => {
      const token = tokenOf(event.target);
      if (token === null || event.ctrlKey || event.metaKey) return;
      const moves = event.shiftKey || event.altKey;
      const order = moves ? now() : view.order; // two quick presses are two steps
      const last = order.length - 1;
      const at = order.indexOf(token);
      const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      if (moves) move(token, Math.min(last, Math.max(0, to)));
      else items[order[Math.min(last, Math.max(0, to))]].querySelector(".attn-chip").focus();
    },
    { signal },
  );

  list.addEventListener("focusin", ({ target }) => rove(tokenOf(target)), { signal });

  /** One token at a time is a stop of the Tab key, with its two push buttons. */
  function rove(stop) {
    items.forEach((item, token) =>
      item.querySelectorAll("button").forEach((button) => (button.tabIndex = token === stop ? 0 : -1)),
    );
  }

  list.addEventListener(
    "pointerdown",
    (event) => {
      const token = tokenOf(event.target);
      if (token !== null && event.button === 0)
        drag = {
          token,
          pointer: event.pointerId,
          x: event.clientX,
          y: event.clientY,
          grip: event.clientX - items[token].getBoundingClientRect().left,
          moved: false,
        };
    },
    { signal },
  );

  window.addEventListener(
    "pointermove",
    (event) => {
      if (!drag || event.pointerId !== drag.pointer || drag.done) return;
      if (!drag.moved && Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < DRAG_FROM_PX) return;
      drag.moved = true;
      items[drag.token].classList.add("attn-dragged");
      Object.assign(drag, { atX: event.clientX, atY: event.clientY });
      move(drag.token, slotAt(event.clientX, event.clientY));
      carry();
    },
    { signal },
  );

  /** Let the dragged token stand under the pointer. */
  function carry() {
    if (!drag?.moved || drag.done) return;
    const item = items[drag.token];
    drag.dx = drag.atX - list.getBoundingClientRect().left - drag.grip - item.offsetLeft;
    const dy = drag.atY - list.getBoundingClientRect().top - item.offsetTop - item.offsetHeight / 2;
    item.style.transform = `translate(${drag.dx.toFixed(1)}px, ${(dy / 4).toFixed(1)}px)`;
    onDrag();
  }

  /** The place in the order whose chip is nearest to a point. */
  function slotAt(x, y) {
    const origin = list.getBoundingClientRect();
    const distance = (token) => {
      const { offsetLeft, offsetTop, offsetWidth, offsetHeight } = items[token];
      const [left, top] = [origin.left + offsetLeft, origin.top + offsetTop];
      const box = { left, top, right: left + offsetWidth, bottom: top + offsetHeight };
      const beyond = (p, low, high) => Math.max(low - p, 0, p - high);
      return 100 * beyond(y, box.top, box.bottom) + Math.abs(x - (box.left + box.right) / 2);
    };
    return view.order.reduce((best, token, at) => (distance(token) < distance(view.order[best]) ? at : best), 0);
  }

  for (const type of ["pointerup", "pointercancel"])
    window.addEventListener(
      type,
      (/** @type {PointerEvent} */ event) => {
        if (!drag || event.pointerId !== drag.pointer) return;
        const item = items[drag.token];
        item?.classList.remove("attn-dragged");
        drag.done = true; // a click that follows a drag is not a choice
        if (item && drag.moved) {
          item.style.transform = "";
          onDrag();
        }
        setTimeout(() => (drag = null));
      },
      { signal },
    );

  return {
    element: list,
    /** Where the middle of each place's token is, from the left of the row; where a dragged one is held. */
    centers: () =>
      view.order.map((token) => {
        const { offsetLeft, offsetWidth } = items[token];
        const held = drag?.moved && !drag.done && drag.token === token ? drag.dx : 0;
        return list.offsetLeft + offsetLeft + offsetWidth / 2 + held;
      }),
    /** Let some tokens step back: the query may not read them. */
    dim(tokens) {
      items.forEach((item, token) => item.classList.toggle("attn-unread", tokens.includes(token)));
    },
    update({ tokens, order, query }) {
      const renamed = String(tokens) !== String(view.tokens);
      const reordered = renamed || String(order) !== String(view.order);
      view = { tokens, order, query };
      if (renamed) build(tokens);
      if (reordered) {
        const play = renamed
          ? () => {}
          : glide(
              items.filter((item) => !item.classList.contains("attn-dragged")),
              GLIDE_MS,
            );
        arrange(
          order,
          items.find((item) => item.classList.contains("attn-dragged") || item.contains(document.activeElement)),
        );
        play();
        carry();
      }
      const last = order.length - 1;
      items.forEach((item, token) => {
        const chip = item.querySelector(".attn-chip");
        chip.setAttribute("aria-pressed", token === query);
        setText(chip, tokens[token]);
        item.querySelector(".attn-push-left").disabled = order[0] === token;
        item.querySelector(".attn-push-right").disabled = order[last] === token;
      });
      if (renamed || !list.contains(document.activeElement)) rove(order.includes(query) ? query : order[0]);
    },
  };
}

function shuffled(order) {
  const next = [...order];
  for (let i = next.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [next[i], next[j]] = [next[j], next[i]];
  }
  return next;
}

/** What stands under the tokens: how to move them, and buttons that move them all. */
export function orderMoves({ order, onOrder, signal }) {
  const action = (name, words, rearranged) => {
    const button = textButton(name, words);
    button.addEventListener("click", () => onOrder(rearranged(order())), { signal });
    return button;
  };
  return {
    element: h(
      "div",
      { class: "attn-moves" },
      h("span", {}, "Drag a word to move it, or press Shift with ← or →."),
      h(
        "div",
        { class: "attn-actions" },
        action("reverse", "Reverse", (tokens) => [...tokens].reverse()),
        action("shuffle", "Shuffle", shuffled),
      ),
    ),
  };
}
