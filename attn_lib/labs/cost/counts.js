// What attention costs, counted as attn_lib.cost counts it.

const TILE = [256, 1024];
const CHUNK = 128;

/**
 * Walk the rows of tiles; `window` limits the keys that a query sees, Infinity does not.
 * @param {number} n
 * @param {number} d
 * @param {number} window
 * @param {number[]} tile
 */
function tiledCost(n, d, window, [tileRows, tileKeys]) {
  let pairs = 0;
  let largest = 0;
  for (let start = 0; start < n; start += tileRows) {
    const stop = Math.min(start + tileRows, n);
    const rows = stop - start;
    const keys = window === Infinity ? n : stop - Math.max(0, start - window + 1);
    pairs += rows * keys;
    const scores = rows * Math.min(keys, tileKeys);
    const state = rows * (d + 2);
    largest = Math.max(largest, rows * d + scores + Math.max(scores + 2 * state, 5 * state));
  }
  return { operations: 2 * pairs * d, memory: largest };
}

function linearCost(n, d) {
  const rows = Math.min(CHUNK, n);
  const state = d * (d + 1);
  const features = rows * d;
  return {
    operations: n * d * d + n * d * (d + 1),
    memory: Math.max(state + 3 * features, 3 * state + features, state + features + 2 * rows * d),
  };
}

/** Multiply-adds, and numbers held beside Q, K, V and O, of one head of width `d` on n tokens. */
export function attentionCost(kind, n, d, window) {
  if (kind === "plain") return { operations: 2 * n * n * d, memory: n * n };
  if (kind === "tiled") return tiledCost(n, d, Infinity, TILE);
  if (kind === "windowed") return tiledCost(n, d, window, windowTile(window));
  return linearCost(n, d);
}

/** The tile that windowed attention takes. */
export const windowTile = (window) => [Math.min(Math.max(window, 32), TILE[0]), TILE[1]];

/** The layer's other multiply-adds. */
export const layerCost = (n, d) => ({ projections: 4 * n * d * d, feed_forward: 8 * n * d * d });
