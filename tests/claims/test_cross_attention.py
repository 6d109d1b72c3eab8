"""What the chapter on cross-attention says of its models, measured here on other draws."""

from dataclasses import replace

import numpy as np
import pytest

from attn_lib import attention, causal_mask, cross_attention, padding_mask, self_attention, softmax
from attn_lib.checks import random_inputs
from attn_lib.training import (
    RECIPES,
    evaluate,
    held_out,
    lookup_batch,
    reader,
    start,
    train,
    translate_batch,
)


def drawn(**shapes):
    shapes = {"X": (4, 3), "Y": (6, 5), "W_Q": (3, 2), "W_K": (5, 2), "W_V": (5, 4)} | shapes
    return random_inputs(0, **shapes).values()


class TestWhatAReaderCannotNotice:
    def test_the_order_of_the_source(self):
        X, Y, *maps = drawn()
        order = np.array([3, 0, 5, 1, 4, 2])
        plain, moved = cross_attention(X, Y, *maps), cross_attention(X, Y[order], *maps)
        np.testing.assert_allclose(moved.output, plain.output, atol=1e-12)
        np.testing.assert_allclose(moved.weights, plain.weights[:, order], atol=1e-12)
        assert np.abs(moved.weights - plain.weights).max() > 0.01

    def test_the_other_readers(self):
        X, Y, *maps = drawn()
        whole = cross_attention(X, Y, *maps).output
        for i, x in enumerate(X):
            np.testing.assert_allclose(cross_attention(x[None], Y, *maps).output[0], whole[i])


def test_self_attention_is_the_case_of_one_sequence():
    X, _, *maps = drawn(W_K=(3, 2), W_V=(3, 4))
    np.testing.assert_array_equal(cross_attention(X, X, *maps).output, self_attention(X, *maps)[2])


