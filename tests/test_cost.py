"""attn_lib.cost: every formula against counted operations and traced memory."""

import numpy as np
import pytest
from counting import Counted, counting

from attn_lib import attention, causal_mask
from attn_lib.blocks import block
from attn_lib.cost import (
    attention_cost,
    cache_size,
    data_moved,
    generation_cost,
    layer_cost,
    peak_memory,
)
from attn_lib.efficient import (
    KVCache,
    attention_tiles,
    linear_attention,
    tiled_attention,
    windowed_attention,
)
from attn_lib.model import Config, count_operations

FUNCTIONS = {
    "plain": lambda Q, K, V, causal=False: attention(
        Q, K, V, mask=causal_mask(len(Q), len(K)) if causal else None
    ),
    "tiled": tiled_attention,
    "windowed": windowed_attention,
    "linear": linear_attention,
}
CASES = [
    ("plain", {}),
    ("plain", {"causal": True}),
    ("tiled", {}),
    ("tiled", {"tile": (16, 24)}),
    ("tiled", {"tile": (16, 24), "causal": True}),
    ("tiled", {"tile": (7, 1), "causal": True}),
    ("windowed", {"window": 1}),
    ("windowed", {"window": 10}),
    ("windowed", {"window": 10, "tile": (16, 7)}),
    ("windowed", {"window": 500}),
    ("linear", {}),
    ("linear", {"causal": True, "chunk": 1}),
    ("linear", {"causal": True, "chunk": 32}),
    ("linear", {"causal": True, "chunk": 500}),
]


def draw(n, m=None, d_k=6, d_v=10, seed=0):
    rng = np.random.default_rng(seed)
    m = n if m is None else m
    return rng.normal(size=(n, d_k)), rng.normal(size=(m, d_k)), rng.normal(size=(m, d_v))


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_operations_are_those_numpy_does(kind, options, monkeypatch):
    arrays = [a.view(Counted) for a in draw(101)]
    with counting(monkeypatch) as books:
        FUNCTIONS[kind](*arrays, **options)
        counted = dict(books)
    cost = attention_cost(101, d_k=6, d_v=10, kind=kind, **options)
    assert counted["multiply_adds"] == cost.multiply_adds
    assert counted["exponentials"] == cost.exponentials


@pytest.mark.parametrize("kind", ["plain", "tiled", "linear"])
def test_queries_and_keys_need_not_be_as_many(kind, monkeypatch):
    arrays = [a.view(Counted) for a in draw(40, 90)]
    with counting(monkeypatch) as books:
        FUNCTIONS[kind](*arrays)
        counted = dict(books)
    assert counted["multiply_adds"] == attention_cost(40, 90, d_k=6, d_v=10, kind=kind)[0]


def plain_in_place(Q, K, V):
    S = Q @ K.T
    S -= S.max(axis=-1, keepdims=True)
    np.exp(S, out=S)
    S /= S.sum(axis=-1, keepdims=True)
    return S @ V


@pytest.mark.parametrize("d_v", [64, 80])
@pytest.mark.parametrize("n", [1024, 2000])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("plain", {}),
        ("tiled", {}),
        ("tiled", {"tile": (64, 128)}),
        ("tiled", {"tile": (64, 128), "causal": True}),
        ("tiled", {"causal": True}),
        ("windowed", {"window": 64}),
        ("windowed", {"window": 256}),
        ("linear", {}),
        ("linear", {"causal": True}),
        ("linear", {"causal": True, "chunk": 32}),
    ],
)
def test_memory_is_what_is_traced(kind, options, n, d_v):
    """To 10 % and 10240 numbers, which is what numpy's own buffers and the checks take."""
    Q, K, V = draw(n, d_k=64, d_v=d_v)
    function = plain_in_place if kind == "plain" else FUNCTIONS[kind]
    measured = peak_memory(lambda: function(Q, K, V, **options)) / 8 - n * d_v
    expected = attention_cost(n, d_k=64, d_v=d_v, kind=kind, **options).memory
    assert measured == pytest.approx(expected, rel=0.10, abs=10240)


