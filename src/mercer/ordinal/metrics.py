"""How good an order is: losses on pairs, Kendall's tau-b, NDCG, average precision, absolute error in the rank.

The loss of a pair is 1 where its true ranks differ and the predictions do not order it the same way, a predicted tie
included; true ties cost nothing (Herbrich, Graepel and Obermayer 2000, section 2.3).  Over all m^2 ordered pairs

    R_pref = 2 bad / m^2,      scaled risk = bad / m',      m' = (m^2 - sum of n_k^2) / 2  pairs of different rank,

so that R_pref = (2 m' / m^2) * scaled risk (theorem 2.1, with its count corrected).  A constant prediction has scaled
risk 1; without predicted ties it is (1 - gamma) / 2 of Goodman and Kruskal.  Pairs are counted in O(m log m) by
sorting, or from the confusion matrix of q ranks in O(m + q^2).  With `groups` only pairs of one group count.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput
from mercer.problems.rank_sweeps import sweep
from mercer.problems.ranking import ranks_within

Matrix = NDArray[np.float64]


def _codes(values: ArrayLike | None, n: int) -> NDArray[np.intp]:
    """Numbers from 0 on in the order of the values (n,); all 0 where there are none."""
    if values is None:
        return np.zeros(n, dtype=np.intp)
    found = np.asarray(values)
    if found.shape != (n,):
        raise InvalidInput(f"arrays of {n} values were expected, got one of shape {found.shape}")
    return np.asarray(np.unique(found, return_inverse=True)[1], dtype=np.intp)


def _weights(weights: ArrayLike | None, n: int) -> Matrix:
    return np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)


def pair_counts(
    y: ArrayLike, f: ArrayLike, *, groups: ArrayLike | None = None, sample_weight: ArrayLike | None = None
) -> tuple[float, float]:
    """Pairs that f (n,) ties or puts in the wrong order, and all pairs of different y (n,), in O(n log n)."""
    values = np.asarray(f, dtype=np.float64)
    n = len(values)
    ranks, queries, w = _codes(y, n), _codes(groups, n), _weights(sample_weight, n)
    order = np.lexsort((values, queries))
    within, w = ranks_within(ranks, queries)[order], w[order]
    starts = np.concatenate(([0], np.cumsum(np.bincount(queries)))).astype(np.intp)
    # Places in the order stand for the values: whole numbers, of which j is not below i where j > i - 1/2.
    places = _codes(values, n)[order].astype(np.float64)
    out = np.empty((n, 4))
    sweep(places, within, w, w, starts, 0.5, -np.inf, out)
    wrong = float(w @ out[:, 0])
    sweep(np.zeros(n), within, w, w, starts, 0.5, -np.inf, out)
    return wrong, float(w @ out[:, 0])


def confusion_pair_counts(confusion: ArrayLike) -> tuple[float, float]:
    """The same from a confusion matrix (q, q), truth by prediction, in O(q^2)."""
    M = np.asarray(confusion, dtype=np.float64)
    if M.ndim != 2:
        raise InvalidInput(f"a confusion matrix has two dimensions, got {M.ndim}")
    # below[a, c]: objects of a lower rank than a that are predicted c or higher.
    below = np.vstack((np.zeros((1, M.shape[1])), np.cumsum(M, axis=0)[:-1]))
    at_least = np.cumsum(below[:, ::-1], axis=1)[:, ::-1]
    total = M.sum(axis=1)
    return float((M * at_least).sum()), float(0.5 * (total.sum() ** 2 - (total**2).sum()))


def pair_loss(y: ArrayLike, f: ArrayLike) -> float:
    """R_pref: the mean loss over all n^2 ordered pairs."""
    return 2.0 * pair_counts(y, f)[0] / len(np.asarray(y)) ** 2


def scaled_pair_loss(
    y: ArrayLike, f: ArrayLike, *, groups: ArrayLike | None = None, sample_weight: ArrayLike | None = None
) -> float:
    """The share of the pairs of different rank that f does not put in order, between 0 and 1."""
    wrong, total = pair_counts(y, f, groups=groups, sample_weight=sample_weight)
    if total == 0.0:
        raise InvalidInput("no two points of one group have different ranks: there is no pair to be in order")
    return wrong / total


def kendall_tau(y: ArrayLike, f: ArrayLike) -> float:
    """Kendall's tau-b, (concordant - discordant) / sqrt(untied in y * untied in f); NaN where one is constant."""
    truth, values = _codes(y, len(np.asarray(y))), _codes(f, len(np.asarray(y)))
    not_ordered, untied = pair_counts(truth, values)
    against = pair_counts(-truth, values)[0]  # concordant pairs and those tied by f alone
    tied = not_ordered + against - untied
    of_values = 0.5 * (len(values) ** 2 - float((np.bincount(values).astype(np.float64) ** 2).sum()))
    below = np.sqrt(untied * of_values)
    return float((against - tied - (not_ordered - tied)) / below) if below > 0.0 else float("nan")