def test_kernel_smoothing_is_cross_attention():
    rng, h = np.random.default_rng(1), 0.7
    k, y, q = rng.normal(size=9), rng.normal(size=9), rng.normal(size=5)
    maps = np.diag([1 / h, 1]), np.array([[1 / h, 0], [0, -0.5 / h**2], [0, 0]]), np.eye(3)[:, 2:]
    reading, source = np.column_stack([q, np.ones(5)]), np.column_stack([k, k**2, y])
    gauss = np.exp(-((q[:, None] - k) ** 2) / (2 * h**2))
    expected = gauss @ y / gauss.sum(axis=1)
    found = cross_attention(reading, source, *maps, scale=1.0).output[:, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_one_block_of_a_larger_table():
    X, Y, *maps = drawn(Y=(6, 3), W_K=(3, 2), W_V=(3, 4))
    mask = np.ones((10, 10), bool)
    mask[6:, 6:] = False
    stacked = self_attention(np.vstack([Y, X]), *maps, mask=mask).output
    np.testing.assert_allclose(stacked[6:], cross_attention(X, Y, *maps).output)


@pytest.fixture(scope="module")
def translation():
    return train(start("translation"), progress=False).params


@pytest.fixture(scope="module")
def lookup():
    return train(start("lookup"), progress=False).params


def masked(params, tokens, source, mask):
    X, Y = params["E_X"][tokens].sum(axis=-2), params["E_Y"][source].sum(axis=-2)
    maps = (params[name] for name in ("W_Q", "W_K", "W_V"))
    return cross_attention(X, Y, *maps, mask=mask).output @ params["U"]


class TestTranslation:
    def test_its_weight_follows_the_rows_that_name_a_place(self, translation):
        """Not the letters, and not the columns: both stay where they are."""
        batch, rng = held_out("translation", 1, seed=1)[0], np.random.default_rng(1)
        on_place, on_column, right = [], [], []
        for tokens, source in zip(batch.tokens, batch.source, strict=True):
            said = rng.permutation(12)
            moved = np.column_stack([source[:, 0], source[said, 1]])
            logits, attended = reader(translation, tokens, moved)
            for i, row in enumerate(attended.weights):
                at = int(np.flatnonzero(said == 11 - i)[0])
                on_place.append(row[at])
                on_column.append(row[11 - i])
                right.append(logits[i].argmax() == moved[at, 0])
        assert np.mean(on_place) > 0.97 and np.mean(right) > 0.99
        assert abs(np.mean(on_column) - 1 / 12) < 0.04

    @pytest.mark.parametrize("seed", [1, 2])
    def test_another_order_is_found_by_training_and_not_by_an_untrained_model(self, seed):
        order = np.random.default_rng(10 + seed).permutation(12)

        def draw(rng):
            batch = translate_batch(rng, size=64, length=12, vocabulary=26)
            written = np.take(batch.source[..., 0], order, axis=1)
            tokens = batch.tokens.copy()
            tokens[:, 1:, 0] = written[:, :-1]
            return batch._replace(tokens=tokens, targets=written)

        run = train(
            start(replace(RECIPES["translation"], draw=draw), seed), keep=[0], progress=False
        )
        fresh = draw(np.random.default_rng(3))
        read = [
            reader(p, fresh.tokens, fresh.source)[1].weights.mean(axis=0)
            for p in (run.kept[0], run.params)
        ]
        assert (read[1].argmax(axis=1) == order).all() and read[1].max(axis=1).min() > 0.8
        assert (read[0].argmax(axis=1) == order).sum() <= 4

    def test_it_knows_one_length(self, translation):
        batch = translate_batch(np.random.default_rng(2), size=64, length=8, vocabulary=26)
        logits, _ = reader(translation, batch.tokens, batch.source)
        assert (logits.argmax(-1) == batch.targets).mean() < 0.2

    def test_a_causal_mask_costs_the_first_half(self, translation):
        batch = held_out("translation", 1, seed=1)[0]
        logits = masked(translation, batch.tokens, batch.source, causal_mask(12))
        right = logits.argmax(-1) == batch.targets
        assert right[:, 6:].mean() > 0.99 and right[:, :6].mean() < 0.2


class TestLookup:
    @pytest.mark.parametrize("pairs", [1, 4, 16])
    def test_it_serves_any_number_of_pairs(self, lookup, pairs):
        batch = lookup_batch(np.random.default_rng(7), size=50, pairs=pairs, keys=16, values=16)
        found = evaluate(lambda b: reader(lookup, b.tokens, b.source)[0], [batch])
        assert found.accuracy > 0.99

    def test_it_answers_what_it_cannot_know(self, lookup):
        batch = held_out("lookup", 1, seed=1)[0]
        rows = [[k for k in range(16) if k not in row][:4] for row in batch.source[..., 0]]
        absent = np.array(rows)[..., None]
        logits, attended = reader(lookup, absent, batch.source)
        assert softmax(logits).max(axis=-1).mean() > 0.6
        known = reader(lookup, batch.tokens, batch.source)[1].scores.max(axis=-1)
        assert np.median(known) > np.median(attended.scores.max(axis=-1)) + 3

    def test_filling_that_misleads_is_hidden_by_the_mask(self, lookup):
        batch = held_out("lookup", 1, seed=2)[0]
        source = batch.source.copy()
        source[:, 4:, 0] = source[:, :1, 0]
        source[:, 4:, 1] = 16 + (source[:, :1, 1] - 11) % 16
        first = batch.tokens[..., 0] == batch.source[:, :1, 0]
        right = {
            name: (masked(lookup, batch.tokens, source, mask).argmax(-1) == batch.targets)[first]
            for name, mask in [("bare", None), ("padding", padding_mask(4, 6))]
        }
        assert right["bare"].mean() < 0.5 < 0.99 < right["padding"].mean()


def test_an_empty_source_gives_zeros():
    X, Y, *maps = drawn()
    assert not cross_attention(X, Y, *maps, mask=padding_mask(0, 6)).output.any()
    assert not attention(X[:, :2], Y[:, :2], Y, mask=padding_mask(0, 6)).weights.any()
