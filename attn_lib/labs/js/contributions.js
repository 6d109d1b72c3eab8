// Edges of a trained model: what each weighs, what it carries, what its cut changes. The same as attn_lib.contributions, for two
// layers of attention alone: there nothing but the second layer's softmax is not linear, so that a cut needs no whole forward pass.
import { attentionScores, attentionWeights, causalMask, columns, matmul, softmaxRow } from "./math.js";
import { inOrder } from "./settings.js";

/** The number that 16 bits stand for. */
function half(bits) {
  const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
  return (bits & 0x8000 ? -1 : 1) * (exponent ? (1024 + fraction) * 2 ** (exponent - 25) : fraction * 2 ** -24);
}

/** Parameters from base64 of float16, one after the other: `shapes` are [name, [rows, columns]]. */
export function unpack(text, shapes) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  let at = 0;
  const number = () => half(bytes[at++] | (bytes[at++] << 8));
  return Object.fromEntries(shapes.map(([name, [rows, width]]) => [name, Float64Array.from({ length: rows * width }, number)]));
}

/** out + Σ factor · d_m · (row m of M), in place. */
function add(out, d, M, factor = 1) {
  const width = out.length;
  for (let m = 0; m < d.length; m++) {
    const by = factor * d[m];
    if (by !== 0) for (let c = 0; c < width; c++) out[c] += by * M[m * width + c];
  }
  return out;
}
const rowOf = (M, i, width) => M.subarray(i * width, (i + 1) * width);
/** a · (row m of M) */
function dot(a, M, m = 0) {
  let sum = 0;
  for (let r = 0; r < a.length; r++) sum += a[r] * M[m * a.length + r];
  return sum;
}

/** A model of two layers, its parameters cut into heads. */
export function prepare(params, { heads, d, vocabulary, width }) {
  const part = (layer, name, r) => columns(params[`${layer}.${name}`], heads * width, r * width, width);
  const layers = [0, 1].map((layer) => inOrder(heads).map((r) => ({ maps: ["W_Q", "W_K", "W_V"].map((name) => part(layer, name, r)), W_O: rowOf(params[`${layer}.W_O`], r, width * d) })));
  return { params, heads, d, vocabulary, width, layers };
}

/** For each head of a layer: its queries and keys, and what each token's value writes into the stream. */
const project = ({ layers, d, width }, layer, X, n) =>
  layers[layer].map(({ maps, W_O }) => {
    const [Q, K, V] = maps.map((W) => matmul(X, W, n, d, width));
    return { Q, K, written: matmul(V, W_O, n, width, d) };
  });

/** The causal weights of each head, and the length of what each token writes there. */
const attend = (projected, { width, d }, n) =>
  projected.map((head) => ({
    ...head,
    A: attentionWeights(attentionScores(head.Q, head.K, { n, m: n, width, mask: causalMask() }), n, n),
    lengths: inOrder(n).map((j) => Math.hypot(...rowOf(head.written, j, d))),
  }));

/** What no cut changes: the first layer, and what its writings become in the second and in the logits. */
export function begin(model, tokens) {
  const { params, d, vocabulary } = model;
  const n = tokens.length;
  const X = Float64Array.from({ length: n * d }, (_, at) => params.E[tokens[Math.floor(at / d)] * d + (at % d)] + params.P[at]);
  const toLogits = (M) => matmul(M, params.U, n, d, vocabulary);
  const first = attend(project(model, 0, X, n), model, n).map((head) => ({
    ...head,
    logits: toLogits(head.written),
    later: project(model, 1, head.written, n).map(({ Q, K, written }) => ({ Q, K, logits: toLogits(written) })),
  }));
  return { n, X, first, toLogits };
}

/** log softmax(logits)[target] */
function logProbability(logits, target) {
  let [most, sum] = [-Infinity, 0];
  for (const value of logits) most = Math.max(most, value);
  for (const value of logits) sum += Math.exp(value - most);
  return logits[target] - most - Math.log(sum);
}

/**
 * The last token's answer when edges are cut and heads are silent, and what each further cut would cost.
 * @param {object} model  of `prepare`
 * @param {object} begun  of `begin`
 * @param {{cut: number[][], zero: number[][], renormalise: boolean, target: number}} state
 * @returns {{weights: Float64Array[][], norms: Float64Array[][], effects: Float64Array[][], probabilities: Float64Array, logp: number}}
 *   [layer][head] of (n×n); NaN where a query may not look
 */
