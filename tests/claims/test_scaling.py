"""What chapter 3 says of scores, gradients and learning, measured here on other draws."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from attn_lib import attention, attention_scores, attention_weights, softmax
from attn_lib.backward import attention_backward, softmax_backward
from attn_lib.training import (
    RECIPES,
    TRANSFORMER,
    Model,
    Moments,
    adam_step,
    held_out,
    score,
    start,
    train,
)

BOOK = Path(__file__).parents[2] / "book"
PAGE = "\n".join(
    (BOOK / name).read_text(encoding="utf-8") for name in ("scaling.md", "scores-further.md")
)


def page(*names):
    """Functions of the page's own cells, by name."""
    cells = re.findall(
        r"^```\{code-cell\} ipython3\n(?:---\n.*?^---\n)?(.*?)^```$", PAGE, re.M | re.S
    )
    found = {}
    for cell in cells:
        for node in ast.parse(re.sub(r"^:tags:.*$", "", cell, flags=re.M)).body:
            if isinstance(node, ast.FunctionDef) and node.name not in found:
                found[node.name] = ast.unparse(node)
    space = {"np": np, "softmax": softmax, "softmax_backward": softmax_backward}
    space |= {"rates": np.logspace(-3, 2, 11), "SCALED": TRANSFORMER}
    for name in names:
        exec(found[name], space)
    return [space[name] for name in names]


class TestScoresOfManyKinds:
    rng = np.random.default_rng(20)

    @pytest.mark.parametrize("d_k", [4, 64])
    @pytest.mark.parametrize(
        "draw",
        [
            lambda rng, size: rng.choice([-1.0, 1.0], size=size),
            lambda rng, size: rng.uniform(-np.sqrt(3), np.sqrt(3), size=size),
            lambda rng, size: rng.exponential(size=size) - 1,
        ],
        ids=["coins", "uniform", "lopsided"],
    )
    def test_no_normal_distribution_is_needed(self, draw, d_k):
        q, k = (draw(self.rng, (40_000, d_k)) for _ in range(2))
        assert (q * k).sum(axis=1).var() == pytest.approx(d_k, rel=0.08)

    def test_uncorrelated_is_not_enough(self):
        q = self.rng.normal(size=(40_000, 16))
        k = q * self.rng.choice([-1, 1], size=q.shape)
        assert abs(np.mean(q * k)) < 0.01 and k.var() == pytest.approx(1, rel=0.02)
        assert (q * k).sum(axis=1).var() == pytest.approx(3 * 16, rel=0.05)

    def test_over_random_weights_a_token_may_meet_itself(self):
        d, d_k = 8, 16
        x = self.rng.normal(size=d)
        W, U = self.rng.normal(size=(2, 20_000, d, d_k)) / np.sqrt(d)
        s = ((x @ W) * (x @ U)).sum(axis=1)
        assert s.var() == pytest.approx(d_k * (x @ x) ** 2 / d**2, rel=0.05)
        assert ((x @ W) ** 2).sum(axis=1).mean() == pytest.approx(d_k * x @ x / d, rel=0.02)

    @pytest.mark.parametrize(("mu_q", "mu_k", "whole", "row"), [(0, 1, 2, 1), (1, 0, 2, 2)])
    def test_a_mean_of_the_keys_is_a_shift_of_the_row(self, mu_q, mu_k, whole, row):
        q = mu_q + self.rng.normal(size=(4000, 1, 32))
        K = mu_k + self.rng.normal(size=(4000, 8, 32))
        S = attention_scores(q, K)[:, 0]
        assert S.var() == pytest.approx(whole, rel=0.08)
        assert S.var(axis=1, ddof=1).mean() == pytest.approx(row, rel=0.05)
        np.testing.assert_allclose(
            attention_weights(S), attention_weights(attention_scores(q, K - mu_k)[:, 0]), atol=1e-9
        )

    def test_uniform_weights_on_one_over_root_d_give_a_ninth(self):
        X = self.rng.normal(size=(400, 256))
        W_Q, W_K = self.rng.uniform(-1, 1, size=(2, 256, 64)) / 16
        assert attention_scores(X @ W_Q, X @ W_K).var() == pytest.approx(1 / 9, rel=0.08)

    def test_scores_of_a_row_are_uncorrelated_and_not_independent(self):
        q, K = self.rng.normal(size=(40_000, 1, 4)), self.rng.normal(size=(40_000, 2, 4))
        s, t = attention_scores(q, K)[:, 0].T
        assert abs(np.corrcoef(s, t)[0, 1]) < 0.03
        assert np.corrcoef(s**2, t**2)[0, 1] > 0.1


