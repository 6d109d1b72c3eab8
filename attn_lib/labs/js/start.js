// How both hosts begin a lab: one that cannot start says so, and stops no other.
import { h } from "./dom.js";
import { labs } from "labs";

/**
 * Bring a figure alive. When that fails its picture stays, with words beneath it, and the console has the error.
 *
 * @param {HTMLElement} figure
 * @param {string} kind  the name of the Python class
 * @param {() => {model: object, host: object}} parts
 * @returns {{apply: Function, stop: Function} | null}
 */
export function start(figure, kind, parts) {
  try {
    if (!Object.hasOwn(labs, kind))
      throw new Error(`no lab is called ${kind} here; there are ${Object.keys(labs).join(", ")}`);
    const lab = labs[kind]({ ...parts(), el: figure });
    figure.dataset.ready = "true";
    return lab;
  } catch (error) {
    console.error(`${kind} could not start:`, error);
    figure.querySelector(".attn-live")?.remove();
    figure.dataset.failed = "true";
    figure.append(h("p", { class: "attn-failed", role: "status" }, `This lab could not start: ${error.message}`));
    return null;
  }
}
