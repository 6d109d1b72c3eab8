"""attn_lib.training: the tasks, the loop, and what the stored models can do."""

import dataclasses
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from attn_lib.backward import check_gradient
from attn_lib.interventions import zero_heads
from attn_lib.model import generate, transformer
from attn_lib.training import (
    RECIPES,
    Moments,
    ReaderConfig,
    adam_step,
    copy_batch,
    entropy_rate,
    evaluate,
    every_period,
    head_scores,
    held_out,
    induction_batch,
    induction_score,
    init_reader,
    legal_share,
    load_checkpoints,
    load_run,
    lookup_batch,
    markov_batch,
    markov_chain,
    period_of,
    previous_token_score,
    quantise,
    reader,
    reader_loss_and_gradients,
    reverse_batch,
    save_arrays,
    save_checkpoints,
    save_run,
    score,
    start,
    sums_batch,
    train,
    translate_batch,
)

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "book" / "data"


def rng(seed=0):
    return np.random.default_rng(seed)


def same(a, b):
    """Whether two dicts of arrays are equal bit for bit."""
    return list(a) == list(b) and all(np.array_equal(a[name], b[name]) for name in a)


class TestTasks:
    def test_copy_and_reverse(self):
        batch = copy_batch(rng(), size=3, length=5, vocabulary=7)
        np.testing.assert_array_equal(batch.targets, batch.tokens)
        batch = reverse_batch(rng(), size=3, length=5, vocabulary=7)
        np.testing.assert_array_equal(batch.targets[:, 0], batch.tokens[:, 4])
        np.testing.assert_array_equal(batch.targets[:, ::-1], batch.tokens)

    def test_induction_counts_only_what_can_be_known(self):
        periods = set()
        for seed in range(60):
            batch = induction_batch(rng(seed), size=2, vocabulary=20, shortest=4, longest=9)
            L = period_of(batch)
            periods.add(L)
            assert batch.tokens.shape == batch.targets.shape == (2, 2 * L - 1)
            for tokens, targets, counted in zip(*batch[:3], strict=True):
                assert len(set(tokens[:L])) == L
                assert targets[:-1].tolist() == tokens[1:].tolist()
                seen = [tokens[i] in tokens[:i] for i in range(2 * L - 1)]
                assert counted.tolist() == seen
                for i in np.flatnonzero(counted):
                    earlier = tokens[:i].tolist().index(tokens[i])
                    assert targets[i] == tokens[earlier + 1]
        assert periods == set(range(4, 10))

    def test_the_markov_source_has_the_floor_it_says(self):
        P = markov_chain()
        np.testing.assert_allclose(P.sum(axis=1), 1)
        assert ((P > 0).sum(axis=1) == 3).all()
        by_hand = -(0.6 * math.log(0.6) + 0.3 * math.log(0.3) + 0.1 * math.log(0.1))
        assert entropy_rate(P) == pytest.approx(by_hand, abs=1e-12)
        assert round(by_hand, 3) == 0.898

    def test_markov_sequences_follow_the_source(self):
        P = markov_chain(states=5, seed=3)
        batch = markov_batch(rng(), P=P, size=400, length=30)
        np.testing.assert_array_equal(batch.targets[:, :-1], batch.tokens[:, 1:])
        counts = np.zeros((5, 5))
        np.add.at(counts, (batch.tokens.ravel(), batch.targets.ravel()), 1)
        np.testing.assert_allclose(counts / counts.sum(axis=1, keepdims=True), P, atol=0.03)
        assert legal_share(batch.tokens, P) == 1
        assert (batch.counted[:, :-1] == 1).all() and (batch.counted[:, -1] == 0).all()
        assert (markov_batch(rng(), P=P, size=2, length=3, count_last=True).counted == 1).all()

    def test_sums_follow_from_the_two_digits_before(self):
        exact = sums_batch(rng(), size=50, length=9, digits=7, slips=0)
        tokens, targets = exact.tokens, exact.targets
        assert ((tokens[:, :-1] + tokens[:, 1:]) % 7 == targets[:, 1:]).all()
        assert (tokens[:, 1:] == targets[:, :-1]).all()  # the target shift
        assert not exact.counted[:, 0].any() and exact.counted[:, 1:].all()
        assert set(tokens.ravel()) == set(range(7))
        slipped = sums_batch(rng(), size=4000, length=9)
        right = (slipped.tokens[:, :-1] + slipped.tokens[:, 1:]) % 10 == slipped.targets[:, 1:]
        assert right.mean() == pytest.approx(0.91, abs=0.005)  # a tenth of the slips is right
        assert legal_share([[0, 1, 2]], [[0, 1, 0], [0.5, 0.5, 0], [0, 0, 1]]) == 0.5

    def test_translation_is_the_source_backwards(self):
        batch = translate_batch(rng(), size=3, length=4, vocabulary=9)
        words, positions = batch.source[..., 0], batch.source[..., 1]
        np.testing.assert_array_equal(batch.targets, words[:, ::-1])
        np.testing.assert_array_equal(batch.tokens[:, 1:, 0], batch.targets[:, :-1])
        assert (batch.tokens[:, 0, 0] == 9).all()
        assert positions.tolist() == batch.tokens[..., 1].tolist() == [[10, 11, 12, 13]] * 3

    def test_lookup_answers_with_the_value_beside_the_key(self):
        batch = lookup_batch(rng(), size=20, pairs=4, keys=6, values=5)
        for asked, targets, source in zip(batch.tokens, batch.targets, batch.source, strict=True):
            table = {key: value - 6 for key, value in source.tolist()}
            assert len(table) == 4
            assert [table[key] for key in asked[:, 0].tolist()] == targets.tolist()
        assert (batch.tokens[..., 0] != batch.source[..., 0]).any()  # asked in another order

    def test_held_out_data_are_others_than_a_run_sees(self):
        recipe = RECIPES["reversal"]
        trained = [recipe.draw(np.random.default_rng([0, step, 1])).tokens for step in range(20)]
        for batch in held_out(recipe, 4):
            assert not any(np.array_equal(batch.tokens, tokens) for tokens in trained)
        assert [period_of(batch) for batch in every_period("induction", [2, 9])] == [2, 9]


