"""What chapter 4 says, measured apart from its cells."""

import itertools

import numpy as np
import pytest

from attn_lib import attention, causal_mask, self_attention, softmax
from attn_lib.model import Config, init_params, transformer
from attn_lib.positions import equivariance_gap
from attn_lib.training import Batch, Recipe, start, train

ORDERS = [np.array(order) for order in itertools.permutations(range(4))]


@pytest.fixture
def draw():
    rng = np.random.default_rng(3)
    return rng.normal(size=(4, 5)), rng.normal(size=(3, 5, 5)) / np.sqrt(5)


def test_softmax_moves_with_its_scores_a_forbidden_pair_too(draw):
    S = draw[0][:, :4].copy()
    S[1, 2] = S[3, 0] = -np.inf
    for rho in ORDERS:
        np.testing.assert_allclose(softmax(S[rho][:, rho]), softmax(S)[rho][:, rho], atol=1e-15)


def test_a_layer_is_equivariant_for_every_order_and_not_invariant(draw):
    X, maps = draw
    for rho in ORDERS:
        assert equivariance_gap(lambda X: self_attention(X, *maps), X, rho) < 1e-13
    still = self_attention(X, *maps).output
    assert np.abs(self_attention(X[::-1], *maps).output - still).max() > 0.1


def test_a_deep_model_gives_six_orders_one_pooled_answer_unless_it_has_positions():
    config = Config(vocabulary=3, context=3, d=16, layers=4, heads=2, d_ff=32, causal=False)
    params = init_params(config, dtype=float)

    def answers(params):
        orders = list(itertools.permutations(range(3)))
        return transformer(params, orders, config).logits.mean(axis=-2)

    blind = answers(params | {"P": np.zeros_like(params["P"])})
    assert np.ptp(blind, axis=0).max() < 1e-13
    assert np.ptp(answers(params), axis=0).max() > 0.1


def test_maps_of_each_token_keep_it_only_if_they_are_the_same_map(draw):
    X, maps = draw
    rows = np.random.default_rng(8).normal(size=X.shape)
    rho = np.array([1, 2, 3, 0])

    def stack(each):
        return lambda X: self_attention(each(X), *maps)

    assert equivariance_gap(stack(lambda X: np.tanh(X + rows[0])), X, rho) < 1e-13
    assert equivariance_gap(stack(lambda X: X + rows), X, rho) > 0.1
    means = [stack(lambda X: X + rows)(Y).output.mean(axis=0) for Y in (X, X[rho])]
    assert np.abs(np.subtract(*means)).max() > 0.01


def test_a_fixed_query_and_equal_tokens(draw):
    X, maps = draw
    X = np.vstack([X, X[1]])
    still = self_attention(X, *maps).output
    np.testing.assert_allclose(still[1], still[4], atol=1e-14)
    moved = self_attention(X[[0, 3, 2, 1, 4]], *maps).output
    np.testing.assert_allclose(moved[[0, 2, 4]], still[[0, 2, 4]], atol=1e-14)


@pytest.mark.parametrize("copies", [2, 3])
def test_doubling_every_token_changes_nothing_and_doubling_one_does(draw, copies):
    X, maps = draw

    def stack(X):
        for _ in range(2):
            X = np.tanh(X + self_attention(X, *maps).output)
        return X

    np.testing.assert_allclose(stack(np.repeat(X, copies, axis=0))[::copies], stack(X), atol=1e-13)
    assert np.abs(stack(np.vstack([X, X[0]]))[:4] - stack(X)).max() > 1e-3


def test_a_start_token_counts_the_others():
    for m in (1, 7, 100):
        values = np.zeros((1 + m, 1))
        values[0] = 1
        share = attention(np.zeros((1, 2)), np.ones((1 + m, 2)), values).output[0, 0]
        assert 1 / share - 1 == pytest.approx(m)


def test_one_causal_layer_cannot_order_its_past_and_two_can(draw):
    X, maps = draw
    mask = causal_mask(4)

    def stack(X, depth, mask=mask):
        for _ in range(depth):
            X = X + self_attention(X, *maps, mask=mask).output
        return X

    past_moved = X[[2, 0, 1, 3]]
    assert np.abs(stack(past_moved, 1)[3] - stack(X, 1)[3]).max() < 1e-14
    assert np.abs(stack(past_moved, 2)[3] - stack(X, 2)[3]).max() > 0.01
    rho = np.array([2, 0, 3, 1])
    moved = stack(X[rho], 3, mask[rho][:, rho])
    np.testing.assert_allclose(moved, stack(X, 3)[rho], atol=1e-12)


def test_only_two_kinds_of_linear_mixing_do_not_see_the_order():
    P = [np.eye(4)[rho] for rho in ORDERS]
    commute = np.vstack([np.kron(M, np.eye(4)) - np.kron(np.eye(4), M.T) for M in P])
    assert 16 - np.linalg.matrix_rank(commute) == 2


