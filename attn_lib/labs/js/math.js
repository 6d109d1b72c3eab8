// The equations of attn_lib, in double precision, on row-major Float64Arrays.

/** Softmax of the `m` numbers of `x` from `at`, divided by `temperature`; a row of −∞ gives zeros. */
export function softmaxRow(x, at, m, temperature, out) {
  let max = -Infinity;
  for (let j = 0; j < m; j++) max = Math.max(max, x[at + j] / temperature);
  let sum = 0;
  for (let j = 0; j < m; j++) {
    const e = max === -Infinity ? 0 : Math.exp(x[at + j] / temperature - max);
    out[at + j] = e;
    sum += e;
  }
  if (sum > 0) for (let j = 0; j < m; j++) out[at + j] /= sum;
}

/** `A` (n×k) times `B` (k×m). */
export function matmul(A, B, n, k, m) {
  const C = new Float64Array(n * m);
  for (let i = 0; i < n; i++) {
    let [r, at] = [0, i * k];
    // four rows of B at a time: each entry of C is fetched and stored a quarter as often
    for (; r + 3 < k; r += 4, at += 4) {
      const [a, b, c, d] = [A[at], A[at + 1], A[at + 2], A[at + 3]];
      for (let j = 0, to = i * m, from = r * m; j < m; j++, to++, from++)
        C[to] += a * B[from] + b * B[from + m] + c * B[from + 2 * m] + d * B[from + 3 * m];
    }
    for (; r < k; r++, at++) for (let j = 0; j < m; j++) C[i * m + j] += A[at] * B[r * m + j];
  }
  return C;
}

/**
 * Scores (n×m): scale · q_i·k_j over the first `d_k` of `width` coordinates, −∞ where `mask(i, j)` is false,
 * `bias` (n×m) added elsewhere.
 * @param {Float64Array} Q
 * @param {Float64Array} K
 * @param {{
 *   n: number,
 *   m: number,
 *   width: number,
 *   d_k?: number,
 *   scale?: number,
 *   mask?: (i: number, j: number) => boolean,
 *   bias?: Float64Array,
 * }} shape
 */
export function attentionScores(Q, K, { n, m, width, d_k = width, scale = 1 / Math.sqrt(d_k), mask, bias }) {
  const S = new Float64Array(n * m);
  for (let i = 0; i < n; i++)
    for (let j = 0; j < m; j++) {
      if (mask && !mask(i, j)) {
        S[i * m + j] = -Infinity;
        continue;
      }
      let dot = 0;
      for (let r = 0; r < d_k; r++) dot += Q[i * width + r] * K[j * width + r];
      S[i * m + j] = dot * scale + (bias ? bias[i * m + j] : 0);
    }
  return S;
}

/** Softmax of every row of `S` (n×m). */
export function attentionWeights(S, n, m, temperature = 1) {
  const A = new Float64Array(n * m);
  for (let i = 0; i < n; i++) softmaxRow(S, i * m, m, temperature, A);
  return A;
}

/** Query i may look at keys j ≤ i + offset. */
export const causalMask =
  (offset = 0) =>
  (i, j) =>
    j <= i + offset;

/**
 * One row of scores and the values of its keys (m×d), read at once: their largest score, Σ e^{s−max} and
 * Σ e^{s−max} v.
 */
export function softmaxState(scores, V, d) {
  const maximum = Math.max(-Infinity, ...scores);
  const accumulator = new Float64Array(d);
  let normaliser = 0;
  scores.forEach((score, j) => {
    const e = Math.exp(score - finite(maximum));
    normaliser += e;
    for (let r = 0; r < d; r++) accumulator[r] += e * V[j * d + r];
  });
  return { maximum, normaliser, accumulator };
}

const finite = (maximum) => (maximum === -Infinity ? 0 : maximum);

/** By what the sums of a state are multiplied when the maximum becomes `maximum`. */
export const rescaling = (state, maximum) => Math.exp(state.maximum - finite(maximum));

/** Two states of one row over different keys, as if they had been read together. */
export function mergeStates(a, b) {
  const maximum = Math.max(a.maximum, b.maximum);
  const [fa, fb] = [rescaling(a, maximum), rescaling(b, maximum)];
  return {
    maximum,
    normaliser: fa * a.normaliser + fb * b.normaliser,
    accumulator: a.accumulator.map((value, r) => fa * value + fb * b.accumulator[r]),
  };
}

/** What a state says of the keys read so far; zero where none was allowed. */
export const outputOf = ({ normaliser, accumulator }) => accumulator.map((value) => value / (normaliser || 1));

/** Entropy in bits of the `m` weights of `A` from `at`. */
export function entropyBits(A, at, m) {
  let bits = 0;
  for (let j = at; j < at + m; j++) if (A[j] > 0) bits -= A[j] * Math.log2(A[j]);
  return bits;
}

/** Rows of `X` (…×d) in the given order. */
export function takeRows(X, d, order) {
  const out = new Float64Array(order.length * d);
  order.forEach((from, to) => out.set(X.subarray(from * d, from * d + d), to * d));
  return out;
}

/** Query i may look at the last `window` keys up to its own. */
export const windowMask =
  (window, offset = 0) =>
  (i, j) =>
    i + offset - window < j && j <= i + offset;

/** Query i may look at the first `prefix` keys, and causally at the rest. */
export const prefixMask =
  (prefix, offset = 0) =>
  (i, j) =>
    j < prefix || j <= i + offset;
