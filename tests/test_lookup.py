"""Lookups against hand-worked values, limits and theorems."""

import numpy as np
import pytest

from attn_lib import attention_scores, attention_weights, softmax
from attn_lib.examples import COLOURS, Dictionary
from attn_lib.lookup import convex_hull, exact_scores, gaussian_scores, hard_weights, with_length

K = np.array([[0.0, 0], [3, 4], [0, 2]])


# Scores -------------------------------------------------------------------------


def test_a_gaussian_score_by_hand():
    np.testing.assert_array_equal(gaussian_scores([[3, 0]], K), [[-4.5, -8, -6.5]])
    np.testing.assert_array_equal(gaussian_scores([[3, 0]], K, bandwidth=2), [[-1.125, -2, -1.625]])


def test_the_query_is_best_for_itself_under_the_gaussian_and_not_under_the_dot_product():
    """CORRECTNESS 24: a longer key wins."""
    assert gaussian_scores(K, K).argmax(axis=1).tolist() == [0, 1, 2]
    assert attention_scores(K, K).argmax(axis=1).tolist()[2] == 1


def test_keys_of_one_length_make_the_two_kernels_one():
    """−½‖q − k‖² = q·k − ½‖q‖² − ½‖k‖², and the softmax ignores what all keys share."""
    rng = np.random.default_rng(1)
    Q, K = rng.normal(size=(5, 4, 3)), with_length(rng.normal(size=(5, 7, 3)), 1.7)
    for T in (0.1, 1.0, 7.0):
        dot = softmax(attention_scores(Q, K, scale=1.0) / T)
        np.testing.assert_allclose(softmax(gaussian_scores(Q, K) / T), dot, atol=1e-12)
        np.testing.assert_allclose(
            softmax(gaussian_scores(Q, K, bandwidth=T**0.5)), dot, atol=1e-12
        )
    uneven = K * np.linspace(1, 2, 7)[:, None]
    apart = softmax(gaussian_scores(Q, uneven)) - softmax(attention_scores(Q, uneven, scale=1.0))
    assert np.abs(apart).max() > 0.1


def test_once_scaled_the_bandwidth_is_the_fourth_root_of_d_k():
    rng = np.random.default_rng(2)
    Q, K = rng.normal(size=(4, 16)), with_length(rng.normal(size=(6, 16)), 3.0)
    scaled = softmax(attention_scores(Q, K))
    np.testing.assert_allclose(softmax(gaussian_scores(Q, K, bandwidth=2.0)), scaled, atol=1e-12)


def test_a_dictionary_answers_for_its_keys_alone():
    S = exact_scores([[3, 4], [3, 3.9]], K)
    np.testing.assert_array_equal(S, [[-np.inf, 0, -np.inf], [-np.inf] * 3])
    np.testing.assert_array_equal(attention_weights(S), [[0, 1, 0], [0, 0, 0]])
    assert exact_scores([[3, 3.9]], K, tolerance=0.11)[0, 1] == 0


def test_with_length():
    np.testing.assert_allclose(with_length([[3, 4], [0, -2]], 10), [[6, 8], [0, -10]])
    with pytest.raises(ValueError, match="length 0 has no direction"):
        with_length(K, 1)


@pytest.mark.parametrize("scores", [exact_scores, gaussian_scores])
def test_scores_refuse_shapes_that_do_not_fit(scores):
    with pytest.raises(ValueError, match="must agree in d_k"):
        scores(np.zeros((2, 3)), np.zeros((4, 2)))
    assert scores(np.zeros((5, 2, 3)), np.zeros((4, 3))).shape == (5, 2, 4)
    assert scores(np.zeros((1, 3), np.float32), np.zeros((1, 3), np.float32)).dtype == np.float32


def test_a_bandwidth_is_positive():
    for bandwidth in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="bandwidth must be > 0"):
            gaussian_scores(K, K, bandwidth=bandwidth)


# Weights ------------------------------------------------------------------------


