// A lab's state in a URL fragment, "#name?d_k=64&order=2,0,1". What comes in is anybody's text.

/** Split a fragment into the lab's name and its raw fields; null when it addresses no lab. */
export function parseFragment(hash) {
  const [name, query = ""] = hash.replace(/^#/, "").split(/\?(.*)/s);
  try {
    return name ? { name: decodeURIComponent(name), fields: [...new URLSearchParams(query)] } : null;
  } catch {
    return null; // a stray % in somebody else's fragment
  }
}

/** The fragment that says `state` where it differs from `initial`. */
export function formatFragment(name, state, initial) {
  const fields = Object.keys(state)
    .filter((key) => String(state[key]) !== String(initial[key]))
    .map((key) => `${key}=${encodeURIComponent(state[key]).replaceAll("%2C", ",")}`);
  return `#${encodeURIComponent(name)}${fields.length ? `?${fields.join("&")}` : ""}`;
}

/** Readers of one field each: text in, value out; they throw an Error that says what was expected. */
export const read = {
  number: (low, high, step) => (text) => {
    const value = text.trim() === "" ? NaN : Number(text);
    if (Number.isNaN(value)) throw new Error(`expected a number from ${low} to ${high}`);
    if (step && !Number.isInteger(value) && Number.isFinite(value)) throw new Error(`expected a whole number from ${low} to ${high}`);
    if (value < low || value > high) throw new Error(`expected a number from ${low} to ${high}`);
    return value;
  },
  flag: (text) => {
    if (text !== "true" && text !== "false") throw new Error("expected true or false");
    return text === "true";
  },
  choice: (names) => (text) => {
    if (!names.includes(text)) throw new Error(`expected one of ${names.join(", ")}`);
    return text;
  },
  permutation: (n) => (text) => {
    const order = text.split(",").map((part) => (/^\d+$/.test(part.trim()) ? Number(part) : -1));
    if (!isPermutation(order, n)) throw new Error(`expected each of 0 to ${n - 1} once, with commas`);
    return order;
  },
};

/** Is `order` a rearrangement of 0 … n−1? */
export const isPermutation = (order, n) =>
  Array.isArray(order) && order.length === n && new Set(order).size === n && order.every((i) => Number.isInteger(i) && i >= 0 && i < n);
