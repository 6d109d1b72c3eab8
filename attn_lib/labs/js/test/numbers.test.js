import assert from "node:assert/strict";
import { test } from "node:test";
import { byteSize, fixed, inCell, powerOfTen, scientific, significant, tiny } from "../numbers.js";

const table = (write, rows) => {
  for (const [value, text] of rows) assert.equal(write(value), text, `${value}`);
};

test("decimals have a true minus sign, and a rounded nothing has none", () => {
  table(fixed, [
    [-1.25, "−1.25"],
    [-0.001, "0.00"],
    [-0, "0.00"],
    [-Infinity, "−∞"],
    [Infinity, "∞"],
    [NaN, "NaN"],
  ]);
});

test("a cell is as short as can be", () => {
  table(
    (value) => inCell(value, 2),
    [
      [0.42, ".42"],
      [-0.3, "−.30"],
      [0.004, "0"],
      [1, "1.0"],
      [0.994, ".99"],
      [0.996, "1.0"],
      [9.96, "10"],
      [-12.3, "−12"],
      [-Infinity, ""],
    ],
  );
});

test("powers are raised", () => {
  table(tiny, [
    [0, "0"],
    [3e-16, "3·10⁻¹⁶"],
    [0.25, "0.250"],
  ]);
  table(powerOfTen, [
    [1, "1"],
    [10, "10"],
    [1e6, "10⁶"],
    [1e-12, "10⁻¹²"],
  ]);
  table(scientific, [
    [0, "0"],
    [17234567890, "1.72 × 10¹⁰"],
    [-0.000123, "−1.23 × 10⁻⁴"],
    [99999, "100000"],
    [99999.5, "1.00 × 10⁵"],
  ]);
  table(significant, [
    [12.64, "12.6"],
    [-0.5, "−0.5"],
  ]);
});

test("bytes have the unit that keeps three figures", () => {
  table(byteSize, [
    [0, "0 B"],
    [999, "999 B"],
    [999.9, "1 kB"],
    [268435456, "268 MB"],
    [2e12, "2 TB"],
  ]);
});
