"""Do two multiclass schemes differ: agreement, paired tests, and where the errors of their machines come from.

On the same n points with true classes y, let b be the number of points that only the first scheme has right and c the
number that only the second has, so that the error rates, first minus second, differ by (c - b)/n.  Of that difference
this file gives

* McNemar's exact test: under equal error rates b ~ Binomial(b + c, 1/2), p = min(1, 2 P[b' <= min(b, c)]);
* a paired bootstrap interval: points are drawn with replacement, which for a difference of rates is one multinomial
  draw of the counts (c, b, rest);
* the effect size b/(b + c), the share of disagreements in correctness that the first scheme wins.

The source (Rifkin 2002, chapter 4) reports how often two schemes predict the same class and, for every error of
one-versus-all, which share of the machines of another code that tell the true class from the chosen one side with the
chosen one: a code can mend an error only where that share is below about one half.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest

from mercer.errors import InvalidInput

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Agreement:
    """Shares of identical predictions: `pairs` (s, s) of two schemes each, `all` of all s schemes at once."""

    names: tuple[str, ...]
    pairs: Array
    all: float

    def between(self, first: str, second: str) -> float:
        """Share of points on which two schemes, by name, predict the same class."""
        return float(self.pairs[self.names.index(first), self.names.index(second)])


def agreement(predictions: Mapping[str, ArrayLike]) -> Agreement:
    """How often schemes predict the same class; predictions (n,) of each by its name."""
    names = tuple(predictions)
    columns = [np.asarray(predictions[name]) for name in names]
    if not columns or len({column.shape for column in columns}) != 1 or columns[0].ndim != 1 or not len(columns[0]):
        raise InvalidInput("predictions must be one or more arrays (n,) of one length, at least one point long.")
    pairs = np.array([[np.mean(first == second) for second in columns] for first in columns])
    same = np.all([column == columns[0] for column in columns], axis=0)
    return Agreement(names, pairs, float(np.mean(same)))


@dataclass(frozen=True)
class Comparison:
    """Two schemes on the same points.

    first, second: their error rates; difference: first minus second, with its interval low to high at `level`;
    only_first, only_second: points that only one has right; p: McNemar's exact test; won: only_first over their sum
    (one half where there is no such point); same: share of identical predictions.
    """

    first: float
    second: float
    difference: float
    low: float
    high: float
    level: float
    only_first: int
    only_second: int
    p: float
    won: float
    same: float

    def __str__(self) -> str:
        return (
            f"{100 * self.first:.2f} % against {100 * self.second:.2f} %: difference {100 * self.difference:+.2f} "
            f"[{100 * self.low:+.2f}, {100 * self.high:+.2f}], {self.only_first} to {self.only_second} points, "
            f"p = {self.p:.3g}"
        )


def mcnemar(only_first: int, only_second: int) -> float:
    """Exact two-sided p-value for b and c points that only one of two schemes has right."""
    return float(binomtest(only_first, only_first + only_second).pvalue) if only_first + only_second else 1.0


def bootstrap_interval(
    only_first: int, only_second: int, n: int, *, level: float = 0.95, draws: int = 20_000, seed: int | None = 0
) -> tuple[float, float]:
    """Percentile interval of the difference of error rates, first minus second, over resampled points."""
    if not 0 < level < 1:
        raise InvalidInput(f"level must lie strictly between 0 and 1; it is {level!r}.")
    if not 0 <= only_first + only_second <= n or n < 1:
        raise InvalidInput(f"{only_first} + {only_second} points cannot be part of {n}.")
    rest = n - only_first - only_second
    counts = np.random.default_rng(seed).multinomial(n, np.array([only_second, only_first, rest]) / n, size=draws)
    low, high = np.quantile((counts[:, 0] - counts[:, 1]) / n, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def compare(
    y: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    *,
    level: float = 0.95,
    draws: int = 20_000,
    seed: int | None = 0,
) -> Comparison:
    """Compare two schemes by their predictions (n,) of the true classes y (n,)."""
    truth, a, b = np.asarray(y), np.asarray(first), np.asarray(second)
    if truth.ndim != 1 or not len(truth) or a.shape != truth.shape or b.shape != truth.shape:
        raise InvalidInput(f"y and the predictions must be arrays of one length; {truth.shape}, {a.shape}, {b.shape}.")
    right, other = a == truth, b == truth
    only_first, only_second = int(np.sum(right & ~other)), int(np.sum(other & ~right))
    n, both = len(truth), only_first + only_second
    low, high = bootstrap_interval(only_first, only_second, n, level=level, draws=draws, seed=seed)
    return Comparison(
        first=float(np.mean(~right)),
        second=float(np.mean(~other)),
        difference=(only_second - only_first) / n,
        low=low,
        high=high,
        level=level,
        only_first=only_first,
        only_second=only_second,
        p=mcnemar(only_first, only_second),
        won=only_first / both if both else 0.5,
        same=float(np.mean(a == b)),
    )


def rate_interval(errors: int, n: int, *, level: float = 0.95) -> tuple[float, float]:
    """Clopper-Pearson interval of an error rate from `errors` of n points: for a number without predictions."""
    if not 0 <= errors <= n or n < 1:
        raise InvalidInput(f"{errors} errors of {n} points do not make a rate.")
    low, high = binomtest(errors, n).proportion_ci(level)
    return float(low), float(high)


def siding_with_the_error(code: ArrayLike, outputs: ArrayLike, truth: ArrayLike, chosen: ArrayLike) -> Array:
    """Shares e (n,) of the machines that separate the true from the chosen class which side with the chosen one.

    code M (classes, machines) and outputs (n, machines) of the code under study; truth and chosen (n,) row numbers,
    different at every point: the errors of another scheme.  A machine separates two classes if it uses both, with
    opposite signs: machines with a zero for either are left out.  An output of exactly 0 sides with each by one half;
    e is NaN where no machine separates the two.
    """
    M, f = np.asarray(code, dtype=np.float64), np.asarray(outputs, dtype=np.float64)
    i, j = np.asarray(truth, dtype=np.intp), np.asarray(chosen, dtype=np.intp)
    if f.shape != (len(i), M.shape[1]) or i.shape != j.shape:
        raise InvalidInput(f"outputs must be (points, machines) = ({len(i)}, {M.shape[1]}); the shape is {f.shape}.")
    if np.any(i == j):
        raise InvalidInput("truth and chosen must differ at every point: pass the errors only.")
    separates = M[i] * M[j] < 0
    sides = (1.0 + np.sign(f) * M[j]) / 2.0
    count = np.sum(separates, axis=1)
    total = np.sum(np.where(separates, sides, 0.0), axis=1)
    return np.asarray(np.divide(total, count, out=np.full(len(i), np.nan), where=count > 0))


def reverse_distribution(values: ArrayLike, at: ArrayLike) -> Array:
    """Share of the values that are at least t, for each t of `at`; NaN among the values are left out."""
    finite: Any = np.asarray(values, dtype=np.float64)
    finite = np.sort(finite[~np.isnan(finite)])
    points = np.asarray(at, dtype=np.float64)
    if not len(finite):
        return np.full(points.shape, np.nan)
    return np.asarray(1.0 - np.searchsorted(finite, points - 1e-12, side="left") / len(finite))
