"""Measure time and memory of chapter 11's kinds of attention, as ratios.

    python tests/benchmarks/efficient.py                                  a quiet machine
    OPENBLAS_NUM_THREADS=1 python tests/benchmarks/efficient.py --cpu     a busy one

Everything that is compared is run in turn, several times, and the best time of each counts. On a
busy machine count processor time of one BLAS thread: two wait for each other at every small
product of a tile, and plain attention, with its two large ones, looks better than it is.
"""

import argparse
import math
import time

import numpy as np

from attn_lib.cost import attention_cost, peak_memory
from attn_lib.efficient import TILE, linear_attention, tiled_attention, windowed_attention

D = 64


def plain(Q, K, V):
    """Give attention by the leanest plain numpy: one n × m array, changed in place."""
    S = Q @ K.T
    S *= 1 / math.sqrt(K.shape[1])
    S -= S.max(axis=-1, keepdims=True)
    np.exp(S, out=S)
    S /= S.sum(axis=-1, keepdims=True)
    return S @ V


def draw(n, dtype=np.float32):
    """Draw queries, keys and values."""
    rng = np.random.default_rng(0)
    return [rng.normal(size=(n, D)).astype(dtype) for _ in "QKV"]


def best_times(functions, repeats, clock):
    """Time each function `repeats` times in turn and give the best of each."""
    best = dict.fromkeys(functions, math.inf)
    for _ in range(repeats):
        for name, function in functions.items():
            start = clock()
            function()
            best[name] = min(best[name], clock() - start)
    return best


def error(output, Q, K, V):
    """Measure the largest distance from the same attention in float64."""
    Q, K, V = (a.astype(np.float64) for a in (Q, K, V))
    parts = [slice(i, i + 512) for i in range(0, len(Q), 512)]
    return max(abs(output[rows] - plain(Q[rows], K, V)).max() for rows in parts)


def tiled_against_plain(n, repeats, clock):
    """Print the time, memory and error of tiled attention beside those of plain attention."""
    Q, K, V = draw(n)
    functions = {
        "plain, in place": lambda: plain(Q, K, V),
        f"tiled {TILE[0]}×{TILE[1]}": lambda: tiled_attention(Q, K, V),
        "tiled 512×512": lambda: tiled_attention(Q, K, V, tile=(512, 512)),
        "tiled, causal": lambda: tiled_attention(Q, K, V, causal=True),
    }
    times = best_times(functions, repeats, clock)
    print(f"\nn = {n}, d = {D}, float32, best of {repeats}; ratios to the first line")
    print(f"{'':22}{'time':>9}{'ratio':>7}{'peak memory':>14}{'ratio':>8}{'max error':>11}")
    memory = {name: peak_memory(function) for name, function in functions.items()}
    for name, function in functions.items():
        off = "" if "causal" in name else f"{error(function(), Q, K, V):.1e}"
        first, size = "plain, in place", memory[name]
        smaller = memory[first] / size
        ratio = f"1/{smaller:.0f}" if smaller > 1 else f"{1 / smaller:.1f}"
        print(
            f"{name:22}{times[name]:7.2f} s{times[name] / times[first]:7.2f}"
            f"{size / 1e6:11.1f} MB{ratio:>8}{off:>11}"
        )
    formula = attention_cost(n, d_k=D, kind="tiled").memory * 4 / 1e6
    print(f"formula for tiled: {formula:.1f} MB beside the output's {n * D * 4 / 1e6:.1f} MB")


def growth(sizes, repeats, clock):
    """Print how time grows while n doubles: the ratio is 2 where it is linear, 4 where square."""
    print(f"\ntime in ms while n doubles, best of {repeats}; in brackets the ratio to the last n")
    print(f"{'n':>22}" + "".join(f"{n:>16}" for n in sizes) + f"{'exponent':>10}")
    kinds = {
        "plain, in place": lambda Q, K, V: plain(Q, K, V),
        "window 128": lambda Q, K, V: windowed_attention(Q, K, V, window=128),
        "linear": linear_attention,
        "linear, causal": lambda Q, K, V: linear_attention(Q, K, V, causal=True),
    }
    for name, function in kinds.items():
        few = sizes[:4] if name.startswith("plain") else sizes
        drawn = {n: draw(n) for n in few}
        times = best_times(
            {n: lambda n=n, f=function: f(*drawn[n]) for n in few},  # noqa: B023 (called at once)
            repeats,
            clock,
        )
        row = f"{name:22}"
        for n in few:
            ratio = f" ({times[n] / times[n // 2]:.2f})" if n // 2 in times else ""
            row += f"{times[n] * 1e3:.1f}{ratio}".rjust(16)
        slope = np.polyfit(np.log(few), np.log([times[n] for n in few]), 1)[0]
        print(row + " " * 16 * (len(sizes) - len(few)) + f"{slope:10.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=8192)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--cpu", action="store_true", help="count processor time")
    options = parser.parse_args()
    clock = time.process_time if options.cpu else time.perf_counter
    tiled_against_plain(options.n, options.repeats, clock)
    growth([2**k for k in range(11, 16)], options.repeats, clock)