class TestAdam:
    def test_two_steps_by_hand(self):
        params, zero = {"w": np.array([1.0])}, {"w": np.array([0.0])}
        moments = Moments(dict(zero), dict(zero))
        one, moments = adam_step(params, {"w": np.array([4.0])}, moments, step=0, rate=0.1, eps=0.0)
        assert one["w"] == pytest.approx(0.9)  # the first step is the rate, whatever the gradient
        two, moments = adam_step(one, {"w": np.array([2.0])}, moments, step=1, rate=0.1, eps=0.0)
        mean = (0.9 * 0.1 * 4 + 0.1 * 2) / (1 - 0.81)
        square = (0.99 * 0.01 * 16 + 0.01 * 4) / (1 - 0.99**2)
        assert two["w"] == pytest.approx(0.9 - 0.1 * mean / math.sqrt(square))
        assert params["w"] == 1.0  # what went in is not changed

    def test_leaves_alone_what_has_no_gradient(self):
        params = {"a": np.ones(2), "b": np.ones(2)}
        zeros = {name: np.zeros(2) for name in params}
        moved, _ = adam_step(params, {"a": np.ones(2)}, Moments(zeros, zeros), step=0, rate=0.1)
        assert (moved["a"] != 1).all() and (moved["b"] == 1).all()


class TestReader:
    def test_gradients(self):
        config = ReaderConfig(asks=6, holds=8, vocabulary=5, d=4, d_k=3)
        params = init_reader(config, dtype=np.float64)
        g = rng(1)
        batch = translate_batch(g, size=2, length=3, vocabulary=2)
        loss, grads = reader_loss_and_gradients(params, batch)
        assert list(grads) == list(params) and loss > 0
        for name in params:
            found = check_gradient(
                lambda x, name=name: reader_loss_and_gradients(params | {name: x}, batch)[0],
                params[name],
                grads[name],
            )
            assert found.ok, f"{name}: {found}"

    def test_learns_to_read_backwards(self):
        run = train(start("translation"), progress=False)
        assert score(run.params, run.recipe).accuracy > 0.99
        batch = held_out(run.recipe, 1)[0]
        A = reader(run.params, batch.tokens, batch.source)[1].weights
        assert A[:, np.arange(12), 11 - np.arange(12)].mean() > 0.9

    def test_learns_to_look_up(self):
        run = train(start("lookup"), progress=False)
        assert score(run.params, run.recipe).accuracy > 0.99
        batch = held_out(run.recipe, 1)[0]
        A = reader(run.params, batch.tokens, batch.source)[1].weights
        match = batch.tokens[..., 0][:, :, None] == batch.source[..., 0][:, None, :]
        assert A[match].mean() > 0.9


