"""TrainingLab in Python: the stored runs are what they say, and a run of one's own is measured."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from attn_lib.dot_product import softmax
from attn_lib.labs import TrainingLab
from attn_lib.labs.training.lab import pack, record, store_runs, stored_runs, unpack
from attn_lib.model import transformer
from attn_lib.training import (
    RECIPES,
    every_period,
    head_scores,
    held_out,
    load_checkpoints,
    score,
    start,
    train,
)

DATA = Path(__file__).resolve().parents[2] / "book" / "data"
RUNS = ("induction", "reversal", "induction-two-heads")
MEASURED = ("loss", "accuracy", "scores", "said", "chances", "weights")
INDUCTION = ("induction", "induction-two-heads")


@pytest.fixture(scope="module")
def reversal():
    """The reversal run, trained again."""
    return train(start("reversal"), keep=range(0, 101, 5), progress=False)


class TestStoredRuns:
    def test_there_are_three_and_they_are_small(self):
        assert [run["name"] for run in stored_runs()] == list(RUNS)
        assert len(json.dumps(TrainingLab().data(), separators=(",", ":"))) < 50_000

    def test_reversal_is_remade(self, reversal):
        """Another machine rounds differently; after a hundred steps that is still little."""
        again, stored = record(reversal), stored_runs()[1]
        for key in stored:
            if key not in MEASURED:
                assert again[key] == stored[key], key
        for key in ("loss", "accuracy", "chances"):
            np.testing.assert_allclose(again[key], stored[key], atol=0.003, err_msg=key)
        for new, old in zip(again["weights"], stored["weights"], strict=True):
            np.testing.assert_allclose(unpack(new), unpack(old), atol=0.003)
        assert np.mean(np.equal(again["said"], stored["said"])) > 0.98
        (new,), (old,) = again["scores"], stored["scores"]
        np.testing.assert_allclose(new["values"], old["values"], atol=0.003)

    @pytest.mark.parametrize("name", RUNS)
    def test_they_begin_as_they_would_now(self, name):
        """Before any step: every word, and every number of the first moment."""
        (stored,) = (run for run in stored_runs() if run["name"] == name)
        run = train(start(name, seed=1 if name == "induction" else 0), 0, keep=[0], progress=False)
        now = record(run)
        for key in now:
            if key not in (*MEASURED, "steps", "begin"):
                assert now[key] == stored[key], key
        for key in ("loss", "accuracy", "chances"):
            np.testing.assert_allclose(now[key][0], stored[key][0], atol=0.001 + 1e-9)
        for new, old in zip(now["scores"], stored["scores"], strict=True):
            assert new["name"] == old["name"]
            np.testing.assert_allclose(new["values"][0], old["values"][0], atol=0.001 + 1e-9)
        new, old = (unpack(each["weights"][0]) for each in (now, stored))
        np.testing.assert_allclose(new, old, atol=0.001 + 1e-9)

    @pytest.mark.parametrize("name", INDUCTION)
    def test_induction_is_the_run_of_the_chapters(self, name):
        lab, stored = TrainingLab(run=name), load_checkpoints(DATA / f"{name}.npz")
        moments = [stored.curves["step"].tolist().index(step) for step in lab.steps]
        assert lab.steps[-1] == 1000 and len(moments) == 29
        curves = {"loss": "loss", "accuracy": "accuracy"}
        curves |= {"previous": "previous-token score", "induction": "induction score"}
        for theirs, ours in curves.items():
            expected = stored.curves[theirs][moments].reshape(lab.curves[ours].shape)
            np.testing.assert_allclose(lab.curves[ours], expected, atol=0.0005 + 1e-6)
        n = len(lab.tokens)
        assert lab.tokens == [str(token) for token in stored.tokens[0]]
        for step, moment in zip(lab.steps.tolist(), moments, strict=True):
            lab.step = step
            expected = stored.weights[moment].reshape(-1, n, n)
            # both are rounded: to thousandths, and to multiples of 1/255
            np.testing.assert_allclose(lab.weights, expected, atol=0.0005 + 1 / 510 + 1e-6)

    def test_answers_are_those_of_the_model_at_that_step(self):
        stored = load_checkpoints(DATA / "induction.npz")
        params, lab = stored.params[400], TrainingLab(step=400)
        logits = transformer(params, stored.tokens, stored.recipe.config).logits[0]
        known = [i for i, target in enumerate(lab.targets) if target is not None]
        assert known == list(range(6, 11))  # the second copy, whose next token has been seen
        targets = [lab.targets[i] for i in known]
        assert targets == stored.tokens[0, 1:6].tolist()
        assert [lab.said[i] for i in known] == logits.argmax(axis=-1)[known].tolist()
        # the stored parameters are rounded to 255 levels
        chances = softmax(logits)[known, targets]
        np.testing.assert_allclose(lab.chances[known], chances, atol=0.02)

    def test_what_is_learnt(self):
        """The lab's picture: matching appears with the answers, in these heads and no other."""
        lab = TrainingLab(step=1000)
        assert lab.accuracy > 0.99 and lab.loss < 0.02
        previous, induction = lab.scores.values()
        assert previous[0] > 0.98 and induction[1] > 0.98
        assert previous[1] < 0.25 and induction[0] < 0.05
        lab = TrainingLab(run="reversal", step=100)
        assert lab.accuracy > 0.99
        assert lab.weights[0, :, ::-1].diagonal().min() > 0.9
        two = TrainingLab(run="induction-two-heads", step=1000)
        assert (two.scores["induction score"][2:] > 0.95).all()  # two heads for one job


