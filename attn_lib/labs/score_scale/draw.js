// One draw of queries and keys at every key width. Scores, weights and gradients follow from inner products of the
// drawn vectors, and those are sums over coordinates: each key width goes on from the one before.
import { normals, uniforms } from "../js/draws.js";

export const LAYERS = 128;
export const TOKENS = 8;
const ROWS = LAYERS * TOKENS;
const D_V = 4;
const COORDINATES = 4; // drawn before the clock is looked at again

// What is kept of a layer's 8 query and 8 key vectors: q_i·k_j, then k_i·k_j for j ≤ i, q_1·q_1, and each vector's sum.
const KEYS = TOKENS * TOKENS;
const FIRST = KEYS + (TOKENS * (TOKENS + 1)) / 2;
const SUMS = FIRST + 1;
const KEPT = SUMS + 2 * TOKENS;

const triangle = (i, j) => (i * (i + 1)) / 2 + j;

/** Add `count` coordinates, drawn as (coordinate, layer, vector), to every layer's inner products. */
function accumulate(kept, drawn, count) {
  for (let r = 0; r < count; r++)
    for (let layer = 0; layer < LAYERS; layer++) {
      const q = (r * LAYERS + layer) * 2 * TOKENS;
      const k = q + TOKENS;
      let at = layer * KEPT;
      for (let i = 0; i < TOKENS; i++) for (let j = 0; j < TOKENS; j++) kept[at++] += drawn[q + i] * drawn[k + j];
      for (let i = 0; i < TOKENS; i++) for (let j = 0; j <= i; j++) kept[at++] += drawn[k + i] * drawn[k + j];
      kept[at++] += drawn[q] * drawn[q];
      for (let v = 0; v < 2 * TOKENS; v++) kept[at++] += drawn[q + v];
    }
}

/** V g for every query: how much each key's value adds in the direction that is read. */
function readings(seed) {
  const V = normals(seed, 1, ROWS * D_V);
  const g = normals(seed, 2, ROWS * D_V);
  const U = new Float64Array(ROWS * TOKENS);
  for (let row = 0; row < ROWS; row++) {
    const upstream = g.subarray(row * D_V, row * D_V + D_V);
    const length = Math.hypot(...upstream);
    const first = row - (row % TOKENS);
    for (let j = 0; j < TOKENS; j++) {
      let dot = 0;
      for (let r = 0; r < D_V; r++) dot += V[(first + j) * D_V + r] * upstream[r];
      U[row * TOKENS + j] = dot / length;
    }
  }
  return U;
}

/**
 * Draw step by step: a generator that yields often and, in the end, has filled `draw.kept` with the inner products at
 * each of the widths.
 */
export function startDraw({ seed, uniform, widths }) {
  const draw = { U: readings(seed), kept: new Map() };
  const coordinates = (from, count) => {
    const [start, size] = [from, count].map((number) => number * 2 * ROWS);
    return uniform ? uniforms(seed, 0, size, start).map((u) => 2 * u - 1) : normals(seed, 0, size, start);
  };
  function* run() {
    const kept = new Float64Array(LAYERS * KEPT);
    let done = 0;
    for (const width of widths) {
      while (done < width) {
        const count = Math.min(COORDINATES, width - done);
        accumulate(kept, coordinates(done, count), count);
        done += count;
        yield;
      }
      draw.kept.set(width, kept.slice());
      yield;
    }
  }
  return { draw, run };
}

/** How the drawn vectors become queries and keys: q·k of each pair, and by how much k_i − k_j is shortened. */
function pairs(kept, width, { vectors, mu, cosine }) {
  const S = new Float64Array(ROWS * TOKENS);
  const own = 1 - cosine;
  const mixed = Math.sqrt(cosine * own);
  for (let layer = 0; layer < LAYERS; layer++) {
    const at = layer * KEPT;
    for (let i = 0; i < TOKENS; i++)
      for (let j = 0; j < TOKENS; j++) {
        const raw = kept[at + i * TOKENS + j];
        S[(layer * TOKENS + i) * TOKENS + j] =
          vectors === "shifted"
            ? raw + mu * (kept[at + SUMS + i] + kept[at + SUMS + TOKENS + j]) + width * mu * mu
            : vectors.startsWith("tied")
              ? cosine * kept[at + FIRST] +
                mixed * (kept[at + i] + kept[at + j]) +
                own * kept[at + KEYS + triangle(Math.max(i, j), Math.min(i, j))]
              : raw;
      }
  }
  return { S, shortened: vectors.startsWith("tied") ? own : 1 };
}