class TestLoop:
    @pytest.mark.parametrize("seed", [0, 1])
    def test_reversal_is_learnt_in_a_hundred_steps(self, seed):
        run = train(start("reversal", seed), progress=False)
        assert run.step == 100
        assert score(run.params, "reversal").accuracy >= 0.99
        A = transformer(run.params, held_out("reversal", 1)[0].tokens, run.recipe.config).weights[0]
        assert A[..., np.arange(12), 11 - np.arange(12)].mean() > 0.95
        assert score(start("reversal", seed).params, "reversal").accuracy < 0.1

    def test_stopped_and_continued_is_never_stopped(self, tmp_path):
        whole = train(start("induction", 3), 12, keep=[5, 8], progress=False)
        part = train(start("induction", 3), 7, keep=[5, 8], progress=False)
        save_run(part, tmp_path / "run.npz")
        rest = train(load_run(tmp_path / "run.npz"), 12, keep=[5, 8], progress=False)
        assert same(rest.params, whole.params)
        assert same(rest.moments.mean, whole.moments.mean)
        assert same(rest.moments.square, whole.moments.square)
        assert rest.losses == whole.losses and len(rest.losses) == 12
        assert list(rest.kept) == [5, 8] and same(rest.kept[5], whole.kept[5])

    def test_an_interrupt_loses_nothing(self):
        recipe, calls = RECIPES["reversal"], []

        def draw(rng):
            calls.append(None)
            if len(calls) == 5:
                raise KeyboardInterrupt
            return recipe.draw(rng)

        run = start(dataclasses.replace(recipe, draw=draw), 1)
        with pytest.raises(KeyboardInterrupt):
            train(run, 9, progress=False)
        assert run.step == len(run.losses) == 4
        whole = train(start("reversal", 1), 9, progress=False)
        assert same(train(run, 9, progress=False).params, whole.params)
        assert run.losses == whole.losses

    def test_a_loss_that_is_no_number_stops_the_run_and_names_the_step(self):
        run = train(start("reversal"), 3, progress=False)
        good = run.params
        run.params = good | {"U": good["U"] * np.float32(np.nan)}
        with pytest.raises(FloatingPointError, match="step 3: the loss is nan; try"):
            train(run, 5, progress=False)
        assert run.step == 3

    def test_a_rate_far_too_large_is_told_and_not_only_warned_of(self):
        recipe = dataclasses.replace(RECIPES["reversal"], rate=1e30)
        with pytest.raises(FloatingPointError, match=r"step [12]: "):
            train(start(recipe), 20, progress=False)

    def test_frozen_parameters_stay(self):
        run = start("reversal", frozen=["0.W_V"])
        before = dict(run.params)
        train(run, 3, progress=False)
        moved = [name for name in before if not np.array_equal(before[name], run.params[name])]
        assert moved == [name for name in before if name != "0.W_V"]

    def test_the_rate_rises_during_the_warm_up(self):
        recipe = dataclasses.replace(RECIPES["copy"], warmup=10)
        run = start(recipe)
        U = run.params["U"]
        train(run, 1, progress=False)
        # Adam's first step moves each entry by the rate: a tenth of it here.
        assert np.abs(run.params["U"] - U).max() == pytest.approx(3e-4, rel=1e-3)

    def test_the_bar_can_be_shown(self, capsys):
        train(start("copy"), 2)
        assert "copy: 100%" in capsys.readouterr().err

    @pytest.mark.parametrize("build", [False, True])
    def test_a_build_of_the_book_is_silent_and_a_reader_sees_a_bar(self, build):
        """tqdm reads the environment when it is imported, so ask a process of its own."""
        code = "from attn_lib.training import start, train; train(start('copy'), 2)"
        if build:
            code = f"from attn_book import quiet; quiet.setup(None); {code}"
        folders = os.pathsep.join([str(ROOT), str(ROOT / "book" / "_ext")])
        clean = {k: v for k, v in os.environ.items() if k != "TQDM_DISABLE"}
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=clean | {"PYTHONPATH": folders},
            capture_output=True,
            text=True,
            check=True,
        )
        assert ("copy: 100%" in done.stderr) != build and (not build or done.stderr == "")

    def test_refusals(self, tmp_path):
        with pytest.raises(ValueError, match="no recipe 'inductoin'; there are copy, reversal"):
            start("inductoin")
        with pytest.raises(ValueError, match="cannot freeze"):
            start("copy", frozen=["W_V"])
        own = dataclasses.replace(RECIPES["copy"], rate=1.0)
        with pytest.raises(ValueError, match="not in RECIPES"):
            save_run(start(own), tmp_path / "run.npz")

    def test_recipes_know_their_names(self):
        assert all(recipe.name == name for name, recipe in RECIPES.items())