export function contributions(model, { n, X, first, toLogits }, { cut, zero, renormalise, target }) {
  const { heads, d, width, vocabulary, params } = model;
  const last = n - 1;
  const number = (layer, head, i = 0, j = 0) => ((layer * heads + head) * n + i) * n + j;
  const isCut = new Set(cut.map((edge) => number(...edge)));
  const isSilent = new Set(zero.map((head) => number(...head)));

  /** A row of weights as it is used, `more` being one more key that is cut. */
  function used(row, layer, head, i, more = -1) {
    const rest = new Float64Array(n);
    if (isSilent.has(number(layer, head))) return rest;
    if (more < 0 && !isCut.size) return row;
    const from = number(layer, head, i);
    let [total, whole] = [0, true];
    for (let j = 0; j < n; j++) {
      if (j === more || isCut.has(from + j)) whole = false;
      else total += rest[j] = row[j];
    }
    if (whole) return row;
    if (renormalise && total > 0) for (let j = 0; j < n; j++) rest[j] /= total;
    return rest;
  }
  function edit(A, layer, head) {
    const out = A.slice();
    for (let i = 0; i < n; i++) out.set(used(rowOf(A, i, n), layer, head, i), i * n);
    return out;
  }
  const every = (value) => inOrder(heads).map((head) => Float64Array.from({ length: n * n }, (_, at) => (at % n > at / n ? NaN : value(head, Math.floor(at / n), at % n))));

  const scoresOf = (query, K) => Float64Array.from({ length: n }, (_, m) => dot(query, K, m) / Math.sqrt(width));

  const A0 = first.map(({ A }, head) => edit(A, 0, head));
  const X1 = X.slice();
  for (let i = 0; i < n; i++) first.forEach(({ written }, head) => add(rowOf(X1, i, d), rowOf(A0[head], i, n), written));
  const second = attend(project(model, 1, X1, n), model, n).map((head) => ({ ...head, logits: toLogits(head.written), query: rowOf(head.Q, last, width), scores: scoresOf(rowOf(head.Q, last, width), head.K) }));
  const A1 = second.map(({ A }, head) => edit(A, 1, head));
  const stream = matmul(rowOf(X1, last, d), params.U, 1, d, vocabulary);
  const rows = A1.map((A) => rowOf(A, last, n));
  const logits = second.reduce((sum, head, r) => add(sum, rows[r], head.logits), stream.slice());
  const logp = logProbability(logits, target);

  /** What it costs to cut an edge of the second layer: only the last row is read. */
  function late(head, i, j) {
    if (i !== last || rows[head][j] === 0) return 0;
    const row = used(rowOf(second[head].A, last, n), 1, head, last, j);
    return logp - logProbability(add(logits.slice(), row.map((a, m) => a - rows[head][m]), second[head].logits), target);
  }

  /** Of the first layer: token i enters the second with another vector. */
  function early(head, i, j) {
    const before = rowOf(A0[head], i, n);
    if (before[j] === 0) return 0;
    const change = used(rowOf(first[head].A, i, n), 0, head, i, j);
    for (let m = 0; m < n; m++) change[m] -= before[m]; // a row of its own: this edge has been cut from it
    const out = stream.slice();
    if (i === last) add(out, change, first[head].logits);
    second.forEach((next, r) => {
      const { Q, K, logits: writing } = first[head].later[r];
      const query = i === last ? add(next.query.slice(), change, Q) : next.query;
      const scores = i === last ? scoresOf(query, next.K) : next.scores.slice();
      scores[i] = dot(query, add(next.K.slice(i * width, (i + 1) * width), change, K)) / Math.sqrt(width);
      softmaxRow(scores, 0, n, 1, scores);
      const row = used(scores, 1, r, last);
      add(out, row, next.logits);
      add(out, change, writing, row[i]);
    });
    return logp - logProbability(out, target);
  }

  const layers = [[A0, first, early], [A1, second, late]];
  return {
    weights: layers.map(([A]) => every((head, i, j) => A[head][i * n + j])),
    norms: layers.map(([A, parts]) => every((head, i, j) => A[head][i * n + j] * parts[head].lengths[j])),
    get effects() {
      return layers.map(([, , effect]) => every(effect));
    },
    probabilities: logits.map((value) => Math.exp(value - logits[target] + logp)),
    logp,
  };
}

/** Ranks from 1; equal numbers share the mean of theirs. */
function meanRanks(x) {
  const order = inOrder(x.length).sort((a, b) => x[a] - x[b]);
  const ranks = new Float64Array(x.length);
  for (let from = 0, to; from < x.length; from = to) {
    for (to = from; to < x.length && x[order[to]] === x[order[from]]; to++);
    for (let at = from; at < to; at++) ranks[order[at]] = (from + 1 + to) / 2;
  }
  return ranks;
}

/** Spearman's rank correlation, of numbers rounded to nine decimals; NaN where all are equal. */
export function spearman(x, y) {
  const [r, s] = [x, y].map((values) => {
    const ranks = meanRanks(values.map((value) => Math.round(value * 1e9)));
    const middle = (ranks.length + 1) / 2;
    return ranks.map((rank) => rank - middle);
  });
  return dot(r, s) / Math.sqrt(dot(r, r) * dot(s, s));
}
