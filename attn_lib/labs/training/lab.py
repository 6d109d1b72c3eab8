"""TrainingLab: a model learns; its loss, its answers and its attention at every stored step."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import traitlets
from matplotlib.figure import Figure

from attn_lib.dot_product import softmax
from attn_lib.labs.base import Lab
from attn_lib.labs.training.figure import training_figure
from attn_lib.labs.traits import Refused, Whole, between, one_of
from attn_lib.model import Params, transformer
from attn_lib.training import (
    TRANSFORMER,
    Batch,
    Recipe,
    Run,
    every_period,
    head_scores,
    held_out,
    score,
)

STORED = Path(__file__).parent / "data.json"
UNIT = 1000  # weights are kept in thousandths
LONGEST = 32  # tokens of the shown sequence
PERIOD_SHOWN = 6
QUERY = 7

_INDUCTION = (
    "Two layers, {} in each. Six tokens of 64, then the same again: from the second copy on, the "
    "next token can be known. Previous-token score: mean weight on the token before, in the first "
    "copy. Induction score: mean weight, in the second copy, on the token after the earlier one."
)
_WORDS = {
    "induction": ("induction", _INDUCTION.format("one head")),
    "induction-two-heads": ("induction, two heads", _INDUCTION.format("two heads")),
    "reversal": (
        "reversal",
        "One layer, one head. The model answers place i of a sequence of 12 letters with the "
        "letter at the mirrored place. Mirror score: mean weight on that place.",
    ),
}


class TrainingLab(Lab):
    """Watch a model learn: loss, answers and the attention of every head, step by step.

    Parameters
    ----------
    run : {"induction", "reversal", "induction-two-heads"} or Run
        One of the stored runs, all three of which the reader can choose from. Or a run of your
        own that has kept moments: ``train(start("reversal"), keep=range(0, 101, 5))``.
    step : int, optional
        A stored training step; by default that at which nearest to half the answers are right.
    head : int, optional
        The chosen head, counted through all layers from 0, as everywhere in `attn_lib`; the lab's
        words count layers and heads from 1. By default the last.
    query : int, optional
        The chosen place in the sequence, from 0.
    name : str, optional
        The lab's id in a page and its name in a link.
    title : str, optional

    Raises
    ------
    TypeError
        If a keyword is none of these.
    ValueError
        If there is no such run, a step is not stored, a number is out of its range, or a run
        kept no moments or is not one of the Transformer.

    Notes
    -----
    Loss, accuracy and scores are those of held-out data, rounded to three decimals, as are the
    weights on the sequence that is shown: each is off by at most 0.0005.
    """

    settings = ("run", "step", "head", "query")
    all_controls = (*settings,)
    all_panels = ("forming", "maps", "answers", "accuracy")
    first_controls = ("step",)
    first_panels = ("forming",)
    asks = ("half",)

    run = traitlets.Unicode("induction").tag(sync=True)
    step = Whole(0)
    head = Whole(0)
    query = Whole(0)
    runs: traitlets.List[Any] = traitlets.List(read_only=True).tag(sync=True)
    title = traitlets.Unicode("Attention forming, step by step").tag(sync=True)

    def __init__(self, *, run: str | Run = "induction", **state: Any) -> None:
        runs = stored_runs() if isinstance(run, str) else [record(run)]
        name = run if isinstance(run, str) else run.recipe.name
        here = runs[[each["name"] for each in runs].index(_known(name, runs))]
        beginning = {"step": here["begin"], "head": _heads(here) - 1}
        beginning["query"] = min(QUERY, len(here["tokens"]) - 1)
        self.set_trait("runs", runs)
        super().__init__(**{"run": name, **beginning, **state})

    # The run, and what it allows --------------------------------------------------------------

    @property
    def _here(self) -> dict:
        return next(each for each in self.runs if each["name"] == self.run)

    @traitlets.validate("run")
    def _valid_run(self, proposal) -> str:
        return _known(proposal["value"], self.runs)

    @traitlets.validate("step")
    def _valid_step(self, proposal) -> int:
        value, steps = proposal["value"], self._here["steps"]
        if value not in steps:
            nearest = min(steps, key=lambda step: abs(step - value))
            raise Refused(
                f"step must be one that is stored of run {self.run!r}, from {steps[0]} to "
                f"{steps[-1]}; the nearest to {value} is {nearest}"
            )
        return value

    @traitlets.validate("head")
    def _valid_head(self, proposal) -> int:
        return between("head", proposal["value"], 0, _heads(self._here) - 1)

    @traitlets.validate("query")
    def _valid_query(self, proposal) -> int:
        return between("query", proposal["value"], 0, len(self._here["tokens"]) - 1)

    @traitlets.observe("run")
    def _run_changed(self, change) -> None:
        """Keep what fits the new run; take the rest from it."""
        here = self._here
        with self.hold_trait_notifications():
            if self.step not in here["steps"]:
                self.step = here["begin"]
            self.head = min(self.head, _heads(here) - 1)
            self.query = min(self.query, len(here["tokens"]) - 1)

    # What is known of the run -------------------------------------------------------------------

    @property
    def steps(self) -> np.ndarray:
        """The stored training steps, (moments,)."""
        return np.array(self._here["steps"])

    @property
    def tokens(self) -> list[str]:
        """The sequence that is shown, as words."""
        return [_word(token, self._here) for token in self._here["tokens"]]

    @property
    def targets(self) -> list[int | None]:
        """The right answer at each place; None where none can be known."""
        return self._here["targets"]

    @property
    def heads(self) -> list[str]:
        """Names of all heads, layer by layer."""
        here = self._here
        return [
            f"layer {r // here['heads'] + 1}"
            + (f", head {r % here['heads'] + 1}" if here["heads"] > 1 else "")
            for r in range(_heads(here))
        ]

    @property
    def curves(self) -> dict[str, np.ndarray]:
        """Over all stored steps: ``"loss"`` and ``"accuracy"``, (moments,), and each score of
        the heads, (moments, heads).
        """
        here = self._here
        scores = {each["name"]: np.array(each["values"]) for each in here["scores"]}
        return {"loss": np.array(here["loss"]), "accuracy": np.array(here["accuracy"]), **scores}

    # At the present step ------------------------------------------------------------------------

    @property
    def _moment(self) -> int:
        return self._here["steps"].index(self.step)

    @property
    def loss(self) -> float:
        """Mean cross-entropy on held-out data, in nats."""
        return self._here["loss"][self._moment]

    @property
    def accuracy(self) -> float:
        """Share of held-out answers that are right."""
        return self._here["accuracy"][self._moment]

    @property
    def scores(self) -> dict[str, np.ndarray]:
        """What each head does, (heads,), by the name of the score."""
        return {
            each["name"]: np.array(each["values"][self._moment]) for each in self._here["scores"]
        }

    @property
    def weights(self) -> np.ndarray:
        """The weights of all heads on the sequence that is shown, (heads, n, n)."""
        here, n = self._here, len(self._here["tokens"])
        weights = np.zeros((_heads(here), n, n))
        kept = unpack(here["weights"][self._moment]).reshape(_heads(here), -1)
        weights[:, _kept(n, here["causal"])] = kept
        return weights

    @property
    def said(self) -> list[int]:
        """What the model answers at each place of the sequence: its most probable token."""
        return self._here["said"][self._moment]

    @property
    def chances(self) -> np.ndarray:
        """The probability of the right answer at each place, (n,)."""
        return np.array(self._here["chances"][self._moment])

    # How it is shown ----------------------------------------------------------------------------

    def describe(self) -> str:
        """Say how much is learnt, and what the chosen head reads for the chosen token."""
        a, tokens = self.weights[self.head, self.query], self.tokens
        most = int(np.argmax(a))
        return (
            f"After {self.step} steps the loss is {self.loss:.3f} nats, and "
            f"{100 * self.accuracy:.1f} % of the answers are right. In {self.heads[self.head]}, "
            f"{tokens[self.query]} at place {self.query + 1} reads {tokens[most]} at place "
            f"{most + 1} most (weight {a[most]:.3f})."
        )

    def figure(self) -> Figure:
        """Draw the heads' weights at the present step, and the curves, with matplotlib."""
        here = self._here
        weights = self.weights.copy()
        weights[:, ~_kept(len(self.tokens), here["causal"])] = -np.inf
        return training_figure(
            weights,
            tokens=self.tokens,
            names=self.heads,
            steps=self.steps,
            curves=self.curves,
            at=self.step,
            head=self.head,
            query=self.query,
        )

    def data(self) -> dict:
        """Give the lab's state and its runs, ready for JSON."""
        return {**super().data(), "runs": self.runs}


