// Edges of a trained model: what each weighs, what it carries, what its cut changes. The same as
// attn_lib.interventions, for two layers of attention alone: there nothing but the second layer's softmax is not
// linear, so that a cut needs no whole forward pass.
import { attentionScores, attentionWeights, causalMask, matmul, softmaxRow } from "../js/math.js";
import { inOrder } from "../js/settings.js";

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
  return Object.fromEntries(
    shapes.map(([name, [rows, width]]) => [name, Float64Array.from({ length: rows * width }, number)]),
  );
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
const dot = (a, b) => a.reduce((sum, value, r) => sum + value * b[r], 0);
const rowOf = (M, i, width) => M.subarray(i * width, (i + 1) * width);

/** For each head of a layer: its queries and keys, and what each token's value writes into the stream. */
const project = ({ params, heads, d, width }, layer, X, n) =>
  inOrder(heads).map((head) => {
    const [Q, K, V] = ["Q", "K", "V"].map((name) => matmul(X, params[`${layer}.${head}.W_${name}`], n, d, width));
    return { Q, K, written: matmul(V, params[`${layer}.${head}.W_O`], n, width, d) };
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
  const X = Float64Array.from(
    { length: n * d },
    (_, at) => params.E[tokens[Math.floor(at / d)] * d + (at % d)] + params.P[at],
  );
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
 * `width` is that of a head.
 * @typedef {object} Model
 * @property {Record<string, any>} params
 * @property {number} heads
 * @property {number} d
 * @property {number} width
 * @property {number} vocabulary
 */

/**
 * The last token's answer when edges are cut and heads are silent, and what each further cut would cost.
 * @param {Model} model
 * @param {ReturnType<typeof begin>} begun
 * @param {{cut: number[][], zero: number[][], renormalise: boolean, target: number}} state
 * @returns {{
 *   probabilities: Float64Array,
 *   logp: number,
 *   edges: () => {at: number[], weight: number, norm: number, effect: number, cut: boolean, silent: boolean}[],
 * }} of each edge its layer, head, query and key, and its three numbers
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
    let total = 0;
    for (let j = 0; j < n; j++) if (j !== more && !isCut.has(from + j)) total += rest[j] = row[j];
    if (renormalise && total > 0) for (let j = 0; j < n; j++) rest[j] /= total;
    return rest;
  }
  function edit(A, layer, head) {
    const out = A.slice();
    for (let i = 0; i < n; i++) out.set(used(rowOf(A, i, n), layer, head, i), i * n);
    return out;
  }

  const A0 = first.map(({ A }, head) => edit(A, 0, head));
  const X1 = X.slice();
  for (let i = 0; i < n; i++)
    first.forEach(({ written }, head) => add(rowOf(X1, i, d), rowOf(A0[head], i, n), written));
  const second = attend(project(model, 1, X1, n), model, n).map((head) => ({
    ...head,
    logits: toLogits(head.written),
    query: rowOf(head.Q, last, width),
  }));
  const A1 = second.map(({ A }, head) => edit(A, 1, head));
  const stream = matmul(rowOf(X1, last, d), params.U, 1, d, vocabulary);
  const rows = A1.map((A) => rowOf(A, last, n));
  const logits = second.reduce((sum, head, r) => add(sum, rows[r], head.logits), stream.slice());
  const logp = logProbability(logits, target);

  /** What it costs to cut an edge of the second layer: only the last row is read. */
  function late(head, i, j) {
    if (i !== last || rows[head][j] === 0) return 0;
    const row = used(rowOf(second[head].A, last, n), 1, head, last, j);
    return (
      logp -
      logProbability(
        add(
          logits.slice(),
          row.map((a, m) => a - rows[head][m]),
          second[head].logits,
        ),
        target,
      )
    );
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
      const changed = next.K.slice();
      add(rowOf(changed, i, width), change, K);
      const scores = attentionScores(query, changed, { n: 1, m: n, width });
      softmaxRow(scores, 0, n, 1, scores);
      const row = used(scores, 1, r, last);
      add(out, row, next.logits);
      add(out, change, writing, row[i]);
    });
    return logp - logProbability(out, target);
  }

  const layers = [
    [A0, first, early],
    [A1, second, late],
  ];
  return {
    probabilities: logits.map((value) => Math.exp(value - logits[target] + logp)),
    logp,
    edges: () =>
      layers.flatMap(([A, parts, effect], layer) =>
        A.flatMap((weights, head) => {
          const silent = isSilent.has(number(layer, head));
          const edges = [];
          for (let i = 0; i < n; i++)
            for (let j = 0; j <= i; j++) {
              const weight = weights[i * n + j];
              edges.push({
                at: [layer, head, i, j],
                weight,
                norm: weight * parts[head].lengths[j],
                effect: effect(head, i, j),
                cut: isCut.has(number(layer, head, i, j)),
                silent,
              });
            }
          return edges;
        }),
      ),
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

/** The largest rank correlation that any order of these numbers could have: less than 1 if there are ties. */
export const spearmanCeiling = (x, y) => spearman(...[x, y].map((values) => Float64Array.from(values).sort()));