class TestTheJacobian:
    @pytest.mark.parametrize("n", [2, 3, 8])
    @pytest.mark.parametrize("spread", [0.1, 1, 5, 15])
    def test_its_size_lies_between_the_bounds(self, n, spread):
        for s in spread * np.random.default_rng(n).normal(size=(50, n)):
            a, (second, first) = softmax(s), np.sort(s)[-2:]
            lead, rest = first - second, softmax(s - first)[np.argsort(s)[:-1]].sum()
            size = np.linalg.norm(np.diag(a) - np.outer(a, a), 2)
            assert size <= 0.5 + 1e-12
            assert a.max() * rest <= size * (1 + 1e-9) + 1e-15 and size <= 2 * rest + 1e-12
            assert (
                np.exp(-lead) / 2 <= rest * (1 + 1e-9) and rest <= (n - 1) * np.exp(-lead) + 1e-15
            )

    def test_two_tied_winners_do_not_saturate_and_one_does(self):
        for s, size in ([30.0, 30.0, 0.0], 0.5), ([30.0, 0.0, 0.0], 0.0):
            a = softmax(np.array(s))
            found = np.linalg.norm(np.diag(a) - np.outer(a, a), 2)
            assert found == pytest.approx(size, abs=1e-9)

    def test_a_soft_row_of_n_keys_has_one_over_n(self):
        a = np.full(5, 1 / 5)
        assert np.linalg.norm(np.diag(a) - np.outer(a, a), 2) == pytest.approx(1 / 5)

    @pytest.mark.parametrize(
        ("kind", "bits"), [(np.float16, 11), (np.float32, 24), (np.float64, 53)]
    )
    def test_where_a_float_gives_up(self, kind, bits):
        (silent_from,) = page("silent_from")
        assert silent_from(kind) == pytest.approx(bits * np.log(2), abs=0.02)


class TestMedianAndMean:
    @staticmethod
    def lengths(d_k, scale):
        rng = np.random.default_rng([d_k, 7])
        q, g = rng.normal(size=(1500, 1, d_k)), rng.normal(size=(1500, 1, 4))
        K, V = rng.normal(size=(1500, 8, d_k)), rng.normal(size=(1500, 8, 4))
        g /= np.linalg.norm(g, axis=-1, keepdims=True)
        A = attention_weights(attention_scores(q, K, scale=scale))
        dQ = attention_backward(g, q, K, V, weights=A, scale=scale)[0]
        return np.linalg.norm(dQ[:, 0], axis=1)

    def test_scaled_neither_depends_on_the_width(self):
        for d_k in (16, 64, 256):
            L = self.lengths(d_k, None)
            assert np.mean(L) == pytest.approx(0.33, abs=0.02)
            assert np.median(L) == pytest.approx(0.30, abs=0.02)

    def test_raw_the_median_collapses_and_the_mean_does_not(self):
        narrow, wide = self.lengths(16, 1.0), self.lengths(256, 1.0)
        assert np.median(narrow) > 0.4 and np.median(wide) < 0.05
        assert 0.9 * np.mean(narrow) < np.mean(wide) < 1.5 * np.mean(narrow)
        assert np.sort(wide)[-150:].sum() > 0.6 * wide.sum()  # a tenth carries most of it

    def test_two_keys_by_integration(self):
        z = np.linspace(-9, 9, 400_001)
        density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        means, medians = [], []
        for kappa in (0.5, 1, 2, 8, 32, 128):
            a = 1 / (1 + np.exp(-np.clip(kappa * np.abs(z), 0, 700)))
            G = kappa * a * (1 - a)
            means.append(np.trapezoid(G * density, z))
            at = kappa * 0.6744897501960817
            medians.append(kappa * np.exp(-at) / (1 + np.exp(-at)) ** 2)
        assert (np.diff(means) > 0).all() and means[-1] < 1 / np.sqrt(2 * np.pi)
        assert means[-1] == pytest.approx(1 / np.sqrt(2 * np.pi), rel=1e-3)
        assert medians[-1] < 1e-30

    def test_two_keys_by_drawing(self):
        rng, K = np.random.default_rng(3), np.zeros((2, 64))
        K[0, 0] = kappa = 16.0
        q, v = rng.normal(size=(200_000, 64)), np.array([[3.0], [1.0]])
        A = attention(q, K, v, scale=1.0).weights
        dQ = attention_backward(np.ones((len(q), 1)), q, K, v, weights=A, scale=1.0)[0]
        G = np.linalg.norm(dQ, axis=1) / 2
        assert G.mean() == pytest.approx(1 / np.sqrt(2 * np.pi), rel=0.05)
        assert np.median(G) == pytest.approx(kappa * np.exp(-0.6745 * kappa), rel=0.1)


