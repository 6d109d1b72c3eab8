"""ContributionLab in Python: its models, its edges, what it refuses, its words and its figure."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
import traitlets

from attn_lib.interventions import edge_norms, edge_weights
from attn_lib.labs import ContributionLab
from attn_lib.labs.contribution.lab import MODELS, STORED
from attn_lib.model import transformer
from attn_lib.training import load_checkpoints

DATA = Path(__file__).parents[2] / "book" / "data"
DEAR = (0, 0, 5, 4)  # the token that will be asked about learns what stood before it


class TestModels:
    def test_they_are_remade_from_the_data_of_the_book(self):
        spec = importlib.util.spec_from_file_location("models", DATA / "contribution_models.py")
        spec.loader.exec_module(made := importlib.util.module_from_spec(spec))
        assert json.loads(STORED.read_text(encoding="ascii")) == made.models()

    @pytest.mark.parametrize("model", MODELS)
    def test_they_say_what_the_chapters_models_say(self, model):
        lab = ContributionLab(model=model, period=9, seed=3)
        stored = load_checkpoints(DATA / f"{model}.npz")
        params = {name: W.astype(float) for name, W in stored.final.items()}
        result = transformer(params, lab.tokens, stored.recipe.config)
        np.testing.assert_array_equal(lab.weights, edge_weights(result))
        np.testing.assert_array_equal(lab.norms, edge_norms(params, result))
        p = np.exp(result.logits[-1]) / np.exp(result.logits[-1]).sum()
        np.testing.assert_allclose(lab.probabilities, p, atol=1e-12)
        assert p.argmax() == lab.target

    def test_a_page_carries_one_of_them_and_little_else(self):
        for model in MODELS:
            assert len(json.dumps(ContributionLab(model=model).data())) < 75_000


class TestSequence:
    def test_it_repeats_without_its_last_token_which_is_the_answer(self):
        lab = ContributionLab(period=5, seed=8)
        once = lab.tokens[:5]
        assert lab.tokens[5:].tolist() == once[:4].tolist() and lab.target == once[4]
        assert len(set(once.tolist())) == 5 and once.max() < 64
        assert lab.names == ["A", "B", "C", "D", "E", "A′", "B′", "C′", "D′"]

    def test_a_longer_period_begins_with_the_shorter(self):
        short, long = (ContributionLab(period=p, seed=8).tokens[:p] for p in (5, 12))
        assert short.tolist() == long[:5].tolist()


class TestEdges:
    def test_two_large_weights_and_only_one_matters(self):
        lab = ContributionLab()
        assert lab.weights[DEAR] > 0.99 and lab.weights[0, 0, 4, 3] > 0.99
        assert lab.effects[DEAR] > 5 and abs(lab.effects[0, 0, 4, 3]) < 0.01
        assert lab.ranking[0] != DEAR
        lab.sort = "effect"
        assert lab.ranking[:2] == [DEAR, (1, 0, 10, 5)]

    def test_a_cut_costs_what_was_foretold(self):
        lab = ContributionLab()
        before, foretold = lab.log_probability, lab.effects[DEAR]
        lab.cut = [DEAR]
        assert before - lab.log_probability == pytest.approx(foretold)
        assert lab.intact == pytest.approx(before)
        assert lab.weights[DEAR] == lab.norms[DEAR] == lab.effects[DEAR] == 0
        assert DEAR not in lab.left and len(lab.left) == 2 * 66 - 1

    def test_renormalising_is_another_experiment(self):
        edge, plain = [1, 0, 10, 5], ContributionLab(cut=[[1, 0, 10, 5]])
        grown = ContributionLab(cut=[edge], renormalise=True)
        assert np.nansum(grown.weights[1, 0, 10]) == pytest.approx(1)
        assert np.nansum(plain.weights[1, 0, 10]) < 0.01
        assert abs(plain.log_probability - grown.log_probability) > 0.1

    def test_either_of_two_redundant_heads_can_go(self):
        """Their edges matter only once the other is silent."""
        answers = {
            heads: ContributionLab(model="induction-two-heads", zero=[[1, head] for head in heads])
            for heads in ((), (0,), (1,), (0, 1))
        }
        right = {heads: lab.probabilities[lab.target] for heads, lab in answers.items()}
        assert min(right[(0,)], right[(1,)]) > 0.9 and right[(0, 1)] < 0.1
        edge = (1, 1, 10, 5)
        assert abs(answers[()].effects[edge]) < 0.1 and answers[(0,)].effects[edge] > 1

    def test_ranks_are_compared_over_the_edges_that_are_left(self):
        lab = ContributionLab(cut=[DEAR])
        assert set(lab.correlation) == {"weight", "norm"}
        assert all(0 < rho < 0.6 for rho in lab.correlation.values())
        assert all(lab.correlation[name] < lab.ceiling[name] < 0.99 for name in lab.correlation)
        nothing = ContributionLab(zero=[[0, 0], [1, 0]])
        assert nothing.left == [] and np.isnan(nothing.correlation["weight"])


class TestState:
    @pytest.mark.parametrize(
        ("bad", "message"),
        [
            ({"model": "reversal"}, "model must be one of induction, induction-two-heads, got 're"),
            ({"period": 3}, "period must be from 4 to 12, got 3"),
            ({"sort": "size"}, "sort must be one of weight, norm, effect, got 'size'"),
            ({"cut": [[0, 0, 5]]}, r"cut must be a list of \[layer, head, query, key\], got \[0, "),
            ({"cut": [7]}, "cut must be a list of .*, got 7"),
            ({"cut": [[0, 1, 5, 4]]}, r"must be from 0 to 1, 0, 10, 10, got \[0, 1, 5, 4\]"),
            ({"cut": [[0, 0, 11, 4]]}, r"must be from 0 to 1, 0, 10, 10, got"),
            ({"cut": [[0, 0, 4, 5]]}, r"a query may not look at a later key, got \[0, 0, 4, 5\]"),
            ({"cut": [[0, 0, 4.5, 2]]}, "must be from 0 to"),
            ({"zero": [[2, 0]]}, r"zero: \[layer, head\] must be from 0 to 1, 0, got \[2, 0\]"),
            ({"seed": -1}, "seed must be from 0 to 9999, got -1"),
        ],
    )
    def test_what_is_refused(self, bad, message):
        with pytest.raises(ValueError, match=message):
            ContributionLab(**bad)

    def test_its_model_is_chosen_once(self):
        with pytest.raises(traitlets.TraitError, match="read-only"):
            ContributionLab().model = "induction-two-heads"

    def test_a_long_sequence_may_be_cut_where_a_short_one_has_no_edge(self):
        lab = ContributionLab(period=12, cut=[[0, 0, 11, 10], [0, 0, 5, 4]])
        lab.period = 6
        assert lab.cut == [[0, 0, 5, 4]]

    def test_each_edge_is_cut_once(self):
        assert ContributionLab(cut=[DEAR, [0, 0, 5, 4]]).cut == [[0, 0, 5, 4]]

    def test_the_front_end_gets_plain_json(self):
        data = json.loads(json.dumps(ContributionLab(cut=[DEAR]).data(), allow_nan=False))
        assert data["cut"] == [[0, 0, 5, 4]] and data["model"] == "induction"


def test_words():
    said = ContributionLab(cut=[DEAR], zero=[[1, 0]]).describe()
    assert said.startswith("With 1 edge cut and 1 head silent, the right answer F has probability")
    nothing = ContributionLab(zero=[[0, 0], [1, 0]]).describe()
    assert "No edge that is left has any effect. Of 0 edges" in nothing
    lab = ContributionLab()
    assert "matters most is layer 1: F ← E, weight 1.00: its cut costs " in lab.describe()
    assert f"{lab.effects[DEAR]:.2f} nats" in lab.describe()
    two = ContributionLab(model="induction-two-heads")
    assert two.name_of((1, 0, 10, 5)) == "layer 2, head 1: E′ ← F"


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("sort", ["weight", "norm", "effect"])
def test_a_figure_with_every_head_the_answer_and_the_effects(model, sort):
    lab = ContributionLab(model=model, sort=sort, cut=[DEAR])
    figure = lab.figure()
    *heads, chances, effects = (ax for part in figure.subfigs for ax in part.axes)
    assert len(heads) == 2 * lab.heads
    for ax in heads:
        layer, head = place_of(ax.get_title(loc="left"))
        shown = np.ma.filled(ax.images[0].get_array(), np.nan)
        np.testing.assert_array_equal(shown, getattr(lab, f"{sort}s")[layer, head])
        assert ("×" in [text.get_text() for text in ax.texts]) is ((layer, head) == DEAR[:2])
    widths = [bar.get_width() for bar in chances.patches]
    np.testing.assert_allclose(widths, lab.probabilities[lab.tokens[:6]])
    assert sum(len(line.get_xdata()) for line in effects.lines) == len(lab.left)


def place_of(title: str) -> tuple[int, int]:
    """Read layer and head, from 0, in a panel's title."""
    where = title.split(":")[0].replace("Layer ", "").split(", head ")
    return int(where[0]) - 1, int(where[1]) - 1 if len(where) > 1 else 0