def _known(name: str, runs: Sequence[dict]) -> str:
    return one_of("run", name, [each["name"] for each in runs])


def _heads(run: dict) -> int:
    """Give the number of heads in all layers."""
    return run["layers"] * run["heads"]


def _kept(n: int, causal: bool) -> np.ndarray:
    """Tell which weights are kept, (n, n): those of a causal model that can be other than 0."""
    return np.tri(n, dtype=bool) if causal else np.ones((n, n), bool)


def _word(token: int, run: dict) -> str:
    """Write a token as a letter where the alphabet has enough of them, else as its number."""
    return chr(ord("a") + token) if run["vocabulary"] <= 26 else str(token)


# What is stored of a run ------------------------------------------------------------------------


@cache
def stored_runs() -> list[dict]:
    """Read the runs that ``book/data/make.py`` has written, as `record` makes them."""
    return json.loads(STORED.read_text(encoding="utf-8"))


def store_runs(runs: Sequence[Run], path: str | Path = STORED, *, last: int = 1000) -> None:
    """Write what the lab shows of some runs, up to a last step.

    Parameters
    ----------
    runs : sequence of Run
        Each with kept moments.
    path : str or Path, optional
        Where to; by default where the lab finds it.
    last : int, default 1000
        Later moments are left out.
    """
    records = [record(run, last=last) for run in runs]
    lines = ",\n".join(json.dumps(each, separators=(",", ":")) for each in records)
    Path(path).write_text(f"[{lines}]\n", encoding="utf-8")


