// The equations of attn_lib.positions, on row-major Float64Arrays; positions are 0 … n − 1 unless `places` says
// otherwise.

const inOrder = (n) => Array.from({ length: n }, (_, i) => i);

/** How much pair r turns for each step of the position: base^(−2r/d). */
const frequency = (r, d, base) => base ** ((-2 * r) / d);

/** The rows of `X` (n×d), each with the row of `table` for its position added. */
export function addPositions(X, table, d, places = inOrder(X.length / d)) {
  return X.map((x, at) => x + table[places[Math.floor(at / d)] * d + (at % d)]);
}

/** Sines and cosines (n×d), interleaved. */
export function sinusoidalPositions(n, d, base = 10000) {
  return Float64Array.from({ length: n * d }, (_, at) => {
    const column = at % d;
    const angle = Math.floor(at / d) * frequency(column >> 1, d, base);
    return column % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}

/** The rows of `X` (n×d, d even), each pair of coordinates turned by an angle that grows with the position. */
export function rope(X, d, places = inOrder(X.length / d), base = 10000) {
  const turned = new Float64Array(X.length);
  for (let r = 0; r < d / 2; r++) {
    const theta = frequency(r, d, base);
    places.forEach((place, i) => {
      const at = i * d + 2 * r;
      const cos = Math.cos(place * theta);
      const sin = Math.sin(place * theta);
      turned[at] = X[at] * cos - X[at + 1] * sin;
      turned[at + 1] = X[at] * sin + X[at + 1] * cos;
    });
  }
  return turned;
}

/** −slope · |i + offset − j| (n×m), alike on both sides of a query: `kind: "symmetric"` in Python. */
export function alibiBias(n, m, { slope, offset = 0 }) {
  return Float64Array.from({ length: n * m }, (_, at) => -slope * Math.abs(Math.floor(at / m) + offset - (at % m)));
}

/** ‖layer(PX) − P layer(X)‖ for a layer from X (n×d) to an output (n×width); row i of PX is row permutation[i] of X. */
export function equivarianceGap(layer, X, { d, width, permutation, still = layer(X) }) {
  const rows = (M, columns) =>
    permutation.flatMap((from) => Array.from(M.subarray(from * columns, (from + 1) * columns)));
  const moved = layer(Float64Array.from(rows(X, d)));
  return Math.sqrt(rows(still, width).reduce((sum, value, at) => sum + (moved[at] - value) ** 2, 0));
}