def learned(draw, steps, *, seed, vocabulary=10, positions=False, **sizes):
    """Train a small model from another start than the chapter's; give its answers."""
    config = Config(vocabulary=vocabulary, d=16, norm="none", **sizes)
    run = start(Recipe("task", draw, config, steps, 3e-3), seed, frozen=() if positions else ("P",))
    if not positions:
        run.params = run.params | {"P": np.zeros_like(run.params["P"])}
    params = train(run, progress=False).params
    return params, lambda tokens: transformer(params, tokens, config).logits.argmax(axis=-1)


def bags_of_eight(rng, size=64, *, even=False):
    top = rng.integers(10, size=(size, 1)) if even else np.full((size, 1), 9)
    bags = rng.integers(top + 1, size=(size, 8))
    if even:
        np.put_along_axis(bags, rng.integers(8, size=(size, 1)), top, axis=1)
    return Batch(bags, np.repeat(bags.max(axis=1, keepdims=True), 8, axis=1), np.ones(bags.shape))


@pytest.fixture(scope="module", params=[1, 2])
def largest(request):
    """Scores and answers after training on random digits, and on each digit largest alike."""
    found = []
    for even in (False, True):
        params, answer = learned(
            lambda rng, size=64, even=even: bags_of_eight(rng, size, even=even),
            400, seed=request.param, context=8, causal=False,
        )  # fmt: skip
        Q, K = (params["E"] @ params[f"0.W_{name}"] for name in "QK")
        found.append((Q @ K.T, answer))
    return found


def out_of_order(S):
    """Count pairs of digits that decide something for a query and have the smaller one higher."""
    decide = ((q, low, high) for q in range(9) for high in range(q + 1, 10) for low in range(high))
    return sum(S[q, low] > S[q, high] for q, low, high in decide)


def test_the_largest_of_eight_orders_the_digits_that_its_data_ask_for(largest):
    (S, answer), (S_even, _) = largest
    fresh = bags_of_eight(np.random.default_rng(77), 2000)
    assert (answer(fresh.tokens) == fresh.targets).mean() > 0.99
    assert (S[:8].argmax(axis=1) == 9).all()
    assert (np.diff(S[:8, 5:]) > 0).mean() > 0.9  # from 5 to 9 they rise
    assert not (np.diff(S) > 0).all(axis=1).any()  # and in no row from 0 to 9
    assert out_of_order(S) >= 5 and out_of_order(S_even) == 0


def test_its_errors_lie_where_the_data_hardly_look(largest):
    small = np.random.default_rng(78).integers(5, size=(2000, 8))
    right = [(f(small) == small.max(axis=1, keepdims=True)).mean() for _, f in largest]
    assert right[0] < 0.95 and right[1] > 0.99


def which_came_first(rng, size=64):
    """A one and a zero among fillers, in both orders; the last place asks which came first."""
    bags = rng.integers(3, 10, size=(size // 2, 7))
    bags[:, 6] = 2
    at = np.argsort(rng.random((size // 2, 6)), axis=1)[:, :2]
    both = [bags.copy(), bags.copy()]
    for tokens, pair in zip(both, ([0, 1], [1, 0]), strict=True):
        np.put_along_axis(tokens, at, pair, axis=1)
    targets, counted = np.zeros((2, size, 7))
    zero_first = at[:, 0] < at[:, 1]
    targets[:, 6] = np.concatenate([~zero_first, zero_first])
    counted[:, 6] = 1
    return Batch(np.concatenate(both), targets.astype(int), counted)


@pytest.mark.parametrize(
    ("sizes", "lowest", "highest"),
    [
        ({"layers": 2, "causal": False}, 0, 0.5),
        ({"layers": 1, "causal": True}, 0, 0.5),
        ({"layers": 2, "causal": True}, 0.95, 1),
        ({"layers": 2, "causal": False, "positions": True}, 0.95, 1),
    ],
)
def test_which_came_first_takes_positions_or_two_causal_layers(sizes, lowest, highest):
    _, answer = learned(which_came_first, 200, seed=1, context=7, **sizes)
    fresh = which_came_first(np.random.default_rng(79), 1000)
    assert lowest <= (answer(fresh.tokens) == fresh.targets)[:, 6].mean() <= highest


def test_what_two_exchanged_tokens_change_grows_with_depth_as_a_part_of_the_output():
    mask, swap, parts = causal_mask(8), [1, 0, *range(2, 8)], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        still = rng.normal(size=(8, 16))
        moved, part = still[swap], []
        for _ in range(5):
            W = rng.normal(size=(3, 16, 16)) / 4
            still, moved = (Y + self_attention(Y, *W, mask=mask).output for Y in (still, moved))
            part.append(np.linalg.norm(moved[swap] - still, axis=1) / np.linalg.norm(still, axis=1))
        parts.append(part)
    assert np.max(np.array(parts)[:, 0, 2:]) < 1e-12
    assert np.min(np.array(parts)[:, 1:]) > 1e-4
    assert (np.diff(np.median(parts, axis=0)[:, -1]) > 0).all()
