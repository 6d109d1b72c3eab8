// The kernel host: what anywidget loads in JupyterLab, VS Code, Colab or marimo.
import { h } from "./dom.js";
import { start } from "./start.js";

const literal = (value) =>
  value === null
    ? "None"
    : typeof value === "boolean"
      ? value
        ? "True"
        : "False"
      : Array.isArray(value)
        ? `[${value.map(literal).join(", ")}]`
        : JSON.stringify(value);

/**
 * The Python call that makes a lab in this state. It names all of it: what a lab begins with depends on its scene, its
 * model, its run.
 */
const call = (kind, state) =>
  `${kind}(${Object.keys(state)
    .map((key) => `${key}=${literal(state[key])}`)
    .join(", ")})`;

function render({ model, el }) {
  const kind = model.get("kind");
  const figure = h("figure", { class: "attn-lab", "data-lab": kind, "aria-label": model.get("title") });
  el.append(figure);
  const host = { shareLabel: "Copy code", share: (state) => call(kind, state) };
  const lab = start(figure, kind, () => ({ model, host }));
  return () => {
    lab?.stop();
    figure.remove();
  };
}

export default { render };