def test_memory_of_all_but_plain_attention_does_not_grow():
    for kind, options in [
        ("tiled", {}),
        ("windowed", {"window": 64}),
        ("linear", {"causal": True}),
    ]:
        near, far = (attention_cost(n, d_k=64, kind=kind, **options) for n in (4096, 8192))
        assert near.memory == far.memory
    assert attention_cost(8192, d_k=64).memory == 4 * attention_cost(4096, d_k=64).memory


def test_doubling_n_quadruples_or_doubles():
    for kind, options, factor in [
        ("plain", {}, 4),
        ("tiled", {}, 4),
        ("linear", {}, 2),
        ("linear", {"causal": True}, 2),
    ]:
        one, two = (attention_cost(n, d_k=64, kind=kind, **options) for n in (8192, 16384))
        assert two.multiply_adds == factor * one.multiply_adds
    one, two = (attention_cost(n, d_k=64, kind="windowed", window=64) for n in (8192, 16384))
    assert two.multiply_adds == pytest.approx(2 * one.multiply_adds, rel=0.01)


@pytest.mark.parametrize("tile", [(16, 24), (101, 7), (7, 101), (500, 500)])
def test_tiles_move_what_the_tiles_that_are_read_hold(tile):
    Q, K, V = draw(101, 90)
    moved = 0
    for queries, keys, _ in attention_tiles(Q, K, V, tile=tile):
        if keys.start == 0:
            moved += Q[queries].size + len(Q[queries]) * V.shape[1]  # a row's queries and outputs
        moved += K[keys].size + V[keys].size
    assert data_moved(101, 90, d_k=6, d_v=10, kind="tiled", rows=tile[0]) == moved


def test_plain_attention_moves_factors_and_results():
    Q, K, V = draw(101, 90)
    S = Q @ K.T
    steps = [(Q, K, S), (S, S), (S, V, Q @ K.T @ V)]
    assert data_moved(101, 90, d_k=6, d_v=10) == sum(a.size for step in steps for a in step)