class TestRecord:
    def test_every_number_against_the_model(self, reversal):
        lab = TrainingLab(run=reversal, step=45)
        params, (batch, *_) = reversal.kept[45], held_out("reversal")
        found = score(params, "reversal")
        assert (lab.loss, lab.accuracy) == pytest.approx(found, abs=0.0005)
        tokens = batch.tokens[:1]
        result = transformer(params, tokens, RECIPES["reversal"].config)
        np.testing.assert_allclose(lab.weights, result.weights[0][0], atol=0.0005 + 1e-9)
        assert lab.said == result.logits[0].argmax(axis=-1).tolist()
        assert lab.targets == tokens[0, ::-1].tolist()
        assert "".join(lab.tokens) == "".join(chr(97 + token) for token in tokens[0])
        mirrored = [
            transformer(params, each.tokens, RECIPES["reversal"].config)
            .weights[0][:, 0, range(12), range(11, -1, -1)]
            .mean()
            for each in held_out("reversal")
        ]
        assert lab.scores["mirror score"] == pytest.approx(np.mean(mirrored), abs=0.0005)

    def test_a_run_of_ones_own_with_a_mask(self):
        run = train(start("induction-two-heads", seed=7), 4, keep=[0, 2, 4], progress=False)
        lab = TrainingLab(run=run, step=4)
        assert lab.steps.tolist() == [0, 2, 4] and lab.weights.shape == (4, 11, 11)
        np.testing.assert_allclose(lab.weights.sum(axis=-1), 1, atol=0.006)
        assert (lab.weights[:, *np.triu_indices(11, 1)] == 0).all()
        batches = every_period("induction-two-heads")
        heads = head_scores(run.kept[4], run.recipe.config, batches)
        for name, expected in (("previous-token", heads.previous), ("induction", heads.induction)):
            np.testing.assert_allclose(
                lab.scores[f"{name} score"], expected.ravel(), atol=0.0005 + 1e-6
            )
        assert lab.heads == [f"layer {a}, head {b}" for a in (1, 2) for b in (1, 2)]

    def test_a_task_without_a_score_of_heads(self):
        run = train(start("honest"), 2, keep=[0, 2], progress=False)
        lab = TrainingLab(run=run)
        assert lab.scores == {} and list(lab.curves) == ["loss", "accuracy"]
        assert len(lab.tokens) == 16 and lab.figure() is not None

    def test_later_moments_can_be_left_out(self, reversal, tmp_path):
        store_runs([reversal], tmp_path / "runs.json", last=10)
        (stored,) = json.loads((tmp_path / "runs.json").read_text())
        assert stored["steps"] == [0, 5, 10] and len(stored["weights"]) == 3

    @pytest.mark.parametrize(
        ("run", "message"),
        [
            (start("reversal"), r"kept no moments: train it with, for instance, keep=range"),
            (start("translation"), "runs of the Transformer; 'translation' is not one"),
        ],
    )
    def test_what_cannot_be_shown(self, run, message):
        with pytest.raises(ValueError, match=message):
            TrainingLab(run=run)

    def test_too_long_a_sequence(self, reversal):
        draw = lambda rng: RECIPES["copy"].draw.func(rng, size=2, length=33, vocabulary=26)  # noqa: E731
        recipe = dataclasses.replace(reversal.recipe, name="long", draw=draw)
        run = dataclasses.replace(reversal, recipe=recipe)
        with pytest.raises(ValueError, match="at most 32 tokens can be shown, got 33"):
            record(run)


