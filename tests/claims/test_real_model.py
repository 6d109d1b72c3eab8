"""What the chapter on a real model says of its data, beyond `tests/test_minilm.py`."""

from pathlib import Path

import numpy as np
import pytest

from attn_lib import softmax
from attn_lib.checks import random_inputs
from attn_lib.minilm import model, read_export

BANK = ("river", "muddy", "account", "loans", "fish")


@pytest.fixture(scope="module")
def data():
    return read_export(Path(__file__).resolve().parents[2] / "book/data/minilm.npz")


def length(c, G):
    return np.sqrt(np.einsum("...j,...jk,...k->...", c, G, c).clip(0))


def cosines(rows):
    unit = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return unit @ unit.swapaxes(-1, -2)


def of(data, what):
    """Cosines of one token's rows, (7, 5, 5)."""
    found = [r.bank if what == "bank" else r.others[what] for r in map(data.get, BANK)]
    return cosines(np.stack(found, axis=1))


class TestTheMeanOverHeads:
    def test_the_sum_over_heads_is_not_the_mean_times_the_mean(self):
        A, U = softmax(random_inputs(1, A=(3, 4, 4))["A"]), random_inputs(2, U=(3, 4, 5))["U"]
        mean, rest = 3 * A.mean(0) @ U.mean(0), ((A - A.mean(0)) @ (U - U.mean(0))).sum(0)
        np.testing.assert_allclose((A @ U).sum(0), mean + rest, atol=1e-12)
        assert np.linalg.norm(rest) > 0.1 * np.linalg.norm(mean)

    def test_it_leaves_most_of_a_layer_out(self, data):
        beyond = data["chef"].beyond_mean
        assert beyond.shape == (6,) and beyond.min() > 0.6


class TestTheFirstToken:
    def measured(self, data):
        chef = data["chef"]
        A, G, only = chef.weights[:, :, 2:], chef.products[:, :, None], np.eye(12)[0]
        w = A[..., :1]
        assert w.max() < 0.999
        every = [A, w * only, w / (1 - w) * (A - only), (A - w * only) / (1 - w)]
        return [np.median(length(c, G), axis=(1, 2)) for c in every]

    def test_its_term_is_a_tenth_and_masking_it_is_more_than_all(self, data):
        output, term, masked, after = self.measured(data)
        assert ((term / output > 0.05) & (term / output < 0.13)).all()
        assert (np.flatnonzero(masked > output) == [1, 2, 3, 4]).all()
        assert (after[1:5] > 2 * output[1:5]).all() and (after > output).all()

    def test_about_half_of_all_weight_is_its_in_every_sentence(self, data):
        shares = [reading.weights[..., 0].mean() for reading in data.values()]
        assert min(shares) > 0.45 and max(shares) < 0.6
        others = [reading.weights[..., j].mean() for reading in data.values() for j in (1, 2, -1)]
        assert max(others) < 0.2  # no other place comes near

    def test_by_norms_it_is_above_an_even_share_in_all_layers_but_the_last(self, data):
        shares, even = [], np.mean([1 / len(r.tokens) for r in data.values()])
        for reading in data.values():
            written = reading.weights * reading.norms[:, :, None]
            written = written / written.sum(axis=-1, keepdims=True)
            shares.append(written[..., 0].mean(axis=(1, 2)))
        share = np.mean(shares, axis=0)
        assert (share[:5] > 1.1 * even).all() and share[5] < even
        assert (share < np.mean([r.weights[..., 0].mean() for r in data.values()]) / 2).all()

    def test_its_value_is_small_from_one_zero_and_not_from_another(self, data):
        chef = data["chef"]
        centred = length(np.eye(12) - 1 / 12, chef.products[:, :, None])
        for norms, low, high in [(chef.norms, 0.02, 0.1), (centred, 0.45, 0.75)]:
            share = norms[1:, :, 0].mean(axis=1) / norms[1:, :, 1:].mean(axis=(1, 2))
            assert low < share.min() and share.max() < high

    def test_it_rests_on_itself_between_the_first_layer_and_the_last(self, data):
        own = data["chef"].weights[:, :, 0, 0].mean(axis=1)
        assert (own[1:5] > 0.89).all() and own[0] < 0.6

    def test_more_than_half_of_all_weight_is_its(self, data):
        assert len(data) == 8
        share = np.mean([r.weights[..., 0].mean(axis=(1, 2)) for r in data.values()], axis=0)
        assert (share[1:5] > 0.5).all()