class TestScores:
    def test_count_where_the_weight_lies(self):
        period, n = 4, 7
        previous, after = np.zeros((2, n, n))
        previous[np.arange(1, n), np.arange(n - 1)] = 1
        after[np.arange(period, n), np.arange(period, n) - period + 1] = 1
        copies = np.zeros((n, n))
        copies[np.arange(period, n), np.arange(period, n) - period] = 1  # the copy, not after it
        weights = np.stack([previous, after, copies, np.tri(n) / np.arange(1, n + 1)[:, None]])
        batch = np.stack([weights, weights])
        np.testing.assert_allclose(induction_score(batch, period)[:3], [0, 1, 0])
        np.testing.assert_allclose(previous_token_score(batch, range(1, period))[:3], [1, 0, 0])
        assert previous_token_score(batch, [1, 2])[3] == pytest.approx((1 / 2 + 1 / 3) / 2)
        assert induction_score(batch, period)[3] == pytest.approx((1 / 5 + 1 / 6 + 1 / 7) / 3)

    def test_accuracy_counts_only_what_counts(self):
        batch = held_out("induction", 1)[0]
        logits = np.eye(64)[batch.targets] * 50
        assert evaluate(lambda _: logits, [batch]).accuracy == 1
        logits[batch.counted == 0] = 0
        found = evaluate(lambda _: logits, [batch])
        assert found.accuracy == 1 and found.loss < 1e-12


class TestFiles:
    def test_bytes_depend_on_the_arrays_alone(self, tmp_path, monkeypatch):
        arrays = {"a": np.arange(5.0), "b/c": np.eye(3, dtype=np.int8)}
        save_arrays(tmp_path / "one.npz", arrays)
        monkeypatch.setattr("time.time", lambda: 2e9)
        save_arrays(tmp_path / "two.npz", arrays)
        assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
        with np.load(tmp_path / "one.npz") as file:
            assert same(dict(file), arrays)

    def test_quantised_rows_are_as_near_as_stated(self):
        W = rng().normal(size=(20, 30)) * np.exp(rng(1).normal(size=(20, 1)) * 3)
        W[3] = 0
        levels, unit = quantise(W)
        assert levels.dtype == np.int8
        bound = np.abs(W).max(axis=1, keepdims=True) / 254 * 1.001
        assert (np.abs(levels * unit - W) <= bound).all()

    def test_checkpoints_come_back(self, tmp_path):
        run = train(start("induction-two-heads"), 3, keep=[0, 2], progress=False)
        tokens = [[1, 2, 3]]
        curves = {"step": [0, 2], "loss": [4.0, 3.0]}
        save_checkpoints(tmp_path / "x.npz", run, steps=[0], curves=curves, tokens=tokens)
        stored = load_checkpoints(tmp_path / "x.npz")
        assert list(stored.params) == [0, 3] and stored.recipe is run.recipe
        np.testing.assert_allclose(stored.losses, run.losses, rtol=1e-3)
        for name, W in run.params.items():
            np.testing.assert_allclose(stored.final[name], W, rtol=1e-3, atol=1e-6)
            bound = np.abs(run.kept[0][name]).max(axis=-1, keepdims=True) / 254 * 1.001
            assert (np.abs(stored.params[0][name] - run.kept[0][name]) <= bound).all()
        weights = transformer(run.kept[2], tokens, run.recipe.config).weights
        assert stored.weights.shape == (2, 2, 2, 3, 3)
        assert np.abs(stored.weights[1, 1] - weights[1][0]).max() <= 1 / 510 + 1e-6
        np.testing.assert_array_equal(stored.curves["loss"], [4, 3])


