"""TilingLab in Python: what is kept from tile to tile, and that it ends at the exact output."""

import itertools
import math

import numpy as np
import pytest

from attn_lib import attention
from attn_lib.labs import TilingLab

MASKS = ("none", "causal", "window", "padding")
SIZES = [(1, 1), (1, 9), (9, 1), (2, 3), (3, 3), (4, 4), (5, 2), (9, 9)]


def keys_read(lab):
    """The keys that the chosen query has read and may look at, from the tiles themselves."""
    read = np.zeros(9, bool)
    for tile in lab.tiles[: lab.step]:
        if tile.queries.start <= lab.query < tile.queries.stop:
            read[tile.keys] = True
    return np.flatnonzero(read & np.isfinite(lab.scores[lab.query]))


def every_state(rng, count):
    for _ in range(count):
        lab = TilingLab(
            tile_queries=int(rng.integers(1, 10)),
            tile_keys=int(rng.integers(1, 10)),
            mask=str(rng.choice(MASKS)),
            query=int(rng.integers(9)),
            seed=int(rng.integers(10000)),
            step=0,
        )
        lab.step = int(rng.integers(len(lab.tiles) + 1))
        yield lab


class TestTheEnd:
    @pytest.mark.parametrize(("mask", "size"), list(itertools.product(MASKS, SIZES)))
    def test_it_is_the_exact_output(self, mask, size):
        lab = TilingLab(mask=mask, tile_queries=size[0], tile_keys=size[1], step=0)
        lab.step = len(lab.tiles)
        for query in range(9):
            lab.query = query
            assert lab.finished
            assert lab.difference < 1e-14
            np.testing.assert_allclose(lab.so_far, lab.exact[query], atol=1e-14)

    def test_before_it_is_not(self):
        assert TilingLab().difference > 0.1  # so the test above can fail


class TestWhatIsKept:
    def test_against_the_sums_written_out(self):
        """m is the largest score read, ℓ and the accumulator are measured from it."""
        for lab in every_state(np.random.default_rng(0), 60):
            keys = keys_read(lab)
            s = lab.scores[lab.query, keys]
            m = max(s, default=-math.inf)
            e = np.exp(s - m)
            assert lab.after.maximum == pytest.approx(m, abs=1e-14)
            np.testing.assert_allclose(lab.after.normaliser, e.sum(), atol=1e-12)
            np.testing.assert_allclose(lab.after.accumulator, e @ lab.V[keys], atol=1e-12)
            if len(keys):
                alone = attention(lab.Q[[lab.query]], lab.K[keys], lab.V[keys]).output[0]
                np.testing.assert_allclose(lab.so_far, alone, atol=1e-12)

    def test_after_is_rescaled_and_added(self):
        for lab in every_state(np.random.default_rng(1), 60):
            before, rescaled, added, after, *_ = lab.ledger
            if not lab.holds_query:
                assert np.isnan(rescaled).all() and np.isnan(added).all()
                np.testing.assert_array_equal(before, after)
                continue
            np.testing.assert_allclose(rescaled[1:] + added[1:], after[1:], atol=1e-12)
            assert max(before[0], added[0]) == pytest.approx(after[0], abs=1e-14)
            np.testing.assert_allclose(rescaled[1:], rescaled[0] * before[1:], atol=1e-12)
            if np.isfinite(before[0]):
                assert rescaled[0] == pytest.approx(math.exp(before[0] - after[0]))

    def test_before_is_what_the_last_step_left(self):
        lab = TilingLab(mask="causal", tile_keys=2, step=0)
        for step in range(1, len(lab.tiles) + 1):
            kept = lab.ledger[3]
            lab.step = step
            np.testing.assert_array_equal(lab.ledger[0], kept)

    def test_the_first_picture_shows_a_rising_maximum(self):
        lab = TilingLab()
        assert 0.3 < lab.factor < 0.8
        assert lab.holds_query and not lab.finished


