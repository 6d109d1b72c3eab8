"""CrossLab in Python: two texts, and what one takes from the other."""

import numpy as np
import pytest

from attn_lib import attention
from attn_lib.labs import CrossLab


def test_the_kitchen_by_hand():
    """Scores of 4/√3 on the pot that is asked for: a third of the way through chapter 7."""
    lab = CrossLab()
    loud = np.exp(4 / np.sqrt(3))
    np.testing.assert_allclose(lab.weights[0], np.array([1, 1, loud]) / (2 + loud))
    np.testing.assert_allclose(lab.output[0], (80 + 20 + 60 * loud) / (2 + loud))


def test_the_order_of_the_source_changes_no_output():
    lab = CrossLab(order=[2, 0, 1])
    assert lab.source == ["tea", "soup", "bread"]
    np.testing.assert_allclose(lab.output, CrossLab().output)
    np.testing.assert_allclose(lab.weights, CrossLab().weights[:, [2, 0, 1]])


def test_two_equal_scores_are_parted_by_no_temperature():
    for temperature in (0.01, 1.0):
        a = CrossLab(temperature=temperature).weights[2]
        assert a[0] == a[1]
    assert CrossLab(temperature=0.01).output[2, 0] == pytest.approx(50)


def test_texts_of_ones_own():
    rng = np.random.default_rng(0)
    Q, K, V = rng.normal(size=(2, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
    lab = CrossLab(reader="ab", source="vwxyz", Q=Q, K=K, V=V, outputs=("o", "p"), query=1)
    np.testing.assert_array_equal(lab.output, attention(Q, K, V).output)
    assert lab.describe().startswith("b reads ")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"reader": ["a"]}, "Q must hold a finite row for each of the 1 reader's tokens"),
        ({"K": np.eye(4)[:3]}, "Q and K must be of one width"),
        ({"V": [[1.0], [np.nan], [2.0]]}, "V must hold a finite row"),
        ({"outputs": ("a", "b")}, "outputs must name 1 columns of V, got 2"),
        ({"order": [0, 0, 1]}, "order must hold each of 0 to 2 once"),
        ({"query": 3}, "query must be from 0 to 2, got 3"),
    ],
)
def test_what_does_not_fit_is_named(given, words):
    with pytest.raises(ValueError, match=words):
        CrossLab(**given)


def test_words():
    assert CrossLab().describe() == "tea? reads tea most (weight 0.83) and gets 58.34 °C."