def test_hard_weights_are_the_limit_of_soft_ones():
    """Field case N08: ties share."""
    S = np.array([[1.0, 3, 2, 3], [5, 1, -np.inf, 0]])
    np.testing.assert_array_equal(hard_weights(S), [[0, 0.5, 0, 0.5], [1, 0, 0, 0]])
    np.testing.assert_allclose(attention_weights(S, temperature=1e-3), hard_weights(S), atol=1e-12)
    np.testing.assert_array_equal(hard_weights([[-np.inf, -np.inf]]), [[0, 0]])
    np.testing.assert_array_equal(hard_weights([[0.1 + 0.2, 0.3]]), [[0.5, 0.5]])


def test_a_row_with_nan_in_it_has_no_best_key_and_leaves_the_others_alone():
    S = np.array([[1, np.nan, 0], [2, 1, -np.inf], [np.nan] * 3], np.float32)
    A = hard_weights(S)
    assert A.dtype == np.float32
    np.testing.assert_array_equal(A, [[np.nan] * 3, [1, 0, 0], [np.nan] * 3])
    assert hard_weights(np.ones((2, 0))).shape == (2, 0)


# The hull -----------------------------------------------------------------------


def test_a_hull_by_hand():
    square = np.array([[0, 0], [2, 0], [1, 1], [2, 2], [0, 2], [1, 0]])
    assert convex_hull(square).tolist() == [0, 1, 3, 4]  # neither inside nor on an edge
    assert convex_hull([[0, 0], [2, 2], [1, 1]]).tolist() == [0, 1]
    assert convex_hull([[1, 1]]).tolist() == [0]


def inside(corners: np.ndarray, point: np.ndarray) -> bool:
    """Is the point to the left of every edge?"""
    ahead = np.roll(corners, -1, axis=0) - corners
    to = point - corners
    return bool((ahead[:, 0] * to[:, 1] - ahead[:, 1] * to[:, 0] >= -1e-12).all())


@pytest.mark.parametrize("seed", range(5))
def test_averages_stay_in_the_hull_and_corners_do_not_lie_in_it_without_themselves(seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(9, 2))
    corners = convex_hull(points)
    for weights in rng.dirichlet(np.full(9, 0.3), size=50):
        assert inside(points[corners], weights @ points)
    assert not inside(points[corners], points[corners[0]] * 1.01 - 0.01 * points.mean(0))
    for corner in corners:
        rest = np.delete(points, corner, axis=0)
        assert not inside(rest[convex_hull(rest)], points[corner])


# The book's dictionary ----------------------------------------------------------


def test_the_colours_tell_near_keys_from_long_ones_and_keys_from_values():
    lengths = np.linalg.norm(COLOURS.K, axis=1)
    assert lengths.max() > 1.5 * lengths.min()
    assert len(convex_hull(COLOURS.V)) == 5  # one value lies inside the others
    np.testing.assert_array_equal(COLOURS.K, COLOURS.K.round(2))
    apart = [gaussian_scores(M, M) - np.diag([np.inf] * 6) for M in (COLOURS.K, COLOURS.V)]
    assert (apart[0].argmax(axis=1) != apart[1].argmax(axis=1)).sum() >= 4  # other neighbours


@pytest.mark.parametrize(
    ("K", "V", "match"),
    [
        ([[0, 0]], [[0, 0], [1, 1]], r"K must have shape \(2, 2\)"),
        ([[0, 0], [0, 3]], [[0, 0], [1, 1]], "K .* from -2 to 2"),
        ([[0, 0], [0, 1]], [[0, 0], [1, 1.5]], "V .* from -1 to 1"),
        ([[0, 0], [0, 1]], [[0, 0], [1, np.nan]], "V .* from -1 to 1"),
    ],
)
def test_a_dictionary_checks_its_entries(K, V, match):
    with pytest.raises(ValueError, match=match):
        Dictionary(("a", "b"), np.array(K), np.array(V), ("red", "yellow"))