class TestBank:
    def test_the_nearest_start_most_alike(self, data):
        start = of(data, "bank")[0]
        places = [data[name].tokens.index("bank") for name in BANK]
        near, far = [], []
        for i in range(5):
            for j in range(i):
                (near if abs(places[i] - places[j]) == 1 else far).append(start[i, j])
        assert min(near) > max(far) + 0.01

    def test_is_sorted_after_every_layer_and_not_steadily(self, data):
        cosine = of(data, "bank")
        within, across = cosine[:, [0, 2], [1, 3]], cosine[:, [0, 0, 1, 1], [2, 3, 2, 3]]
        assert (within[1:].min(axis=1) > across[1:].max(axis=1)).all()
        assert within[0].min() < across[0].max()
        mean = across.mean(axis=1)
        assert mean[0] > mean[2] < mean[5] > mean[6]

    def test_the_full_stop_is_not(self, data):
        end = of(data, ".")[6]
        assert min(end[0, 1], end[2, 3]) < max(end[0, 2], end[0, 3], end[1, 2], end[1, 3])

    def test_the_fifth_is_nearest_to_the_account_on_the_way_and_between_at_the_end(self, data):
        cosine = of(data, "bank")[:, 4, :4]  # river, muddy, account, loans
        assert (cosine[1:].argmax(axis=1) == 2).all()
        assert abs(cosine[6, 0] - cosine[6, 2]) < 0.01 < cosine[1, 2] - cosine[1, 0]


class TestHeads:
    def test_one_finds_the_next_token_often(self, data):
        score = np.mean(
            [r.weights.diagonal(1, axis1=-2, axis2=-1).mean(axis=-1) for r in data.values()], axis=0
        )
        first, second = np.sort(score.ravel())[::-1][:2]
        assert np.unravel_index(score.argmax(), score.shape) == (1, 8)
        assert 0.5 < first < 0.7 and first > 2 * second

    def test_any_word_finds_a_head(self, data):
        chef = data["chef"]
        best = chef.weights[:, :, chef.tokens.index("bland")].max(axis=(0, 1))
        words = [chef.tokens.index(w) for w in ("chef", "added", "salt", "because", "soup")]
        assert (best[words] > 1.5 / 12).all()

    def test_soup_is_preferred_whoever_is_bland(self, data):
        def more(name):
            tokens, weights = data[name].tokens, data[name].weights
            row = weights[:, :, tokens.index("bland")]
            return (row[..., tokens.index("soup")] > row[..., tokens.index("chef")]).sum()

        assert more("chef") == 54 and more("turned") == 51

    def test_nearness_counts_for_head_4(self, data):
        def soup(name):
            tokens = data[name].tokens
            return data[name].weights[0, 4, tokens.index("bland"), tokens.index("soup")]

        assert soup("control") < 0.3 * min(soup("chef"), soup("turned"))


def test_the_parameters_add_up_by_hand():
    d = 384
    layer = 4 * (d * d + d) + (2 * 4 * d * d + 4 * d + d) + 4 * d
    assert d == model.WIDTH and model.LAYERS == 6
    used = (30_522 + 512) * d + 2 * d + 6 * layer
    assert used == 22_564_608
    assert used + 2 * d + (d * d + d) == 22_713_216  # the file: segment rows, pooler


def test_the_row_of_the_segment_is_in_the_table_of_positions():
    """What is added at every place; the second segment's row and the pooler are left out."""
    rng = np.random.default_rng(0)
    tensors = {
        f"embeddings.{name}": rng.normal(size=shape)
        for name, shape in {
            "word_embeddings.weight": (5, 4),
            "position_embeddings.weight": (3, 4),
            "token_type_embeddings.weight": (2, 4),
            "LayerNorm.weight": (4,),
            "LayerNorm.bias": (4,),
        }.items()
    }
    for number in range(model.LAYERS):
        for part in model._PARTS:
            start = f"encoder.layer.{number}.{part}"
            tensors |= {f"{start}.weight": np.eye(4), f"{start}.bias": np.zeros(4)}
    params = model.rename_tensors(tensors, float)
    added = params["P"] - tensors["embeddings.position_embeddings.weight"]
    np.testing.assert_allclose(
        added, np.tile(tensors["embeddings.token_type_embeddings.weight"][0], (3, 1))
    )
