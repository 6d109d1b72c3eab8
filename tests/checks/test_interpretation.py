"""Answers to the exercises of chapter 13: right ones pass, wrong ones are told why."""

import numpy as np
from answers import accepted, named

from attn_lib.checks import check_cut_edge, check_edge_norms


def norms_by_loops(A, V, W_O):
    return [[np.sqrt(sum((a * v @ W_O) ** 2)) for a, v in zip(row, V, strict=True)] for row in A]


def norms_of_contributions(A, V, W_O):
    return np.linalg.norm(A[:, :, None] * (V @ W_O), axis=2)


def norms_by_einsum(A, V, W_O):
    return np.sqrt(np.einsum("ij,jc,jc->ij", A**2, V @ W_O, V @ W_O))


def cut_by_loops(A, query, key, renormalise):
    row = [0.0 if j == key else a for j, a in enumerate(A[query])]
    if renormalise and sum(row):
        row = [a / sum(row) for a in row]
    return [row if i == query else list(A[i]) for i in range(len(A))]


def cut_by_a_mask(A, query, key, renormalise):
    cut = np.where(np.indices(A.shape)[0] == query, A * (np.arange(A.shape[1]) != key), A)
    total = cut.sum(axis=1, keepdims=True)
    return np.divide(cut, total, out=cut, where=(total > 0) & renormalise)


def cut_by_the_freed_weight(A, query, key, renormalise):
    cut = A.copy()
    freed = cut[query, key]
    cut[query, key] = 0
    if renormalise and freed < 1:
        cut[query] *= 1 / (1 - freed)
    return cut


RIGHT = [
    (check_edge_norms, norms_by_loops),
    (check_edge_norms, norms_of_contributions),
    (check_edge_norms, norms_by_einsum),
    (check_cut_edge, cut_by_loops),
    (check_cut_edge, cut_by_a_mask),
    (check_cut_edge, cut_by_the_freed_weight),
    ("ex-interp-lengths", [0.07, 0.30, 0.40, 0.22]),
    ("ex-interp-lengths", (0.07, 0.3, 0.4, 0.1 * 5**0.5)),
    ("ex-interp-lengths", [[0.07, 0.3, 0.4, 0.2236]]),
    ("ex-interp-ranks", [0.11, 0.5, 0.89, 0.5]),
    ("ex-interp-ranks", (1 / 80**0.5, 0.5, 8 / 80**0.5, 3 / 6)),
    ("ex-interp-ranks", np.array([[0.112, 0.5, 0.894, 0.5]])),
    ("ex-interp-volume", [0.68, 0.35]),
    ("ex-interp-volume", ((0.41**2 + 0.53**2 + 2 * 0.06**2) ** 0.5, 0.348)),
    ("ex-interp-volume", np.array([[0.677, 0.350]])),
    ("ex-interp-construct", [[0.2, 0.5, 0, 0.3], [0.5, 0.2, 0.3, 0]]),
    ("ex-interp-construct", ((0.2, 0.5, 0.0, 0.3), (0.5, 0.2, 0.3, 0.0))),
    ("ex-interp-construct", 0.1 * np.array([[2, 5, 0, 3], [5, 2, 3, 0]])),
    ("ex-interp-judge", [1, 0, 1, 0, 0, 0]),
    ("ex-interp-judge", (True, False, True, False, False, False)),
    ("ex-interp-judge", np.array([[1.0, 0, 1, 0, 0, 0]])),
]

test_right_answers_pass = accepted(RIGHT)

