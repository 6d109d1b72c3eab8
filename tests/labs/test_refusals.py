"""A lab that says no stays as it was: whoever asks, a program, a message or a linked slider."""

from __future__ import annotations

from functools import cache

import ipywidgets
import numpy as np
import pytest
import traitlets

from attn_lib import labs
from attn_lib.examples import CHEF, Dictionary, Scene
from attn_lib.labs.traits import Refused
from attn_lib.training import start, train

# Every rule of every lab: what is asked of a lab in its first state, and the words of its no.
RULES = [
    ("AttentionLab", {"scene": "moon"}, "scene must be one of chef, river, account, random"),
    ("AttentionLab", {"query": 99}, "query must be from 0 to 8, got 99"),
    ("AttentionLab", {"key": 9}, "key must be from 0 to 8, got 9"),
    ("AttentionLab", {"controls": ["heat"]}, "an entry of controls must be one of scene, query"),
    ("AttentionLab", {"panels": ["heat"]}, "an entry of panels must be one of arcs, pair"),
    ("AttentionLab", {"ask": "why"}, "ask must be one of most, back, reverse, cold, causal"),
    ("AttentionLab", {"order": [0, 1, 2]}, "order must hold each of 0 to 8 once"),
    ("AttentionLab", {"d_k": 5}, "scene 'chef' has keys of width 4"),
    ("AttentionLab", {"temperature": -1.0}, "temperature must be from 0.01 to 100.0, got -1.0"),
    ("AttentionLab", {"mask": "upper"}, "mask must be one of none, causal, got 'upper'"),
    ("AttentionLab", {"seed": -1}, "seed must be from 0 to 9999, got -1"),
    ("AttentionLab", {"seed": True}, "seed must be a number, got True"),
    ("LookupLab", {"temperature": True}, "temperature must be a number, got True"),
    ("AttentionLab", {"temperature": 2.0, "query": 9}, "query must be from 0 to 8, got 9"),
    ("AttentionLab", {"scene": "river", "query": 6}, "query must be from 0 to 5, got 6"),
    ("LookupLab", {"key_points": [0.5]}, "key_points must hold 12 numbers, got 1"),
    (
        "LookupLab",
        {"value_points": [2.0] * 12},
        "value_points: each number must be from -1.0 to 1.0, got 2.0",
    ),
    ("LookupLab", {"query_x": 3.0}, "query_x must be from -2.0 to 2.0, got 3.0"),
    ("LookupLab", {"query_y": float("nan")}, "query_y must be from -2.0 to 2.0, got nan"),
    ("LookupLab", {"lookup": "fuzzy"}, "lookup must be one of exact, hard, soft"),
    ("LookupLab", {"kernel": "cosine"}, "kernel must be one of gaussian, dot"),
    ("LookupLab", {"temperature": 101.0}, "temperature must be from 0.01 to 100.0, got 101.0"),
    ("MaskLab", {"mask": "upper"}, "mask must be one of causal, window, prefix, none"),
    ("MaskLab", {"n": 13}, "n must be from 1 to 12, got 13"),
    ("MaskLab", {"m": 0}, "m must be from 1 to 12, got 0"),
    ("MaskLab", {"offset": -13}, "offset must be from -12 to 12, got -13"),
    ("MaskLab", {"window": 0}, "window must be from 1 to 12, got 0"),
    ("MaskLab", {"prefix": -1}, "prefix must be from 0 to 12, got -1"),
    ("MaskLab", {"length": 13}, "length must be from 0 to 12, got 13"),
    ("MaskLab", {"scores_are": "odd"}, "scores_are must be one of equal, random"),
    ("MaskLab", {"painted": [[0, 12]]}, "painted: [query, key] must be from 0 to 11, 11, got"),
    ("MaskLab", {"painted": [3]}, "painted must be a list of [query, key], got 3"),
    ("MaskLab", {"query": 12}, "query must be from 0 to 11, got 12"),
    ("MaskLab", {"seed": 10000}, "seed must be from 0 to 9999, got 10000"),
    ("ScoreScaleLab", {"d_k": 513}, "d_k must be from 1 to 512, got 513"),
    ("ScoreScaleLab", {"vectors": "odd"}, "vectors must be one of independent, uniform"),
    ("ScoreScaleLab", {"mu": 2.5}, "mu must be from 0.0 to 2.0, got 2.5"),
    ("ScoreScaleLab", {"cosine": -0.1}, "cosine must be from 0.0 to 1.0, got -0.1"),
    ("ScoreScaleLab", {"seed": 10000}, "seed must be from 0 to 9999, got 10000"),
    ("PositionLab", {"positions": "odd"}, "positions must be one of none, learned, sinusoidal"),
    ("PositionLab", {"n": 17}, "n must be from 3 to 16, got 17"),
    ("PositionLab", {"d": 7}, "d must be even, RoPE turns pairs: got 7"),
    ("PositionLab", {"offset": 13}, "offset must be from -12 to 12, got 13"),
    ("PositionLab", {"shift": 65}, "shift must be from 0 to 64, got 65"),
    ("PositionLab", {"query": 8}, "query must be from 0 to 7, got 8"),
    ("PositionLab", {"order": [0] * 8}, "order must hold each of 0 to 7 once"),
    ("PositionLab", {"n": 5, "query": 6}, "query must be from 0 to 4, got 6"),
    ("PositionLab", {"seed": 10000}, "seed must be from 0 to 9999, got 10000"),
    ("PositionLab", {"mask": "window"}, "mask must be one of none, causal, got 'window'"),
    ("HeadsLab", {"scene": "moon"}, "scene must be one of random, roles, got 'moon'"),
    ("HeadsLab", {"heads": 5}, "heads must divide the width d = 12: 1, 2, 3, 4, 6 or 12, got 5"),
    ("HeadsLab", {"kv_heads": 3}, "kv_heads must divide heads = 4, got 3"),
    ("HeadsLab", {"head": 4}, "head must be from 0 to 3, got 4"),
    ("HeadsLab", {"query": 4}, "query must be from 0 to 3, got 4"),
    ("HeadsLab", {"heads": 6, "kv_heads": 4}, "kv_heads must divide heads = 6, got 4"),
    ("HeadsLab", {"seed": 10000}, "seed must be from 0 to 9999, got 10000"),
    ("TilingLab", {"step": 99}, "step must be from 0 to 9, got 99"),
    ("TilingLab", {"tile_keys": 10}, "tile_keys must be from 1 to 9, got 10"),
    ("TilingLab", {"query": 9}, "query must be from 0 to 8, got 9"),
    ("TilingLab", {"tile_keys": 9, "step": 4}, "step must be from 0 to 3, got 4"),
    ("TilingLab", {"seed": 10000}, "seed must be from 0 to 9999, got 10000"),
    ("TilingLab", {"tile_queries": 0}, "tile_queries must be from 1 to 9, got 0"),
    ("TilingLab", {"mask": "upper"}, "mask must be one of none, causal, window, padding"),
    ("CostLab", {"n": 0}, "n must be from 1 to 1048576, got 0"),
    ("CostLab", {"d": 100}, "d must be a multiple of h, got d = 100 and h = 8"),
    ("CostLab", {"h": 3}, "d must be a multiple of h, got d = 512 and h = 3"),
    ("CostLab", {"variant": "flash"}, "variant must be one of full, cached, tiled"),
    ("CostLab", {"d": 100, "h": 7}, "d must be a multiple of h, got d = 100 and h = 7"),
    ("CostLab", {"window": 0}, "window must be from 1 to 1048576, got 0"),
    ("CrossLab", {"query": 3}, "query must be from 0 to 2, got 3"),
    ("CrossLab", {"order": [0, 0, 1]}, "order must hold each of 0 to 2 once"),
    ("CrossLab", {"temperature": 0.0}, "temperature must be from 0.01 to 100.0, got 0.0"),
    ("TrainingLab", {"run": "sorting"}, "run must be one of induction"),
    ("TrainingLab", {"step": 3}, "step must be one that is stored of run 'induction'"),
    ("TrainingLab", {"head": 2}, "head must be from 0 to 1, got 2"),
    ("TrainingLab", {"query": 99}, "query must be from 0 to"),
    ("ContributionLab", {"period": 13}, "period must be from 4 to 12, got 13"),
    ("ContributionLab", {"sort": "size"}, "sort must be one of weight, norm, effect"),
    ("ContributionLab", {"cut": [[0, 0, 1, 2]]}, "a query may not look at a later key"),
    ("ContributionLab", {"cut": [[0, 0, 99, 0]]}, "must be from 0 to 1, 0, 10, 10"),
    ("ContributionLab", {"cut": [[0, 0]]}, "cut must be a list of [layer, head, query, key]"),
    ("ContributionLab", {"cut": [["a", None, 1, 0]]}, "must be from 0 to 1, 0, 10, 10"),
    ("ContributionLab", {"zero": [[2, 0]]}, "zero: [layer, head] must be from 0 to 1, 0"),
    ("ContributionLab", {"period": 4, "cut": [[0, 0, 9, 0]]}, "must be from 0 to 1, 0, 6, 6"),
    ("ContributionLab", {"seed": 10000}, "seed must be from 0 to 9999, got 10000"),
]
LABS = [name for name in labs.__all__ if name.endswith("Lab")]