def _in_groups(y: ArrayLike, f: ArrayLike, groups: ArrayLike | None) -> list[tuple[Matrix, Matrix]]:
    truth, values = np.asarray(y, dtype=np.float64), np.asarray(f, dtype=np.float64)
    codes = _codes(groups, len(truth))
    order = np.argsort(codes, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(codes))[:-1])
    return [(truth[part], values[part]) for part in parts]


def ndcg(y: ArrayLike, f: ArrayLike, *, k: int | None = None, groups: ArrayLike | None = None) -> float:
    """Mean over the groups of the normalised discounted cumulative gain of the first k.

    DCG = sum over places p of (2^y - 1) / log2(p + 1), over its largest value (Jarvelin and Kekalainen 2002; LETOR from
    version 4 on).  Ties of f stay in the order of the rows; a group without relevant documents counts as 0.
    """
    found = []
    for truth, values in _in_groups(y, f, groups):
        gains = 2.0**truth - 1.0
        size = len(truth) if k is None else min(k, len(truth))
        discount = 1.0 / np.log2(np.arange(size) + 2.0)
        best = float(discount @ np.sort(gains)[::-1][:size])
        mine = float(discount @ gains[np.argsort(-values, kind="stable")][:size])
        found.append(mine / best if best > 0.0 else 0.0)
    return float(np.mean(found))


def mean_average_precision(
    y: ArrayLike, f: ArrayLike, *, relevant: float = 1.0, groups: ArrayLike | None = None
) -> float:
    """Mean over the groups of the average precision at the relevant documents, y >= `relevant`; 0 without any."""
    found = []
    for truth, values in _in_groups(y, f, groups):
        hits = (truth >= relevant)[np.argsort(-values, kind="stable")]
        precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
        found.append(float(precision[hits].mean()) if hits.any() else 0.0)
    return float(np.mean(found))


def rank_error(y: ArrayLike, g: ArrayLike, classes: ArrayLike | None = None) -> float:
    """Mean absolute error in the rank: how many ranks lie between truth and answer; `classes` from low to high."""
    truth, answer = np.asarray(y), np.asarray(g)
    ranks = np.unique(np.concatenate((truth, answer))) if classes is None else np.asarray(classes)
    place: dict[Any, int] = {rank: i for i, rank in enumerate(ranks.tolist())}
    try:
        return float(np.mean([abs(place[a] - place[b]) for a, b in zip(truth.tolist(), answer.tolist())]))
    except KeyError as missing:
        raise InvalidInput(f"rank {missing} is not among the classes {list(place)}") from None


def preference_faults(preference: ArrayLike) -> dict[str, NDArray[np.intp]]:
    """Where p (n, n), of values -1, 0 and 1, is no preference.

    "asymmetry" (m, 2): p_ij is not -p_ji; "transitivity" (m, 3): i is preferred to j, j to k, and i not to k.
    """
    p = np.sign(np.asarray(preference, dtype=np.float64))
    if p.ndim != 2 or p.shape[0] != p.shape[1]:
        raise InvalidInput(f"preference must be a square matrix, got shape {p.shape}")
    over = p > 0.0
    cycles = [
        np.column_stack((np.full(len(found), i), found))
        for i in range(len(p))
        if len(found := np.argwhere(over[i][:, None] & over & ~over[i][None, :]))
    ]
    triples = np.concatenate(cycles) if cycles else np.empty((0, 3))
    return {"asymmetry": np.argwhere(np.triu(p != -p.T)), "transitivity": triples.astype(np.intp)}
