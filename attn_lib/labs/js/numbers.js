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

/** A rounding error, or nothing: 3·10⁻¹⁶. */
export function tiny(value) {
  if (value === 0 || value >= 0.001) return fixed(value, value === 0 ? 0 : 3);
  const [digit, power] = value.toExponential(0).split("e");
  return `${digit}·10${power.replace("-", "⁻").replace(/\d/g, (at) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[at])}`;
}

/** Three significant figures: 0.5, 12.6. */
export const significant = (value) => minus(String(Number(value.toPrecision(3))));

const raised = (number) => String(number).replace(/[\d-]/g, (sign) => (sign === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[sign]));

/** A power of ten for an axis: 1, 10, 10⁶. */
export function powerOfTen(value) {
  const exponent = Math.round(Math.log10(value));
  return exponent === 0 ? "1" : exponent === 1 ? "10" : `10${raised(exponent)}`;
}

/**
 * Large or small numbers with two decimals and a power: 1.72 × 10¹⁰; from a thousandth to a hundred thousand
 * as they are.
 */
export function scientific(value) {
  if (value === 0 || (Math.abs(value) >= 1e-3 && Math.abs(value) < 99999.5)) return significant(value);
  const [digits, exponent] = value.toExponential(2).split("e");
  return `${minus(digits)} × 10${raised(Number(exponent))}`;
}

/** @type {[string, number][]} */
const UNITS = [
  ["TB", 1e12],
  ["GB", 1e9],
  ["MB", 1e6],
  ["kB", 1e3],
];

/** A number of bytes with a decimal unit: 268 MB. */
export function byteSize(count) {
  const [unit, size] = UNITS.find(([, least]) => count >= 0.9995 * least) ?? ["B", 1];
  return `${significant(count / size)} ${unit}`;
}