class TestMaskedTiles:
    """Field case N07: a row whose first tile is wholly masked."""

    def test_a_row_may_find_nothing_in_its_first_tile(self):
        """Query 6 with a window of three keys, tiles of six queries: keys 1 and 2 are not its."""
        lab = TilingLab(mask="window", tile_queries=6, tile_keys=2, query=5, step=1)
        assert lab.holds_query
        assert lab.after.maximum == -math.inf and lab.after.normaliser == 0
        assert lab.factor == 0 and lab.so_far.tolist() == [0, 0, 0]
        assert not np.isnan(lab.ledger[:4]).any()
        lab.step = 3
        keys = [3, 4, 5]
        expected = attention(lab.Q[[5]], lab.K[keys], lab.V[keys]).output[0]
        np.testing.assert_allclose(lab.so_far, expected, atol=1e-14)

    def test_what_nobody_may_read_is_skipped(self):
        count = {mask: len(TilingLab(mask=mask, step=0).tiles) for mask in MASKS}
        assert count == {"none": 9, "causal": 6, "window": 5, "padding": 6}
        assert TilingLab(mask="padding", step=1).tile.keys == slice(
            3, 6
        )  # keys 4 and on, key 4 hidden


def test_bytes_by_hand():
    lab = TilingLab(tile_queries=3, tile_keys=3)
    assert lab.bytes_held == (9 + 3 * 2 + 3 * 3) * 8  # scores; m and ℓ; accumulators of width 3
    assert lab.bytes_full == 81 * 8
    assert TilingLab(tile_queries=1, tile_keys=1, step=0).bytes_held == 6 * 8


class TestState:
    def test_a_step_ends_with_the_tiles(self):
        lab = TilingLab(step=9)
        lab.mask = "causal"
        assert lab.step == 6
        lab.tile_queries = lab.tile_keys = 9
        assert lab.step == 1
        assert TilingLab(tile_queries=9, tile_keys=9).step == 1

    @pytest.mark.parametrize(
        ("bad", "message"),
        [
            ({"tile_queries": 0}, "tile_queries must be from 1 to 9, got 0"),
            ({"tile_keys": 10}, "tile_keys must be from 1 to 9, got 10"),
            ({"step": 10}, "step must be from 0 to 9, got 10"),
            ({"mask": "causal", "step": 7}, "step must be from 0 to 6, got 7"),
            ({"step": -1}, "step must be from 0 to 9, got -1"),
            ({"query": 9}, "query must be from 0 to 8, got 9"),
            ({"mask": "prefix"}, "mask must be one of none, causal, window, padding, got 'prefix'"),
        ],
    )
    def test_what_is_refused(self, bad, message):
        with pytest.raises(ValueError, match=message):
            TilingLab(**bad)


def test_words():
    assert TilingLab(step=0).describe() == "Nothing is read yet; 9 tiles are to come."
    assert TilingLab(step=1).describe() == (
        "Step 1 of 9: queries 1 to 3 meet keys 1 to 3. "
        "Query 5 is not among them and keeps its numbers."
    )
    last = TilingLab(step=6).describe()
    assert last.startswith("Step 6 of 9: queries 4 to 6 meet keys 7 to 9. For query 5 what was")
    assert last.endswith("and it is done.")
    assert "queries 1 meet keys 1." in TilingLab(tile_queries=1, tile_keys=1, step=1).describe()


def test_a_figure_shows_what_was_read_and_what_is_kept():
    lab = TilingLab()
    scores, kept = lab.figure().axes
    shown = scores.images[0].get_array().filled(np.nan)
    read = np.zeros((9, 9), bool)
    read[:3], read[3:6, :6] = True, True
    np.testing.assert_array_equal(np.isfinite(shown), read)
    np.testing.assert_array_equal(shown[read], lab.scores[read])
    words = [text.get_text() for text in kept.texts]
    assert f"{lab.factor:.2f}" in words and "= after" in words
    assert kept.get_title(loc="left") == "What query 5 keeps"
    hatched = [
        p for p in TilingLab(mask="causal", step=0).figure().axes[0].patches if p.get_hatch()
    ]
    assert len(hatched) == 36