/** The scores of which the prediction speaks: all, or a token's with itself, or not. */
function shown(S, vectors) {
  if (!vectors.startsWith("tied")) return S;
  return S.filter((_, at) => (((at / TOKENS) | 0) % TOKENS === at % TOKENS) === (vectors === "tied-self"));
}

/** The raw scores that the histogram shows at one width. */
export const scoresAt = (draw, width, settings) =>
  shown(pairs(draw.kept.get(width), width, settings).S, settings.vectors);

/** Mean and variance of q·k as the formula says. */
export function predicted(d_k, { vectors, mu, cosine }) {
  return {
    independent: [0, d_k],
    uniform: [0, d_k / 9],
    shifted: [d_k * mu ** 2, d_k * (1 + 2 * mu ** 2)],
    "tied-self": [d_k, 2 * d_k],
    "tied-other": [d_k * cosine, d_k * (1 + cosine ** 2)],
  }[vectors];
}

function meanAndVariance(x) {
  const mean = x.reduce((sum, value) => sum + value, 0) / x.length;
  return [mean, x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.length];
}

function median(x) {
  const sorted = x.slice().sort();
  return (sorted[(x.length - 1) >> 1] + sorted[x.length >> 1]) / 2;
}

/** Largest weight, entropy and length of the query's gradient, of every row of the scores `factor`·S. */
function rows(S, kept, U, factor, shortened) {
  const lengths = new Float64Array(ROWS);
  const a = new Float64Array(TOKENS);
  let largest = 0;
  let bits = 0;
  for (let row = 0; row < ROWS; row++) {
    const at = row * TOKENS;
    const products = ((row / TOKENS) | 0) * KEPT + KEYS;
    let max = -Infinity;
    for (let j = 0; j < TOKENS; j++) max = Math.max(max, factor * S[at + j]);
    let sum = 0;
    for (let j = 0; j < TOKENS; j++) sum += a[j] = Math.exp(factor * S[at + j] - max);
    let drop = 0; // Σ a_j (max − s_j)
    let average = 0;
    for (let j = 0; j < TOKENS; j++) {
      a[j] /= sum;
      drop += a[j] * (max - factor * S[at + j]);
      average += a[j] * U[at + j];
    }
    // Kᵀc with c = (diag(a) − aaᵀ)Vg, whose entries sum to 0: what all keys share cancels
    for (let j = 0; j < TOKENS; j++) a[j] *= U[at + j] - average;
    let square = 0;
    for (let i = 0; i < TOKENS; i++) {
      square += a[i] * a[i] * kept[products + triangle(i, i)];
      for (let j = 0; j < i; j++) square += 2 * a[i] * a[j] * kept[products + triangle(i, j)];
    }
    lengths[row] = factor * Math.sqrt(Math.max(0, shortened * square));
    largest += 1 / sum; // exp(0) over the sum
    bits += Math.log2(sum) + drop / Math.LN2;
  }
  return {
    largest_weight: largest / ROWS,
    entropy: bits / ROWS,
    median_gradient: median(lengths),
    mean_gradient: lengths.reduce((total, length) => total + length, 0) / ROWS,
  };
}

/** Everything that is measured at one width, of raw and of scaled scores. */
export function measure(draw, width, settings) {
  const kept = draw.kept.get(width);
  const { S, shortened } = pairs(kept, width, settings);
  const [mean, variance] = meanAndVariance(shown(S, settings.vectors));
  const [predicted_mean, predicted_variance] = predicted(width, settings);
  const divided = (by) => ({
    mean: mean / Math.sqrt(by),
    variance: variance / by,
    predicted_mean: predicted_mean / Math.sqrt(by),
    predicted_variance: predicted_variance / by,
    ...rows(S, kept, draw.U, 1 / Math.sqrt(by), shortened),
  });
  return { raw: divided(1), scaled: divided(width) };
}
