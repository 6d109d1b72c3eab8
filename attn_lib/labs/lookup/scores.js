// The equations of attn_lib.lookup for one query in the plane; `K` holds m keys, row by row.

const squaredDistance = (q, K, j) => (q[0] - K[2 * j]) ** 2 + (q[1] - K[2 * j + 1]) ** 2;
const each = (K, score) => Float64Array.from({ length: K.length / 2 }, (_, j) => score(j));

/** 0 for the key the query stands on, −∞ for every other. */
export const exactScores = (q, K, tolerance = 0) =>
  each(K, (j) => (squaredDistance(q, K, j) <= tolerance ** 2 ? 0 : -Infinity));

/** −‖q − k‖²/2. */
export const gaussianScores = (q, K) => each(K, (j) => -squaredDistance(q, K, j) / 2);

/** q·k. */
export const dotScores = (q, K) => each(K, (j) => q[0] * K[2 * j] + q[1] * K[2 * j + 1]);

/** All the weight to the best score; equal ones share it. */
export function hardWeights(S, tie = 1e-9) {
  const best = Math.max(...S);
  const wins = S.map((score) => Number(score >= best - tie && score > -Infinity));
  const count = wins.reduce((sum, win) => sum + win, 0);
  return wins.map((win) => win / (count || 1));
}

/** Every key stretched to the same length. */
export function withLength(K, length) {
  return K.map((coordinate, at) => coordinate * (length / Math.hypot(K[at & ~1], K[at | 1])));
}

/** Which of the points are corners of their convex hull, against the clock. */
export function convexHull(points) {
  const turn = ([ax, ay], [bx, by], [cx, cy]) => (bx - ax) * (cy - ay) - (by - ay) * (cx - ax);
  const order = points.map((_, at) => at).sort((i, j) => points[i][0] - points[j][0] || points[i][1] - points[j][1]);
  const chain = (along) => {
    const kept = [];
    for (const next of along) {
      while (kept.length > 1 && turn(points[kept.at(-2)], points[kept.at(-1)], points[next]) <= 0) kept.pop();
      kept.push(next);
    }
    return kept;
  };
  const lower = chain(order);
  const around = [...lower.slice(0, -1), ...chain([...order].reverse()).slice(0, -1)];
  return around.length ? around : lower;
}