class TestWhatLeavingOutTheFactorIs:
    rng = np.random.default_rng(5)
    d_k = 9
    q, K = rng.normal(size=(1, 9)), rng.normal(size=(5, 9))
    V, wanted = rng.normal(size=(5, 3)), rng.normal(size=(1, 3))

    def descend(self, q, rate, scale, steps=30):
        outputs = []
        for _ in range(steps):
            result = attention(q, self.K, self.V, scale=scale)
            outputs.append(result.output)
            dO = np.tanh(result.output - self.wanted)  # some loss or other
            dQ = attention_backward(dO, q, self.K, self.V, weights=result.weights, scale=scale)[0]
            q = q - rate * dQ
        return np.array(outputs)

    def test_another_start_and_another_rate(self):
        raw = self.descend(self.q, 0.02, 1.0)
        scaled = self.descend(3 * self.q, 9 * 0.02, None)
        np.testing.assert_allclose(scaled, raw, atol=1e-10)
        assert np.abs(raw[-1] - raw[0]).max() > 0.05

    @pytest.mark.parametrize(("stretch", "faster"), [(1, 9), (3, 1), (3, 3), (9, 9)])
    def test_no_other_pair_will_do(self, stretch, faster):
        raw = self.descend(self.q, 0.02, 1.0)
        other = self.descend(stretch * self.q, faster * 0.02, None)
        assert np.abs(other - raw).max() > 1e-3

    def test_with_adam_the_rate_is_only_root_d_k_larger(self):
        def path(q, rate, scale):
            zero = {"q": np.zeros_like(q)}
            params, moments, outputs = {"q": q}, Moments(zero, zero), []
            for step in range(20):
                result = attention(params["q"], self.K, self.V, scale=scale)
                outputs.append(result.output)
                dO = result.output - self.wanted
                dQ = attention_backward(
                    dO, params["q"], self.K, self.V, weights=result.weights, scale=scale
                )[0]
                params, moments = adam_step(
                    params, {"q": dQ}, moments, step=step, rate=rate, eps=0.0
                )
            return np.array(outputs)

        raw = path(self.q, 0.01, 1.0)
        np.testing.assert_allclose(path(3 * self.q, 0.03, None), raw, atol=1e-9)
        assert np.abs(path(3 * self.q, 0.09, None) - raw).max() > 1e-3


def retrieval(d_k, rate, *, scaled=True, steps=200, queries=200, keys=8, seed=0):
    """Let independent queries find their own key by descent on the queries themselves, where the
    page follows their scores. The share that ends with more than half its weight on its target.
    """
    rng = np.random.default_rng(seed)
    q, K = rng.normal(size=(queries, d_k)), rng.normal(size=(queries, keys, d_k))
    target = np.eye(keys)[rng.integers(keys, size=queries)]
    scale = d_k**-0.5 if scaled else 1.0
    for _ in range(steps):
        A = softmax(scale * (K @ q[:, :, None])[..., 0])
        q = q - rate * scale * (softmax_backward(A - target, A)[:, None, :] @ K)[:, 0]
    A = softmax(scale * (K @ q[:, :, None])[..., 0])
    return float(((A * target).sum(axis=1) > 0.5).mean())


class TestRetrieval:
    draw, pull_squared, pull_log, solved = page("draw", "pull_squared", "pull_log", "solved")
    rates = np.logspace(-3, 2, 11)

    @pytest.mark.parametrize(("d_k", "scaled"), [(16, True), (64, False)])
    def test_following_scores_is_following_queries(self, d_k, scaled):
        for rate in (0.1, 1.0):
            by_query = retrieval(d_k, rate, scaled=scaled, queries=60, seed=2)
            f = d_k**-0.5 if scaled else 1.0
            drawn = TestRetrieval.draw(d_k, 2, queries=60)
            (by_score,) = TestRetrieval.solved(*drawn, f, rates=np.array([rate]))
            assert by_score == pytest.approx(by_query, abs=1.5 / 60)

    def test_the_queries_themselves_need_the_scale_at_a_large_width(self):
        rates = np.logspace(-3, 2, 11)
        scaled = max(retrieval(64, rate, queries=60) for rate in rates)
        raw = max(retrieval(64, rate, queries=60, scaled=False) for rate in rates)
        assert scaled > 0.95 and raw < 0.65

    def test_nothing_is_solved_before_the_first_step(self):
        before, after = (retrieval(16, 10.0, steps=steps, queries=100) for steps in (0, 200))
        assert before < 0.2 and after == 1

    @pytest.mark.parametrize("seed", [3, 4])
    def test_scaled_never_fails_and_raw_fails_at_every_rate(self, seed):
        for d_k, most in ((64, 0.65), (256, 0.4)):
            drawn = TestRetrieval.draw(d_k, seed)
            scaled = TestRetrieval.solved(*drawn, d_k**-0.5)
            assert scaled.max() == 1 and scaled[6] > 0.97  # at rate 1, whatever the width
            assert TestRetrieval.solved(*drawn, 1.0).max() < most

    def test_the_start_is_what_fails(self):
        q, K, target = TestRetrieval.draw(64, 5)
        assert TestRetrieval.solved(q / 8, K, target, 1.0, rates=self.rates / 64).max() == 1
        assert TestRetrieval.solved(8 * q, K, target, 1 / 8, rates=64 * self.rates).max() < 0.65
        assert TestRetrieval.solved(0 * q, K, target, 1.0).max() == 1

    def test_without_the_jacobian_in_between_it_does_not_fail(self):
        drawn = TestRetrieval.draw(256, 6)
        assert TestRetrieval.solved(*drawn, 1.0, pull=TestRetrieval.pull_log).max() == 1