def test_packing_keeps_thousandths():
    every = np.arange(1001) / 1000
    assert len(pack(every)) == 2002
    np.testing.assert_array_equal(unpack(pack(every)), every)
    given = np.random.default_rng(0).random(500)
    assert np.abs(unpack(pack(given)) - given).max() <= 0.0005


class TestState:
    def test_what_it_begins_with(self):
        lab = TrainingLab()
        assert (lab.run, lab.step, lab.head, lab.query) == ("induction", 250, 1, 7)
        assert abs(lab.accuracy - 0.5) == np.abs(lab.curves["accuracy"] - 0.5).min()
        reversal = TrainingLab(run="reversal")
        assert (reversal.step, reversal.head, reversal.query) == (40, 0, 7)

    def test_another_run_keeps_what_fits(self):
        lab = TrainingLab(run="induction-two-heads", step=375, head=3, query=10)
        lab.run = "induction"
        assert (lab.step, lab.head, lab.query) == (375, 1, 10)
        lab.run = "reversal"
        assert (lab.step, lab.head, lab.query) == (40, 0, 10)

    @pytest.mark.parametrize(
        ("bad", "message"),
        [
            (
                {"run": "copying"},
                "run must be one of induction, reversal, induction-two-heads, got 'copying'",
            ),
            (
                {"step": 260},
                "stored of run 'induction', from 0 to 1000; the nearest to 260 is 250",
            ),
            ({"step": 2500}, "the nearest to 2500 is 1000"),
            ({"head": 2}, "head must be from 0 to 1, got 2"),
            ({"query": 11}, "query must be from 0 to 10, got 11"),
            ({"run": "reversal", "step": 250}, "from 0 to 100; the nearest to 250 is 100"),
        ],
    )
    def test_what_is_refused(self, bad, message):
        with pytest.raises(ValueError, match=message):
            TrainingLab(**bad)

    def test_a_refused_change_changes_nothing(self):
        lab = TrainingLab()
        before = lab.data()
        for name, value in (("run", "x"), ("step", 1), ("head", -1), ("query", 99)):
            with pytest.raises(ValueError):
                setattr(lab, name, value)
        assert lab.data() == before


def test_words():
    assert TrainingLab().describe() == (
        "After 250 steps the loss is 2.948 nats, and 35.6 % of the answers are right. In layer 2, "
        "21 at place 8 reads 23 at place 3 most (weight 0.972)."
    )


@pytest.mark.parametrize(("run", "heads", "charts"), [(RUNS[0], 2, 4), (RUNS[1], 1, 3), (RUNS[2], 4, 4)])  # fmt: skip # noqa: E501
def test_a_figure_with_every_head_and_every_curve(run, heads, charts):
    lab = TrainingLab(run=run, head=0)
    shown = [ax for ax in lab.figure().axes if ax.axison]
    assert len(shown) == heads + charts
    for ax, weights in zip(shown, lab.weights, strict=False):
        drawn = ax.images[0].get_array()
        expected = np.ma.masked_invalid(drawn).filled(0)
        np.testing.assert_array_equal(expected, weights)
        assert np.ma.count_masked(np.ma.masked_invalid(drawn)) == (55 if heads > 1 else 0)
    loss = shown[heads]
    assert loss.get_title(loc="left") == "Loss, nats"
    np.testing.assert_array_equal(loss.lines[0].get_xdata(), lab.steps)
    np.testing.assert_array_equal(loss.lines[0].get_ydata(), lab.curves["loss"])
    assert loss.lines[1].get_xdata()[0] == lab.step