def record(run: Run, *, last: int | None = None) -> dict:
    """Measure a run at each kept moment, for the lab.

    Parameters
    ----------
    run : Run
        Of a recipe with the Transformer, trained with moments kept.
    last : int, optional
        Leave later moments out.

    Returns
    -------
    dict
        Plain lists, ready for JSON: loss, accuracy and the heads' scores on held-out data,
        rounded to three decimals; on one held-out sequence what the model answers, the chance
        it gives to the right answer, and the weights, packed.

    Raises
    ------
    ValueError
        If the model is another, no moments were kept, a parameter is no longer a finite number,
        or the sequence is too long to be shown.
    """
    recipe, steps = run.recipe, sorted(step for step in run.kept if last is None or step <= last)
    if recipe.model is not TRANSFORMER:
        raise ValueError(f"TrainingLab shows runs of the Transformer; {recipe.name!r} is not one")
    if not steps:
        raise ValueError(
            "the run has kept no moments: train it with, for instance, keep=range(0, 101, 5)"
        )
    for step in steps:
        if not all(np.isfinite(part).all() for part in run.kept[step].values()):
            raise ValueError(f"step {step} of the run holds numbers that are not finite")
    batches, shown = _held_out(recipe)
    n, config = shown.tokens.shape[1], recipe.config
    if n > LONGEST:
        raise ValueError(f"a sequence of at most {LONGEST} tokens can be shown, got {n}")
    moments = [_moment(run.kept[step], recipe, batches, shown) for step in steps]
    accuracy = [moment["accuracy"] for moment in moments]
    label, note = _WORDS.get(recipe.name, (recipe.name, ""))
    targets = zip(shown.targets[0].tolist(), shown.counted[0], strict=True)
    return {
        "name": recipe.name,
        "label": label,
        "note": f"{note} Seed {run.seed}; loss, accuracy and scores on held-out data.".strip(),
        "vocabulary": config.vocabulary,
        "layers": config.layers,
        "heads": config.heads,
        "causal": config.causal,
        "tokens": shown.tokens[0].tolist(),
        "targets": [target if counts else None for target, counts in targets],
        "steps": steps,
        "begin": steps[int(np.argmin(np.abs(np.array(accuracy) - 0.5)))],
        "scores": [
            {"name": name, "values": [moment["scores"][name] for moment in moments]}
            for name in moments[0]["scores"]
        ],
        **{
            key: [moment[key] for moment in moments]
            for key in ("loss", "accuracy", "said", "chances", "weights")
        },
    }


