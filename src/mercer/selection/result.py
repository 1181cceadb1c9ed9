"""What a search found: every candidate with its scores, and which one is best."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Array = NDArray[np.float64]

SAME = 1e-12  # scores closer than this are a tie


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Candidates (m of them) with scores (m, f) in f folds, larger being better.

    `status` is "done", "stopped early" (a path of C that had clearly turned), "dropped" (in an earlier round of
    halving) or "not reached" (time limit, Ctrl-C); scores are NaN where there are none.  `points` is how many points
    a candidate was judged on, `support` its mean number of support vectors, `seconds` its share of the work.
    """

    candidates: tuple[dict[str, float], ...]
    scores: Array
    support: Array
    seconds: Array
    points: NDArray[np.intp]
    status: tuple[str, ...]
    stopped: str
    total_seconds: float
    resumed: int = 0
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def mean(self) -> Array:
        """Mean score of each candidate over the folds, NaN where one is missing."""
        return np.asarray(self.scores.mean(axis=1))

    @property
    def std(self) -> Array:
        """Standard deviation of the scores over the folds."""
        return np.asarray(self.scores.std(axis=1))

    @property
    def standard_error(self) -> float:
        """Standard error of the best candidate's mean score."""
        return float(self.scores[self.best_index].std(ddof=1) / np.sqrt(self.scores.shape[1]))

    @property
    def best_index(self) -> int:
        """The best candidate; among equals the one with smaller C, then with the larger width (the smoother machine).

        A search that was stopped before any candidate was finished answers with the best of the unfinished ones.
        """
        done = np.array([status == "done" for status in self.status])
        means = np.where(done, self.mean, np.nan)
        if np.isnan(means).all():
            counted = np.maximum((~np.isnan(self.scores)).sum(axis=1), 1)
            means = np.where(np.isnan(self.scores).all(axis=1), np.nan, np.nansum(self.scores, axis=1) / counted)
        if np.isnan(means).all():
            return len(self.candidates) // 2
        equal = np.flatnonzero(means >= np.nanmax(means) - SAME)
        return int(min(equal, key=lambda i: (self.candidates[i]["C"], -self.candidates[i].get("sigma", 0.0))))

    @property
    def best(self) -> dict[str, float]:
        """Parameters of the best candidate."""
        return dict(self.candidates[self.best_index])

    @property
    def best_score(self) -> float:
        """Mean score of the best candidate."""
        return float(np.nanmean(self.scores[self.best_index])) if self.evaluated else float("nan")

    @property
    def evaluated(self) -> int:
        """Number of candidates with a score in every fold."""
        return int(np.isfinite(self.mean).sum())

    def surface(self) -> tuple[Array, Array, Array]:
        """Values of C (c,), of the width (s,) and the mean scores (s, c), NaN where there is none.

        A kernel without a width has one row; of several epsilons that of the best candidate is shown.
        """
        chosen = self.best.get("epsilon")
        shown = [i for i, c in enumerate(self.candidates) if c.get("epsilon") == chosen]
        C = np.unique([self.candidates[i]["C"] for i in shown])
        sigma = np.unique([self.candidates[i].get("sigma", np.nan) for i in shown])
        scores = np.full((len(sigma), len(C)), np.nan)
        mean = self.mean
        for i in shown:
            row = 0 if len(sigma) == 1 else int(np.searchsorted(sigma, self.candidates[i]["sigma"]))
            scores[row, int(np.searchsorted(C, self.candidates[i]["C"]))] = mean[i]
        return C, sigma, scores

    def edges(self) -> list[str]:
        """Parameters whose best value is the smallest or largest that was tried, as "C = 1000 (largest)"."""
        found = []
        for name, value in self.best.items():
            values = {c[name] for c in self.candidates}
            if name == "epsilon" or len(values) < 3:
                continue
            for end, word in ((min(values), "smallest"), (max(values), "largest")):
                if value == end:
                    found.append(f"{name} = {value:.4g} ({word})")
        return found

    def table(self) -> dict[str, Any]:
        """Columns in the style of scikit-learn's `cv_results_`."""
        mean = self.mean
        rank = rankdata(np.where(np.isnan(mean), np.inf, -mean), method="min").astype(np.int32)
        columns: dict[str, Any] = {"params": [dict(c) for c in self.candidates]}
        for name in self.candidates[0]:
            columns[f"param_{name}"] = np.array([c[name] for c in self.candidates])
        for f in range(self.scores.shape[1]):
            columns[f"split{f}_test_score"] = self.scores[:, f]
        return columns | {
            "mean_test_score": mean,
            "std_test_score": self.std,
            "rank_test_score": rank,
            "mean_support_vectors": self.support,
            "mean_fit_time": self.seconds / self.scores.shape[1],
            "n_points": self.points,
            "status": list(self.status),
        }