class TestStoredModels:
    @pytest.mark.parametrize(
        "name", ["induction", "induction-two-heads", "honest", "leak", "leak-last-counted"]
    )
    def test_begin_as_their_recipes_say(self, name):
        stored = load_checkpoints(DATA / f"{name}.npz")
        run = train(start(name, stored.seed), 10, progress=False)
        np.testing.assert_allclose(stored.losses[:10], run.losses, rtol=2e-3)
        assert len(stored.losses) == stored.recipe.steps == max(stored.params)

    def test_fit_in_the_repository(self):
        assert (
            sum(path.stat().st_size for path in DATA.glob("*.npz") if path.stem in NAMES) <= 300_000
        )
        assert not list(DATA.glob("*.md"))  # it would become a page

    def test_the_induction_model(self):
        stored = load_checkpoints(DATA / "induction.npz")
        batches = every_period("induction", seed=1)  # not those it was measured on
        assert score(stored.final, "induction", batches).accuracy >= 0.99
        assert stored.curves["accuracy"][-1] == pytest.approx(
            score(stored.final, "induction").accuracy, abs=0.01
        )
        scores = head_scores(stored.final, stored.recipe.config, batches)
        assert scores.previous[0, 0] > 0.9 and scores.induction[1, 0] > 0.98
        assert scores.previous_everywhere[0, 0] < 0.85  # why it is taken over the first copy
        assert scores.previous[1, 0] < 0.5 and scores.induction[0, 0] < 0.5

    def test_each_layer_of_it_is_needed(self):
        stored, batches = load_checkpoints(DATA / "induction.npz"), every_period("induction")
        without = [
            score(stored.final, "induction", batches, edit=zero_heads(layer)).accuracy
            for layer in (0, 1)
        ]
        assert without[0] < 0.35 and without[1] < 0.05

    def test_checkpoints_are_those_of_the_curves(self):
        stored = load_checkpoints(DATA / "induction.npz")
        steps, config = stored.curves["step"].tolist(), stored.recipe.config
        assert len(stored.losses) == steps[-1] == max(stored.params)
        for step, params in stored.params.items():
            moment = steps.index(step)
            weights = np.array(transformer(params, stored.tokens, config).weights)[:, 0]
            assert np.abs(weights - stored.weights[moment]).max() < 0.05
            found = score(params, "induction", every_period("induction"))
            assert found.accuracy == pytest.approx(stored.curves["accuracy"][moment], abs=0.02)
        assert stored.curves["accuracy"][0] < 0.05 < 0.99 < stored.curves["accuracy"][-1]

    def test_the_two_head_model_has_two_redundant_heads_and_an_idle_one(self):
        name = "induction-two-heads"
        stored, batches = load_checkpoints(DATA / f"{name}.npz"), every_period(name, seed=1)
        scores = head_scores(stored.final, stored.recipe.config, batches)
        assert scores.previous[0].max() > 0.9 and scores.induction[1].min() > 0.9
        carrier = int(scores.previous[0].argmax())

        def accuracy(layer, heads):
            return score(stored.final, name, batches, edit=zero_heads(layer, heads)).accuracy

        assert accuracy(0, [1 - carrier]) > 0.9 > 0.5 > accuracy(0, [carrier])
        assert min(accuracy(1, [0]), accuracy(1, [1])) > 0.85
        assert accuracy(1, [0, 1]) < 0.05

    def test_the_leak(self):
        P, floor = markov_chain(), entropy_rate(markov_chain())
        honest, leak = (load_checkpoints(DATA / f"{name}.npz") for name in ("honest", "leak"))
        kept = score(honest.final, "honest", held_out("honest", 20)).loss
        assert floor - 0.01 < kept < floor + 0.03
        assert score(leak.final, "leak").loss < 0.01
        assert honest.losses[-200:].mean() > floor > 100 * leak.losses[-200:].mean()
        i = np.arange(15)
        weights = transformer(leak.final, held_out("leak", 1)[0].tokens, leak.recipe.config).weights
        assert weights[0][..., i, i + 1].mean() > 0.9
        prompts = np.tile(np.arange(16), 20)[:, None]
        written = {
            model.recipe.name: legal_share(
                generate(model.final, prompts, model.recipe.config, count=15, temperature=1.0), P
            )
            for model in (honest, leak)
        }
        assert written["honest"] > 0.98 and written["leak"] < 0.3


NAMES = ("induction", "induction-two-heads", "honest", "leak", "leak-last-counted")