# Who asks ---------------------------------------------------------------------------


def assign(lab, changes):
    for name, value in changes.items():
        setattr(lab, name, value)


def hold(lab, changes):
    with lab.hold_trait_notifications():
        assign(lab, changes)


def message(lab, changes):
    """A front end sends its whole change at once."""
    lab.set_state(changes)


NO_SLIDER = ("kv_heads", "key", "query_y")  # None and NaN are none of its values


class Anything(ipywidgets.Widget):
    """A control with a value of any kind."""

    value = traitlets.Any().tag(sync=True)


def linked(lab, changes):
    """The reader moves a slider that is linked to the lab and goes further than the lab."""
    ((name, value),) = changes.items()
    kind = {int: ipywidgets.IntSlider, float: ipywidgets.FloatSlider}.get(type(value))
    control = kind(min=-(2**21), max=2**21) if kind and name not in NO_SLIDER else Anything()
    ipywidgets.link((lab, name), (control, "value"))
    control.set_state({"value": value})


@cache
def page(name: str) -> str:
    """Show a lab in its first state: its numbers, its sentence and its picture."""
    return getattr(labs, name)().to_html()


# What it does -----------------------------------------------------------------------


CASES = [
    pytest.param(name, changes, words, ask, id=f"{name}-{changes}-{ask.__name__}")
    for name, changes, words in RULES
    for ask in ([hold, message] if len(changes) > 1 else [assign, hold, message, linked])
]