def _held_out(recipe: Recipe) -> tuple[list[Batch], Batch]:
    """Give batches to measure on, and one whose first sequence is shown."""
    if recipe.name.startswith("induction"):
        return every_period(recipe), every_period(recipe, [PERIOD_SHOWN])[0]
    batches = held_out(recipe)
    return batches, batches[0]


def _moment(params: Params, recipe: Recipe, batches: Sequence[Batch], shown: Batch) -> dict:
    """Measure one checkpoint."""
    found = score(params, recipe, batches)
    n = shown.tokens.shape[1]
    result = transformer(params, shown.tokens[:1], recipe.config)
    weights = np.array(result.weights)[:, 0].reshape(-1, n, n)
    logits = result.logits[0]
    chances = softmax(logits)[np.arange(n), shown.targets[0]]
    return {
        "loss": round(found.loss, 3),
        "accuracy": round(found.accuracy, 3),
        "scores": _scores(params, recipe, batches),
        "said": logits.argmax(axis=-1).tolist(),
        "chances": _rounded(chances),
        "weights": pack(weights[:, _kept(n, recipe.config.causal)]),
    }


def _scores(params: Params, recipe: Recipe, batches: Sequence[Batch]) -> dict[str, list[float]]:
    """Score every head for what the task needs of it; nothing for a task without such a score."""
    if recipe.name.startswith("induction"):
        found = head_scores(params, recipe.config, batches)
        scores = {"previous-token score": found.previous, "induction score": found.induction}
    elif recipe.name == "reversal":
        scores = {"mirror score": _mirror_score(params, recipe, batches)}
    else:
        scores = {}
    return {name: _rounded(values) for name, values in scores.items()}


def _mirror_score(params: Params, recipe: Recipe, batches: Sequence[Batch]) -> np.ndarray:
    """Mean weight of place i on place n − 1 − i, (layers, h)."""
    found = []
    for batch in batches:
        A = np.array(transformer(params, batch.tokens, recipe.config).weights)
        found.append(np.einsum("lbhii->lh", A[..., ::-1]) / (A.shape[1] * A.shape[-1]))
    return np.mean(found, axis=0)


def _rounded(values: np.ndarray) -> list[float]:
    return np.ravel(values).astype(float).round(3).tolist()


def pack(weights: np.ndarray) -> str:
    """Write numbers from 0 to 1 in thousandths, each as two digits of base 36."""
    thousandths = np.rint(UNIT * np.ravel(weights).astype(float)).astype(int)
    return "".join(np.base_repr(value, 36).rjust(2, "0") for value in thousandths)


def unpack(text: str) -> np.ndarray:
    """Read what `pack` wrote."""
    return np.array([int(text[at : at + 2], 36) for at in range(0, len(text), 2)]) / UNIT
