// The settings that make up a lab's state: what each may be, what it becomes when it is not, how a link says it.

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

/** A number from `low` to `high`, rounded when whole. */
const number = (low, high, round) => ({
  clean: (value) => (Number.isFinite(Number(value)) ? clamp(round(Number(value)), low, high) : low),
  read(text) {
    const value = text.trim() === "" ? NaN : Number(text);
    if (Number.isNaN(value)) throw new Error(`expected a number from ${low} to ${high}`);
    return clamp(round(value), low, high);
  },
});
export const whole = (low, high) => number(low, high, Math.round);
export const even = (low, high) => number(low, high, (value) => 2 * Math.round(value / 2));
export const real = (low, high) => number(low, high, (value) => value);

/** True or false. */
export const flag = {
  clean: Boolean,
  read(text) {
    if (text !== "true" && text !== "false") throw new Error("expected true or false");
    return text === "true";
  },
};

/** One of some names; where it is none of them, `otherwise`. */
export const choice = (names, otherwise = names[0]) => ({
  clean: (value) => (names.includes(value) ? value : otherwise),
  read(text) {
    if (!names.includes(text)) throw new Error(`expected one of ${names.join(", ")}`);
    return text;
  },
});

/**
 * One of some whole numbers; where it is none of them, `otherwise`. Nothing (null) may be one of them: an empty
 * field in a link.
 */
export const oneOf = (numbers, otherwise) => ({
  clean: (value) => (numbers.includes(value) ? value : otherwise),
  read(text) {
    const value = text.trim() === "" ? null : Number(text);
    if (!numbers.includes(value))
      throw new Error(`expected one of ${numbers.filter((number) => number !== null).join(", ")}`);
    return value;
  },
});

/** Different tuples of `width` whole numbers that fit; a link says them one number after the other. */
export const tuples = (width, fits, words) => {
  const clean = (list) =>
    list.filter((tuple, at) => fits(tuple) && list.findIndex((other) => String(other) === String(tuple)) === at);
  return {
    clean,
    read(text) {
      const numbers = text ? text.split(",") : [];
      const list = inOrder(Math.ceil(numbers.length / width)).map((at) =>
        numbers.slice(at * width, (at + 1) * width).map(Number),
      );
      if (!numbers.every((part) => /^\d+$/.test(part)) || numbers.length % width || !list.every(fits))
        throw new Error(`expected ${words}`);
      return clean(list);
    },
  };
};

/** One of some numbers; where it is none of them, `otherwise`. A link may say any number and gets the nearest. */
export const nearest = (numbers, otherwise) => ({
  clean: (value) => (numbers.includes(value) ? value : otherwise),
  read(text) {
    const value = text.trim() === "" ? NaN : Number(text);
    if (Number.isNaN(value)) throw new Error(`expected a number from ${numbers[0]} to ${numbers.at(-1)}`);
    return numbers.reduce((best, each) => (Math.abs(each - value) < Math.abs(best - value) ? each : best));
  },
});

/** 0 … n−1 in order. */
export const inOrder = (n) => Array.from({ length: n }, (_, i) => i);

/** A rearrangement of 0 … n−1. */
export const permutation = (n) => {
  const fits = (order) =>
    Array.isArray(order) &&
    order.length === n &&
    new Set(order).size === n &&
    order.every((i) => Number.isInteger(i) && i >= 0 && i < n);
  return {
    clean: (value) => (fits(value) ? value : inOrder(n)),
    read(text) {
      const order = text.split(",").map((part) => (/^\d+$/.test(part.trim()) ? Number(part) : -1));
      if (!fits(order)) throw new Error(`expected each of 0 to ${n - 1} once, with commas`);
      return order;
    },
  };
};

/** No numbers, or `count` of them from −reach to reach; a link parts them with commas. */
export const coordinates = (count, reach) => {
  const fits = (list) => list.length === 0 || (list.length === count && list.every((x) => Math.abs(x) <= reach));
  return {
    clean: (value) => (Array.isArray(value) && fits(value) ? value : []),
    read(text) {
      const list = text.trim() === "" ? [] : text.split(",").map((part) => (part.trim() === "" ? NaN : Number(part)));
      if (!fits(list)) throw new Error(`expected ${count} numbers from −${reach} to ${reach}, with commas`);
      return list;
    },
  };
};