@pytest.mark.parametrize(("name", "changes", "words", "ask"), CASES)
def test_a_refusal_changes_nothing(name, changes, words, ask):
    lab = getattr(labs, name)()
    before, said = lab.data(), lab.describe()
    with pytest.raises(Refused) as refusal:
        ask(lab, changes)
    assert words in str(refusal.value)
    assert (lab.data(), lab.describe()) == (before, said)


@pytest.mark.parametrize("name", LABS)
def test_the_picture_is_as_before(name):
    lab = getattr(labs, name)()
    for changes in (changes for other, changes, _ in RULES if other == name):
        with pytest.raises(Refused):
            lab.set_state(changes)
    assert lab.to_html() == page(name)


def test_every_rule_has_a_refusal():
    """Every trait of a lab that can be out of its range stands in the table."""
    ruled = {(name, trait) for name, changes, _ in RULES for trait in changes}
    for name in LABS:
        kind = getattr(labs, name)
        for trait in kind.settings:
            free = isinstance(kind.class_traits()[trait], traitlets.Bool)
            fixed = kind.class_traits()[trait].read_only
            assert free or fixed or (name, trait) in ruled, (name, trait)


def test_a_front_end_hears_what_still_holds(monkeypatch):
    lab, sent = labs.CostLab(), []
    monkeypatch.setattr(lab, "send_state", lambda key=None: sent.append(key))
    with pytest.raises(Refused):
        lab.set_state({"d": 100})
    assert sent[-1] == ["d"] and lab.get_state("d") == {"d": 512}


# What a lab is made of --------------------------------------------------------------


@pytest.mark.parametrize("name", LABS)
def test_an_unknown_setting_is_named(name):
    kind = getattr(labs, name)
    first = kind.settings[0]
    with pytest.raises(TypeError, match=f"{name} has no setting '{first}x'; did you mean"):
        kind(**{first + "x": 3})
    with pytest.raises(TypeError, match=f"{name} has no setting 'qqq': it has {first}, "):
        kind(qqq=3)


def test_a_slip_of_the_pen_is_not_ignored():
    with pytest.raises(TypeError, match="no setting 'tempreature'; did you mean 'temperature'"):
        labs.AttentionLab(tempreature=3)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"tokens": ("a", "b")}, r"2 tokens, .* X must have shape \(2, 6\), got \(9, 6\)"),
        ({"W_K": np.ones((6, 3))}, r"W_K must have shape \(6, 4\), got \(6, 3\)"),
        ({"W_V": np.ones((5, 3))}, r"W_V must have shape \(6, 3\), got \(5, 3\)"),
        ({"outputs": ("o",)}, r"1 outputs: W_V must have shape \(6, 1\), got \(6, 3\)"),
        ({"W_Q": np.ones(6)}, r"W_Q must be \(d, d_k\), got shape \(6,\)"),
        ({"X": np.full((9, 6), np.nan)}, "'chef': X holds numbers that are not finite"),
        ({"query": 9}, "query must be from 0 to 8, got 9"),
        ({"tokens": (), "X": np.ones((0, 6))}, "query must be from 0 to -1"),
    ],
)
def test_a_scene_that_does_not_fit_is_refused(parts, words):
    with pytest.raises(ValueError, match=words):
        Scene(**{**vars(CHEF), **parts})


def test_scenes_have_different_names():
    with pytest.raises(Refused, match="two scenes have the name 'chef'"):
        labs.AttentionLab(scenes=[CHEF, CHEF])
    with pytest.raises(Refused, match="two scenes have the name 'random'"):
        labs.AttentionLab(scenes=[Scene(**{**vars(CHEF), "name": "random"})])


def test_entries_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match="K must have shape"):
        labs.LookupLab(entries=Dictionary(("a",), np.full((1, 2), np.nan), np.zeros((1, 2)), ""))


def test_a_run_that_has_broken_down_is_refused():
    run = train(start("reversal"), 2, keep=[0, 2])
    run.kept[2]["U"][:] = np.nan
    with pytest.raises(ValueError, match="step 2 of the run holds numbers that are not finite"):
        labs.TrainingLab(run=run)
