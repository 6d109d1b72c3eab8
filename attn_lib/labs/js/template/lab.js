// TemplateLab: what the reader moves, and what follows from it.
import { bars } from "../js/bars.js";
import { slider } from "../js/controls.js";
import { defineLab } from "../js/frame.js";
import { attentionWeights } from "../js/math.js";
import { fixed } from "../js/numbers.js";
import { real } from "../js/settings.js";

const MOST = 5;

/** What each trait may be: the same ranges as in lab.py. */
const settings = () => ({ gap: real(-MOST, MOST) });

function build({ signal, set }) {
  const controls = {
    gap: slider({
      control: "gap",
      label: "gap",
      min: -MOST,
      max: MOST,
      step: 0.1,
      text: (gap) => fixed(gap, 1),
      signal,
      onInput: (gap) => set({ gap }),
    }),
  };
  const weights = bars({ panel: "weights", title: "Weights", heads: ["key", "weight"] });
  return {
    controls,
    panels: { weights: weights.element },
    /** Show a state, and say in a sentence what is shown; the numbers are computed here, as lab.py computes them. */
    draw({ gap }) {
      const A = attentionWeights(Float64Array.of(gap, 0), 1, 2);
      controls.gap.update(gap);
      weights.update({
        rows: ["first", "second"].map((name, j) => ({ name, value: A[j], text: fixed(A[j], 3) })),
        most: 1,
      });
      return `The first key has weight ${fixed(A[0], 3)}.`;
    },
  };
}

export default defineLab({ settings, build });