WRONG = [
    (check_edge_norms, lambda A, V, W_O: A * np.linalg.norm(V, axis=1), "no output map"),
    (check_edge_norms, lambda A, V, W_O: A, "the weights alone"),
    (check_edge_norms, lambda A, V, W_O: np.linalg.norm(A @ V @ W_O, axis=1), "length of the sum"),
    (
        check_edge_norms,
        lambda A, V, W_O: np.tile(np.linalg.norm(V @ W_O, axis=1), (len(A), 1)),
        "no weight",
    ),
    (
        check_edge_norms,
        lambda A, V, W_O: ((A[..., None] * (V @ W_O)) ** 2).sum(axis=-1),
        "squared length",
    ),
    (check_edge_norms, lambda A, V, W_O: abs(A[..., None] * (V @ W_O)).sum(-1), "sum of absolute"),
    (check_cut_edge, lambda A, i, j, r: cut_by_loops(A, j, i, r), "query and key exchanged"),
    (check_cut_edge, lambda A, i, j, r: cut_by_loops(A, i, j, True), "always renormalised"),
    (check_cut_edge, lambda A, i, j, r: cut_by_loops(A, i, j, False), "never renormalised"),
    (check_cut_edge, lambda A, i, j, r: column_cut(A, j, r), "the key cut for every query"),
    (check_cut_edge, lambda A, i, j, r: given_to_all(A, i, j, r), "shared out evenly"),
    (check_cut_edge, lambda A, i, j, r: divided_by_nothing(A, i, j, r), "an empty row divided"),
    ("ex-interp-lengths", [0.1, 3.0, 4.0, 2.24], "these are the lengths of the values"),
    ("ex-interp-lengths", [0.7, 0.1, 0.1, 0.1], "these are the weights"),
    ("ex-interp-lengths", [0.07, 0.3, 0.4, 0.1], "you added the entries"),
    ("ex-interp-lengths", [0.07, 0.3, 0.4, 0.3], "you added the sizes of the entries"),
    ("ex-interp-lengths", [0.005, 0.09, 0.16, 0.05], "you left out the root"),
    ("ex-interp-ranks", [0.09, 0.09, 0.96, 0.5], "these are ordinary correlations"),
    ("ex-interp-ranks", [-0.3, 0.5, 0.89, 0.5], "the equal zeros got the ranks 1, 2, 3"),
    ("ex-interp-ranks", [0.5, 0.5, 0.89, 0.5], "the equal zeros got the ranks 3, 2, 1"),
    ("ex-interp-ranks", [0.11, 0.11, 0.89, 0.5], "the noise makes three different numbers"),
    ("ex-interp-ranks", [0.11, 0.5, 1, 0.5], "the largest correlation is 1 only"),
    ("ex-interp-ranks", [0.11, 0.5, 0.89, 0.6], "you counted"),
    ("ex-interp-ranks", [-0.3, 0.5, 1, 0.5], None),
    ("ex-interp-volume", [1.41, 1.41], "that is the length of c before"),
    ("ex-interp-volume", [0.71, 0.35], "you divided c alone"),
    ("ex-interp-volume", [2, 2], "that is how long the whole row"),
    ("ex-interp-volume", [0.34, 0.17], "you divided by the length of the row"),
    ("ex-interp-volume", [0.68, 0.68], "the second number is for"),
    ("ex-interp-volume", [0.68, 1.35], "twice the direct path leaves less"),
    ("ex-interp-volume", [0.59, 0.3], "the variance of a norm"),
    ("ex-interp-construct", [[0.5, 0.2, 0.3, 0], [0.2, 0.5, 0, 0.3]], "the first row should be"),
    ("ex-interp-construct", [[0, 0.7, -0.2, 0.5], [0.7, 0, 0.5, -0.2]], "you went on until"),
    ("ex-interp-construct", [[0.3, 0.4, 0.1, 0.2], [0.5, 0.2, 0.3, 0]], "both ends are taken"),
    ("ex-interp-construct", [[0.4, 0.3, 0.2, 0.1], [0.5, 0.2, 0.3, 0]], "one of your rows is"),
    ("ex-interp-construct", [[0.2, 0.3, 0.4, 0.1], [0.4, 0.1, 0.2, 0.3]], "your rows exchange"),
    ("ex-interp-judge", [1, 1, 1, 1, 1, 1], "four of the six sentences"),
    ("ex-interp-judge", [0, 0, 0, 0, 0, 0], "two of the sentences"),
    ("ex-interp-judge", [1, 1, 1, 0, 0, 0], "head 1 may do the same"),
    ("ex-interp-judge", [1, 0, 1, 1, 0, 0], "a row of layer 5 holds"),
    ("ex-interp-judge", [1, 0, 1, 0, 1, 0], "where nearly all effects are equal"),
    ("ex-interp-judge", [1, 0, 1, 0, 0, 1], "masking also makes"),
]


def column_cut(A, key, renormalise):
    cut = np.where(np.arange(A.shape[1]) == key, 0, A)
    total = cut.sum(axis=1, keepdims=True)
    return cut / np.where(total == 0, 1, total) if renormalise else cut


def given_to_all(A, query, key, renormalise):
    cut = A.copy()
    cut[query, key] = 0
    if renormalise:
        cut[query] += A[query, key] / (A.shape[1] - 1) * (np.arange(A.shape[1]) != key)
    return cut


def divided_by_nothing(A, query, key, renormalise):
    cut = A.copy()
    cut[query, key] = 0
    return (
        cut
        if not renormalise
        else np.vstack([*cut[:query], cut[query] / sum(cut[query]), *cut[query + 1 :]])
    )


test_wrong_answers_are_named = named(WRONG)


def test_changing_the_given_weights_is_told():
    def in_place(A, query, key, renormalise):
        A[query, key] = 0
        if renormalise and A[query].any():
            A[query] /= A[query].sum()
        return A

    report = check_cut_edge(in_place)
    assert not report.ok and "changes `A`" in report.text
