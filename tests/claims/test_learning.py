"""What the chapter on learning says of its experiments, measured here with other seeds."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from attn_lib import attention, self_attention
from attn_lib.backward import attention_backward, check_gradient, loss_and_gradients, query_jacobian
from attn_lib.model import transformer
from attn_lib.training import (
    RECIPES,
    TRANSFORMER,
    every_period,
    head_scores,
    held_out,
    load_checkpoints,
    period_of,
    previous_token_score,
    score,
    start,
    train,
)

DATA = Path(__file__).parents[2] / "book" / "data"
REVERSAL = RECIPES["reversal"].config
BATCHES = held_out("reversal", 2, seed=1)
MIRROR = np.eye(12, dtype=np.float32)[::-1]


@pytest.fixture(scope="module")
def stored():
    return load_checkpoints(DATA / "induction.npz")


def right(params, *, looking_right=False):
    edit = (lambda layer, A: np.broadcast_to(MIRROR, A.shape)) if looking_right else None
    return score(params, "reversal", BATCHES, edit=edit).accuracy


def mirror_weight(params):
    A = transformer(params, BATCHES[0].tokens, REVERSAL).weights[0]
    return A[..., np.arange(12), 11 - np.arange(12)].mean()


def reversal(steps, *, seed=1, frozen=(), **factors):
    run = start("reversal", seed, frozen=frozen)
    for name, factor in factors.items():
        run.params[f"0.{name}"] = run.params[f"0.{name}"] * np.float32(factor)
    return train(run, steps, progress=False).params


def without(*names):
    return ["E", "P", *names]


class TestContentAndMatching:
    def test_all_free(self):
        params = reversal(100, frozen=without())
        assert right(params) > 0.98 and mirror_weight(params) > 0.85

    def test_content_alone_is_learned_and_looks_in_the_wrong_places(self):
        params = reversal(200, frozen=without("0.W_Q", "0.W_K"))
        assert right(params) < 0.2 and right(params, looking_right=True) > 0.9

    def test_matching_alone_learns_a_little_and_can_do_nothing_with_it(self):
        """In most runs more weight than an even share, and answers that hardly gain."""
        found = []
        for seed in (0, 1, 2, 5, 6, 7):
            run = start("reversal", seed, frozen=without("0.W_V", "0.W_O", "U"))
            params = train(run, 200, progress=False).params
            found.append([mirror_weight(params), right(params), right(params, looking_right=True)])
        weights, answers, helped = np.transpose(found)
        assert np.mean(weights > 1 / 12) > 0.5 and weights.mean() > 0.1
        assert answers.max() < 0.1 and helped.max() < 0.1

    @pytest.mark.parametrize("name", ["0.W_V", "U"])
    def test_one_map_on_the_way_to_the_logits_is_enough(self, name):
        assert right(reversal(200, frozen=without(name))) > 0.98

    def test_they_rise_together(self):
        run = start("reversal", 1)
        train(run, 40, keep=range(10, 41, 10), progress=False)
        matching = [mirror_weight(params) for params in run.kept.values()]
        content = [right(params, looking_right=True) for params in run.kept.values()]
        assert (np.diff(matching) > 0).all() and (np.diff(content) > 0).all()
        assert 0.3 < matching[-1] < 0.8 and 0.4 < content[-1] < 0.95
        assert right(run.params) < content[-1]

    def test_weights_move_before_the_loss(self):
        """In windows of 5 steps mostly before it, and in windows of 5 or 10 never after it."""
        ahead = []
        for seed in (1, 2, 3, 4, 5):
            run = train(start("reversal", seed), 100, keep=range(0, 101, 5), progress=False)
            matching = np.array([mirror_weight(params) for params in run.kept.values()])
            losses = np.array([score(p, "reversal", BATCHES).loss for p in run.kept.values()])
            for stride in (1, 2):
                grown = np.diff(matching[::stride]).argmax()
                fallen = np.diff(losses[::stride]).argmin()
                ahead.append((fallen - grown) * stride)
        assert min(ahead) >= 0 and np.mean(np.array(ahead[::2]) > 0) > 0.5

    def test_equal_columns_stay_equal_and_are_too_few(self):
        run = start("reversal", 1)
        for name in ("0.W_Q", "0.W_K"):
            W = run.params[name]
            run.params[name] = np.tile(W[:, :1], (1, W.shape[1]))
        params = train(run, 200, progress=False).params
        for name in ("0.W_Q", "0.W_K"):
            np.testing.assert_allclose(params[name], np.tile(params[name][:, :1], 32), atol=1e-5)
        assert right(params) < 0.5

    def test_two_zero_maps_stay_and_values_learn(self):
        params = reversal(200, W_Q=0, W_K=0)
        assert not params["0.W_Q"].any() and not params["0.W_K"].any()
        assert mirror_weight(params) == pytest.approx(1 / 12, abs=1e-6)
        assert right(params) < 0.3 and right(params, looking_right=True) > 0.95

    @pytest.mark.parametrize("zero", ["W_Q", "W_K", "W_V"])
    def test_one_zero_map_does_no_harm(self, zero):
        assert right(reversal(100, **{zero: 0})) > 0.98

    def test_a_product_of_two_zeros_is_a_trap_behind_too(self):
        params = reversal(60, W_V=0, W_O=0)
        assert not params["0.W_V"].any() and not params["0.W_O"].any()


class TestAStartThatStalls:
    @pytest.mark.parametrize("seed", [1, 2])
    def test_decided_rows_stall_and_get_out(self, seed):
        run = start("reversal", seed)
        for name in ("0.W_Q", "0.W_K"):
            run.params[name] = run.params[name] * np.float32(8)
        head = transformer(run.params, BATCHES[0].tokens, REVERSAL).blocks[0].attention
        sizes = np.linalg.norm(query_jacobian(head.weights, head.K, head.V), axis=(-2, -1))
        assert (head.weights.max(axis=-1) > 0.999).mean() > 0.8
        assert np.median(sizes) < 1e-6 < 0.5 < sizes.mean()
        assert right(train(run, 100, progress=False).params) < 0.2
        assert 0.5 < right(train(run, 300, progress=False).params) < 0.95

    @pytest.mark.parametrize("seed", [1, 3])
    def test_decided_rows_and_large_entries_each_slow_and_together_stall(self, seed):
        """All four combinations; the same scores or 64 times as large, the entries ×8 or not."""

        def scaled(params, factor):
            names = ("0.W_Q", "0.W_K")
            return params | {name: params[name] * np.float32(factor) for name in names}

        def answers(entries, factor):
            def logits(params, batch, config):
                return transformer(scaled(params, factor), batch.tokens, config).logits

            def gradients(params, batch, config):
                loss, grads = loss_and_gradients(
                    scaled(params, factor), batch.tokens, batch.targets, config
                )
                return loss, scaled(grads, factor)

            model = TRANSFORMER._replace(logits=logits, loss_and_gradients=gradients)
            recipe = replace(RECIPES["reversal"], model=model)
            run = start(recipe, seed)
            run.params = scaled(run.params, entries)
            return score(train(run, 100, progress=False).params, recipe, BATCHES).accuracy

        neither, entries, rows, both = (answers(*x) for x in ((1, 1), (8, 1 / 8), (1, 8), (8, 1)))
        assert neither > 0.98 > 0.85 > entries > rows > 0.2 > both
        assert neither - both > max(neither - entries, neither - rows) + 0.1

    @pytest.mark.parametrize("factors", [(8, 1 / 8), (1 / 8, 8)])
    def test_one_large_and_one_small_map_are_no_control(self, factors):
        """The scores begin the same, and the first step moves them several times as far."""

        def scores(params):
            head = transformer(params, BATCHES[0].tokens, REVERSAL).blocks[0].attention
            return head.Q @ head.K.mT

        moved, begun = [], []
        for change in ((1, 1), factors):
            names = dict(zip(("W_Q", "W_K"), change, strict=True))
            begun.append(scores(reversal(0, **names)))
            moved.append(np.abs(scores(reversal(1, **names)) - begun[-1]).mean())
        np.testing.assert_allclose(*begun, atol=1e-3)
        assert moved[1] > 3 * moved[0]

    def test_a_rate_too_high_is_seen_against_the_start(self):
        losses = {}
        for rate in (1e-2, 1.0):
            recipe = replace(RECIPES["reversal"], rate=rate)
            losses[rate] = train(start(recipe, 1), 20, progress=False).losses
            assert losses[rate][0] > np.log(26) + 0.5  # the start is worse than a guess
        assert max(losses[1e-2][1:]) < losses[1e-2][0] < max(losses[1.0][1:]) / 10

    def test_the_tables_help(self):
        free, frozen = (reversal(200, frozen=names, W_Q=8, W_K=8) for names in ((), ("E", "P")))
        assert right(frozen) < right(free) - 0.1


class TestThePull:
    """From the loss to the output of a layer: with the error, through the read-out and W_O."""

    def test_by_differences_of_the_whole_loss(self):
        rng = np.random.default_rng(2)
        X, O, W_O, U = (rng.normal(size=shape) for shape in ((3, 4), (3, 2), (2, 4), (4, 5)))
        targets = np.array([1, 4, 0])

        def loss(O, X):
            logits = (X + O @ W_O) @ U
            chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
            return -np.log(chances[np.arange(3), targets]).mean()

        logits = (X + O @ W_O) @ U
        error = (
            np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True) - np.eye(5)[targets]
        ) / 3
        assert check_gradient(lambda O: loss(O, X), O, error @ U.T @ W_O.T).ok
        assert check_gradient(lambda X: loss(O, X), X, error @ U.T).ok
        assert not check_gradient(lambda O: loss(O, X), O, -error @ U.T @ W_O.T).ok


class TestGradients:
    def inputs(self, **change):
        rng = np.random.default_rng(5)
        shapes = {"dO": (4, 3), "Q": (4, 5), "K": (6, 5), "V": (6, 3)}
        return {name: rng.normal(size=shape) for name, shape in shapes.items()} | change

    def backward(self, dO, Q, K, V):
        return attention_backward(dO, Q, K, V, weights=attention(Q, K, V).weights)

    def test_equal_values_teach_queries_and_keys_nothing(self):
        dQ, dK, dV = self.backward(**self.inputs(V=np.ones((6, 3))))
        assert np.abs(dQ).max() < 1e-15 and np.abs(dK).max() < 1e-15 < np.abs(dV).max()

    def test_zero_queries_teach_keys_nothing(self):
        dQ, dK, dV = self.backward(**self.inputs(Q=np.zeros((4, 5))))
        assert not dK.any() and np.abs(dQ).max() > 0.01
        np.testing.assert_allclose(dV, np.tile(self.inputs()["dO"].sum(axis=0) / 6, (6, 1)))

    def test_a_bias_on_the_keys_gets_no_gradient(self):
        dQ, dK, _ = self.backward(**self.inputs())
        assert np.abs(dK.sum(axis=0)).max() < 1e-14 < 0.01 < np.abs(dQ.sum(axis=0)).max()

    def test_what_a_query_can_hear_is_bounded(self):
        rng = np.random.default_rng(0)
        for sharpness in (0.1, 1, 5, 20):
            Q, K = sharpness * rng.normal(size=(50, 4)), rng.normal(size=(7, 4))
            V = rng.normal(size=(7, 3))
            A = attention(Q, K, V).weights
            norms = np.linalg.norm(query_jacobian(A, K, V), ord=2, axis=(-2, -1))
            spans = [np.linalg.norm(M[:, None] - M, axis=-1).max() for M in (V, K)]
            bound = np.prod(spans) / 2
            assert (norms <= bound / 4 + 1e-12).all()
            assert (norms <= bound * (1 - A.max(axis=-1)) + 1e-12).all()

    def test_a_check_at_a_special_point_proves_nothing(self):
        given = self.inputs(V=np.ones((6, 3)))
        dQ = self.backward(**given)[0]

        def loss(Q):
            return (given["dO"] * attention(Q, given["K"], given["V"]).output).sum()

        assert check_gradient(loss, given["Q"], -7 * dQ).ok

    def test_float32_is_too_coarse(self):
        rng = np.random.default_rng(3)
        X, W = rng.normal(size=(5, 4)), rng.normal(size=(3, 4, 4)) / 2

        def loss(x, kind):
            return kind(self_attention(x.astype(kind), *W.astype(kind)).output.sum())

        exact = np.zeros_like(X)
        for at in np.ndindex(X.shape):
            sides = []
            for step in (1e-5, -1e-5):
                moved = X.copy()
                moved[at] += step
                sides.append(loss(moved, np.float64))
            exact[at] = (sides[0] - sides[1]) / 2e-5
        assert check_gradient(lambda x: loss(x, np.float64), X, exact).ok
        assert check_gradient(lambda x: loss(x, np.float32), X, exact).error > 1e-4


PERIODS = every_period("induction", [5, 8, 11, 14], seed=1)


def two_scores(params):
    """Give the previous-token score of layer 1 and the induction score of layer 2."""
    scores = head_scores(params, RECIPES["induction"].config, PERIODS)
    return scores.previous[0, 0], scores.induction[1, 0]


def half_way(steps, values):
    """Find the step at which a curve passes half its way, from its first value to its last."""
    level = (values[0] + values[-1]) / 2
    after = int(np.argmax(values >= level))
    return np.interp(level, values[after - 1 : after + 1], steps[after - 1 : after + 1])


def lead(steps, previous, induction):
    """How many steps the previous-token score is ahead."""
    return half_way(steps, induction) - half_way(steps, previous)


@pytest.fixture(scope="module")
def free():
    run = start("induction", seed=2)
    return train(run, 400, keep=[*range(0, 401, 25)], progress=False).kept


class TestInduction:
    def held(self, layer, until):
        run = start("induction", seed=2, frozen=[f"{layer}.W_Q", f"{layer}.W_K"])
        return train(run, until, keep=[300], progress=False)

    def test_the_previous_token_head_leads_in_both_stored_runs(self, stored):
        two = load_checkpoints(DATA / "induction-two-heads.npz").curves
        one, early = stored.curves, stored.curves["step"] <= 600
        steps = one["step"][early]
        ahead = [
            lead(steps, x["previous"][early, 0].max(axis=1), x["induction"][early, 1].max(axis=1))
            for x in (one, two)
        ]
        assert 5 < ahead[0] < 25 < ahead[1] < 75

    def test_with_another_seed_the_lead_is_short(self, free):
        scores = np.array([two_scores(params) for params in free.values()])
        assert 0 < lead(np.array([*free]), *scores.T) < 40

    def test_the_first_rise_of_the_induction_score_is_not_the_mechanism(self, free):
        """It remains if layer 1 is cut off; the score of the finished head does not."""
        cut = {step: free[step] | {"0.W_O": 0 * free[step]["0.W_O"]} for step in (0, 125, 400)}
        (before, start_at), (previous, early) = two_scores(free[0]), two_scores(free[125])
        assert previous < before + 0.02 and early > start_at + 0.05
        assert two_scores(cut[125])[1] > 0.85 * early
        assert two_scores(free[400])[1] > 0.9 and two_scores(cut[400])[1] < 0.3

    def test_the_first_rise_is_a_preference_for_what_has_not_come_again(self, free):
        """Weight of layer 2 on those places of the first copy, against an even row's."""
        ahead = {}
        for step in (0, 125):
            found = []
            for batch in PERIODS:
                L, n = period_of(batch), batch.tokens.shape[1]
                A = transformer(free[step], batch.tokens, RECIPES["induction"].config).weights[1]
                for i in range(L, n):
                    places = slice(i - L + 1, L)
                    found.append(A[:, 0, i, places].sum(axis=-1).mean() - (2 * L - i - 1) / (i + 1))
            ahead[step] = np.mean(found)
        assert ahead[125] > 0.05 > abs(ahead[0]) + 0.02

    def test_each_half_is_held_back_by_the_other(self, free):
        previous, induction = two_scores(free[300])
        held = self.held(1, 300).kept[300]
        assert two_scores(held)[0] < 0.4 < 0.8 < previous
        run = self.held(0, 500)
        assert two_scores(run.kept[300])[1] < 0.4 < 0.75 < induction
        later = two_scores(run.params)  # the tables turn the frozen layer, in the end
        assert later[1] > two_scores(run.kept[300])[1] + 0.2 and later[0] > 0.5

    def test_both_heads_form_in_one_window(self, stored):
        steps, curves = stored.curves["step"], stored.curves
        for name, layer in (("previous", 0), ("induction", 1)):
            values = curves[name][:, layer, 0]
            assert values[steps == 200] < 0.4 < 0.8 < values[steps == 300]
        right = curves["accuracy"]
        assert right[steps == 200] < 0.2 and right[steps == 600] > 0.95

    def test_layer_1_is_sharp_at_places_that_stand_in_some_first_copy(self, stored):
        batch = every_period("induction", [16], seed=1)[0]
        A = transformer(stored.final, batch.tokens, stored.recipe.config).weights[0]
        assert previous_token_score(A, range(1, 16))[0] > 0.95
        assert previous_token_score(A, range(16, 31))[0] < 0.3

    def test_the_slope_lies_above_a_guess_among_the_tokens_seen(self, stored):
        seen = np.mean([np.log(period_of(batch)) for batch in every_period("induction")])
        assert stored.losses[150:200].mean() > seen + 1

    def test_gradients_grow_along_the_slope(self, stored):
        batch = every_period("induction", [8])[0]
        lengths = {}
        for step in (200, 250, 2500):
            _, grads = loss_and_gradients(
                stored.params[step],
                batch.tokens,
                batch.targets,
                stored.recipe.config,
                counted=batch.counted,
            )
            lengths[step] = np.array([np.linalg.norm(grads[f"{i}.W_Q"]) for i in range(2)])
        assert (lengths[250] > lengths[200]).all() and (lengths[2500] < lengths[250]).all()

    def test_given_one_half_the_other_does_not_wait(self, stored):
        batches = every_period("induction", [5, 10, 15])
        found = {}
        for gift in (["E", "P"], ["E", "P", "0.W_Q", "0.W_K", "0.W_V", "0.W_O"]):
            run = start("induction", seed=3)
            run.params = run.params | {name: stored.final[name] for name in gift}
            train(run, 200, progress=False)
            found[len(gift)] = score(run.params, "induction", batches).accuracy
        assert found[2] < 0.3 < 0.9 < found[6]
