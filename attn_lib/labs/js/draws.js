// Random numbers by counting, the same as attn_lib.draws: number i depends on (seed, stream, i) alone.

const STEP = 0x9e3779b9; // 2³² over the golden ratio: neighbouring counters land far apart

function mix(x) {
  x = Math.imul(x ^ (x >>> 16), 0x7feb352d);
  x = Math.imul(x ^ (x >>> 15), 0x846ca68b);
  return (x ^ (x >>> 16)) >>> 0;
}

const uniform = (key, i) => (mix((key + Math.imul(i + 1, STEP)) >>> 0) + 0.5) / 4294967296;
const keyOf = (seed, stream) => mix((mix(seed >>> 0) + stream) >>> 0);

/** `count` numbers between 0 and 1 from one of the seed's streams, beginning with number `from`. */
export function uniforms(seed, stream, count, from = 0) {
  const key = keyOf(seed, stream);
  return Float64Array.from({ length: count }, (_, i) => uniform(key, from + i));
}

/** `count` standard normals (Box–Muller), beginning with number `from`, which is even. */
export function normals(seed, stream, count, from = 0) {
  const key = keyOf(seed, stream);
  const z = new Float64Array(count);
  for (let i = 0; i < count; i += 2) {
    const radius = Math.sqrt(-2 * Math.log(uniform(key, from + i)));
    const angle = 2 * Math.PI * uniform(key, from + i + 1);
    z[i] = radius * Math.cos(angle);
    if (i + 1 < count) z[i + 1] = radius * Math.sin(angle);
  }
  return z;
}
