// How numbers are written in a lab: tabular, short, with a true minus sign.

const minus = (text) => text.replace("-", "−");

/** `digits` decimals: −1.25. A rounded nothing has no sign. */
export function fixed(value, digits = 2) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value < 0 ? "−∞" : "∞";
  const text = value.toFixed(digits);
  return minus(Number(text) === 0 ? text.replace("-", "") : text);
}

/** As short as a heatmap cell needs: .42, −.3, 0, 12. */
export function inCell(value, digits) {
  if (value === -Infinity) return "";
  const decimals = Math.abs(value) >= 9.95 ? 0 : Math.abs(value) >= 0.995 ? Math.min(1, digits) : digits;
  const text = fixed(value, decimals);
  return Number(text.replace("−", "-")) === 0 ? "0" : text.replace("0.", ".");
}

/** Three significant figures: 0.5, 12.6. */
export const significant = (value) => minus(String(Number(value.toPrecision(3))));
