"""The quality of an order in every query, and intervals for its mean over queries.

Queries are drawn independently of one another and their documents are not, so that intervals come from drawing whole
queries with replacement (the percentile bootstrap, Efron 1979).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.ordinal import metrics

Array = NDArray[np.float64]

RESAMPLES = 1000
LARGEST_RELEVANCE = 50  # of which 2^y is a gain


@dataclass(frozen=True, eq=False)
class ByQuery:
    """Of q queries: their names, their points, the pairs of different rank, and how many of these are not in order.

    `tau` (q,) is Kendall's tau-b, NaN where all ranks or all values are equal; `ndcg` (q,), of the first k, and
    `precision` (q,), the average precision, are None where y are no relevances, whole numbers from 0 on.
    """

    names: NDArray[np.int64]
    points: NDArray[np.intp]
    pairs: Array
    wrong: Array
    tau: Array
    k: int
    ndcg: Array | None
    precision: Array | None

    def means(self, chosen: NDArray[np.intp] | None = None) -> dict[str, float]:
        """Share of all pairs in order, and means over queries, of all or of the `chosen` queries."""
        at = np.arange(len(self.names)) if chosen is None else chosen
        pairs = float(self.pairs[at].sum())
        known = self.tau[at][np.isfinite(self.tau[at])]
        found = {
            "pairs in order": 1.0 - float(self.wrong[at].sum()) / pairs if pairs else float("nan"),
            "kendall tau": float(known.mean()) if known.size else float("nan"),
        }
        if self.ndcg is not None and self.precision is not None:
            found |= {f"ndcg@{self.k}": float(self.ndcg[at].mean()), "map": float(self.precision[at].mean())}
        return found

    def intervals(self, level: float = 0.95, seed: int = 0) -> dict[str, tuple[float, float]]:
        """The interval of every mean; none for fewer than two queries."""
        q, random = len(self.names), np.random.default_rng(seed)
        if q < 2:
            return {}
        drawn = [self.means(random.integers(0, q, q)) for _ in range(RESAMPLES)]
        ends = [0.5 - level / 2.0, 0.5 + level / 2.0]
        found = {}
        for name in drawn[0]:
            values = np.array([means[name] for means in drawn])
            if np.isfinite(values).any():
                low, high = np.nanquantile(values, ends)
                found[name] = (float(low), float(high))
        return found


def by_query(y: ArrayLike, f: ArrayLike, groups: ArrayLike | None = None, k: int = 10) -> ByQuery:
    """Judge values f (n,) of points with ranks y (n,) in every group; without groups all points are one."""
    truth, values = np.asarray(y), np.asarray(f, dtype=np.float64)
    names, codes = np.unique(np.zeros(len(truth)) if groups is None else np.asarray(groups), return_inverse=True)
    order = np.argsort(codes, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(codes))[:-1])
    counts = np.array([metrics.pair_counts(truth[part], values[part]) for part in parts])
    graded = bool(np.all(truth == np.floor(truth)) and truth.min() >= 0 and truth.max() <= LARGEST_RELEVANCE)
    return ByQuery(
        names.astype(np.int64),
        np.array([len(part) for part in parts]),
        counts[:, 1],
        counts[:, 0],
        np.array([metrics.kendall_tau(truth[part], values[part]) for part in parts]),
        k,
        np.array([metrics.ndcg(truth[part], values[part], k=k) for part in parts]) if graded else None,
        np.array([metrics.mean_average_precision(truth[part], values[part]) for part in parts]) if graded else None,
    )