class TestReversal:
    undivided, raw_logits, raw_gradients = page("undivided", "raw_logits", "raw_gradients")
    recipe = replace(RECIPES["reversal"], config=replace(RECIPES["reversal"].config, d_k=64))
    raw = replace(recipe, model=Model(TRANSFORMER.init, raw_logits, raw_gradients))

    def test_the_gradients_are_those_of_raw_scores(self):
        run = start(replace(self.raw, dtype=np.float64), seed=1)
        batch, config, h = held_out(self.raw, 1)[0], self.raw.config, 1e-5
        _, grads = self.raw.model.loss_and_gradients(run.params, batch, config)
        for name, at in (("0.W_Q", (3, 5)), ("0.W_K", (2, 7)), ("E", (4, 1))):
            change = []
            for sign in (1, -1):
                params = {key: W.copy() for key, W in run.params.items()}
                params[name][at] += sign * h
                change.append(self.raw.model.loss_and_gradients(params, batch, config)[0])
            # the float32 root leaves seven digits
            expected = (change[0] - change[1]) / (2 * h)
            assert grads[name][at] == pytest.approx(expected, rel=1e-5, abs=1e-8)

    def test_it_is_learnt_without_the_division(self):
        run = train(start(self.raw, seed=1), 150, progress=False)
        assert score(run.params, self.raw, held_out(self.raw, 2)).accuracy > 0.95

    @pytest.mark.parametrize("seed", [1, 2])
    def test_no_map_is_needed_as_long_as_one_is_shared(self, seed):
        """The raw layer learns with either map fixed, and hardly with both."""
        raw = replace(self.raw, config=replace(self.raw.config, d_k=256))
        right = {}
        for frozen in ((), ("0.W_Q",), ("0.W_K", "E", "P"), ("0.W_Q", "0.W_K")):
            run = train(start(raw, seed=seed, frozen=frozen), 150, progress=False)
            right[frozen] = score(run.params, raw, held_out(raw, 2)).accuracy
        assert min(right[()], right["0.W_Q",], right["0.W_K", "E", "P"]) > 0.85
        assert right["0.W_Q", "0.W_K"] < 0.6

    def test_with_both_maps_fixed_raw_is_behind_scaled(self):
        accuracy = {}
        for recipe in (self.raw, self.recipe):
            wide = replace(recipe, config=replace(recipe.config, d_k=256))
            run = train(start(wide, seed=1, frozen=("0.W_Q", "0.W_K")), 150, progress=False)
            accuracy[recipe is self.raw] = score(run.params, wide, held_out(wide, 2)).accuracy
        assert accuracy[True] + 0.15 < accuracy[False]

    def test_the_length_of_the_gradient_would_have_told_the_opposite_in_other_units(self):
        """W_Q's gradient is longer raw, and that of the map that acts, √d_k W_Q, is shorter."""
        config, batch = replace(self.recipe.config, d_k=256), held_out(self.recipe, 1)[0]
        for seed in range(3):
            params = TRANSFORMER.init(config, seed, np.float32)
            _, scaled = TRANSFORMER.loss_and_gradients(params, batch, config)
            _, raw = self.raw.model.loss_and_gradients(params, batch, config)
            raw, scaled = (np.linalg.norm(each["0.W_Q"]) for each in (raw, scaled))
            assert raw > 2 * scaled and raw / 16 < scaled


def test_entropy_rises_with_the_temperature_as_the_exercise_says():
    s, h = np.random.default_rng(8).normal(size=6), 1e-5

    def entropy(T):
        a = softmax(s / T)
        return -(a * np.log(a)).sum()

    for T in (0.5, 1.0, 3.0):
        a = softmax(s / T)
        variance = a @ s**2 - (a @ s) ** 2
        slope = (entropy(T + h) - entropy(T - h)) / (2 * h)
        assert slope == pytest.approx(variance / T**3, rel=1e-6)
