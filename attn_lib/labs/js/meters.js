// Meters: a line of named values.
import { h, setText } from "./dom.js";

/** `update({ "largest weight": "0.57", entropy: ["1.65 bits", " of at most 3.17"] })` */
export function meters() {
  const element = h("p", { class: "attn-meters" });
  const shown = new Map();
  return {
    element,
    update(values) {
      if (String([...shown.keys()]) !== String(Object.keys(values))) {
        shown.clear();
        element.replaceChildren(
          ...Object.keys(values).map((name) => {
            const value = h("b");
            const more = h("span");
            shown.set(name, [value, more]);
            return h("span", {}, `${name} `, value, more);
          }),
        );
      }
      for (const [name, given] of Object.entries(values)) {
        const [value, more = ""] = [given].flat();
        setText(shown.get(name)[0], value);
        setText(shown.get(name)[1], more);
      }
    },
  };
}