class TestLayer:
    def layer(self, d, d_ff):
        rng = np.random.default_rng(1)
        shapes = {f"W_{x}": (d, d) for x in "QKVO"}
        shapes |= {"W_1": (d, d_ff), "b_1": (d_ff,), "W_2": (d_ff, d), "b_2": (d,)}
        return {name: rng.normal(size=shape).view(Counted) for name, shape in shapes.items()}

    def count(self, monkeypatch, n, d, d_ff, past=0):
        rng = np.random.default_rng(2)
        X = rng.normal(size=(n, d)).view(Counted)
        pair = tuple(rng.normal(size=(2, past, d // 2)).view(Counted) for _ in "KV")
        with counting(monkeypatch) as books:
            block(X, self.layer(d, d_ff), heads=2, norm="none", past=pair if past else None)
            return books["multiply_adds"]

    @pytest.mark.parametrize(("n", "past"), [(7, 0), (1, 20), (5, 3)])
    def test_counts_a_block(self, n, past, monkeypatch):
        expected = layer_cost(n, 8, past=past, d_ff=24)["total"]
        assert self.count(monkeypatch, n, 8, 24, past) == expected

    def test_agrees_with_the_count_of_a_whole_model(self):
        config = Config(vocabulary=50, context=30, d=16, layers=3, heads=2, d_ff=40)
        counts, layer = count_operations(config, 30), layer_cost(30, 16, d_ff=40)
        assert counts["projections"] == 3 * layer["projections"]
        assert counts["scores_and_mixing"] == 3 * (layer["scores"] + layer["mixing"])
        assert counts["feed_forward"] == 3 * layer["feed_forward"]

    def test_the_quadratic_part_passes_the_others_at_2d_and_6d(self):
        at_2d, at_6d = layer_cost(2 * 48, 48), layer_cost(6 * 48, 48)
        assert at_2d["scores"] + at_2d["mixing"] == at_2d["projections"]
        others = at_6d["projections"] + at_6d["feed_forward"]
        assert at_6d["scores"] + at_6d["mixing"] == others

    @pytest.mark.parametrize("cached", [True, False])
    def test_generation_is_the_sum_of_its_steps(self, cached, monkeypatch):
        steps = [(1, t) if cached else (t + 1, 0) for t in range(9)]
        counted = sum(self.count(monkeypatch, n, 8, 32, past) for n, past in steps)
        assert generation_cost(9, 8, cached=cached) == counted

    def test_a_cache_saves_one_power_of_n(self):
        with_cache = [generation_cost(n, 4) for n in (1000, 2000)]
        without = [generation_cost(n, 4, cached=False) for n in (1000, 2000)]
        assert with_cache[1] / with_cache[0] == pytest.approx(4, rel=0.03)
        assert without[1] / without[0] == pytest.approx(8, rel=0.03)


def test_cache_size_is_what_the_cache_holds():
    cache, rng = KVCache(), np.random.default_rng(0)
    for _ in range(5):
        cache.append(*(rng.normal(size=(2, 3, 8)) for _ in "KV"))
    assert cache.nbytes / 8 == cache_size(15, 64, heads=8, kv_heads=2)
    assert cache_size(15, 64, layers=6) == 6 * 2 * 15 * 64


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (lambda: layer_cost(4.5, 3), "n must be a whole number ≥ 0, got 4.5"),
        (lambda: layer_cost(4, 0), "d must be a whole number ≥ 1, got 0"),
        (lambda: layer_cost(4, 3, past=-1), "past must be a whole number ≥ 0, got -1"),
        (lambda: layer_cost(4, 3, d_ff=-1), "d_ff must be a whole number ≥ 0, got -1"),
        (lambda: generation_cost(-1, 3), "n must be a whole number ≥ 0, got -1"),
        (lambda: generation_cost(2, 3, d_ff=2.0), "d_ff must be a whole number ≥ 0, got 2.0"),
        (lambda: cache_size(-1, 3), "n must be a whole number ≥ 0, got -1"),
        (lambda: cache_size(5, 3, layers=-1), "layers must be a whole number ≥ 0, got -1"),
        (
            lambda: cache_size(5, 6, heads=3, kv_heads=2),
            "heads = 3 do not divide into kv_heads = 2",
        ),
        (lambda: data_moved(-1, d_k=2), "n must be a whole number ≥ 0, got -1"),
        (lambda: data_moved(4, d_k=2, rows=0), "rows must be a whole number ≥ 1, got 0"),
        (lambda: attention_cost(4, -1, d_k=2), "m must be a whole number ≥ 0, got -1"),
        (lambda: attention_cost(4, d_k=0), "d_k must be a whole number ≥ 1, got 0"),
        (lambda: attention_cost(4, d_k=2, chunk=0), "chunk must be a whole number ≥ 1, got 0"),
        (
            lambda: attention_cost(4, d_k=2, tile=(0, 1)),
            r"tile\[0\] must be a whole number ≥ 1, got 0",
        ),
    ],
)
def test_counts_are_whole_and_not_negative(count, words):
    with pytest.raises(ValueError, match=f"^{words}"):
        count()


def test_nothing_costs_nothing():
    assert layer_cost(0, 3)["total"] == generation_cost(0, 3) == cache_size(0, 3) == 0
    assert attention_cost(0, d_k=1) == (0, 0, 0)


def test_refuses_what_it_cannot_count():
    with pytest.raises(ValueError, match=r"kind must be one of 'plain', 'tiled'.*got 'flash'"):
        attention_cost(4, d_k=2, kind="flash")
    with pytest.raises(ValueError, match="window must be a whole number ≥ 1, got None"):
        attention_cost(4, d_k=2, kind="windowed")
    with pytest.raises(ValueError, match="'plain', 'tiled', got 'windowed'"):
        data_moved(4, d_k=2, kind="windowed")
    with pytest.raises(RuntimeError, match="cannot be nested"):
        peak_memory(lambda: peak_memory(lambda: None))
