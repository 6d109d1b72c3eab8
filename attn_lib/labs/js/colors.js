// The colour maps of the book, shared with matplotlib through colors.json; labs.css has its colours of roles.
import colours from "../../colors.json" with { type: "json" };

const STEPS = 256;

const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

const channel = (c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);

/** Relative luminance (WCAG) of [r, g, b]. */
export const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);

function table(hexes) {
  const colors = hexes.map(rgb);
  return Array.from({ length: STEPS }, (_, step) => {
    const at = (step / (STEPS - 1)) * (colors.length - 1);
    const low = Math.min(Math.floor(at), colors.length - 2);
    return colors[low].map((c, k) => Math.round(c + (colors[low + 1][k] - c) * (at - low)));
  });
}

const maps = {};
for (const [theme, kinds] of Object.entries(colours.maps))
  for (const [kind, hexes] of Object.entries(kinds)) {
    const colors = table(hexes);
    maps[`${theme} ${kind}`] = {
      colors: colors.map((color) => [...color, 255]),
      css: colors.map((color) => `rgb(${color})`),
      ramp: `linear-gradient(90deg, ${hexes.join(", ")})`,
      // black or white digits, whichever stands out more: at least 4.58 on any colour
      dark: colors.map((color) => luminance(color) > 0.179),
    };
  }

/**
 * The map of a theme: `colors[step]` as RGBA, `css[step]`, `dark[step]` (whether digits on it are black), and `ramp`
 * for a colour bar.
 */
export const colorMap = (theme, kind) => maps[`${theme} ${kind}`];

/** Which of the map's 256 steps shows `value`: weights on [0, limit], scores and outputs on [−limit, limit]. */
export function colorStep(kind, value, limit = 1) {
  const t = kind === "weights" ? value / limit : limit > 0 ? 0.5 + value / limit / 2 : 0.5;
  return Math.round(Math.min(1, Math.max(0, t)) * (STEPS - 1));
}

/** The end of a score map: the power of two that holds every finite value, so that colours do not flicker. */
export function colorLimit(values) {
  let max = 0;
  for (const value of values) if (Number.isFinite(value)) max = Math.max(max, Math.abs(value));
  return max === 0 ? 1 : 2 ** Math.ceil(Math.log2(max));
}
