"""Paired comparison of two machines on the same folds.

- Corrected resampled t test (Nadeau and Bengio 2003): for differences d_1..d_J of fold scores,
      t = mean(d) / sqrt((1/J + n_test/n_train) var(d)),     J - 1 degrees of freedom,
  because training sets overlap and the plain t test is far too sure;
- McNemar's exact test: of the b + c points on which only one of two classifiers is right, b ~ Binomial(b + c, 1/2);
- effect sizes: Cohen's d = mean(d) / sd(d), and the share b / (b + c) of disagreements won;
- Holm's adjustment of the p-values of several pairs.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Corrected:
    """Mean difference with its 95 % interval, t, p and Cohen's d."""

    difference: float
    low: float
    high: float
    t: float
    p: float
    d: float


def corrected_t(differences: Array, test_share: float) -> Corrected:
    """The corrected resampled t test; `test_share` is n_test / n_train."""
    from scipy.stats import t

    J = len(differences)
    mean, variance = float(np.mean(differences)), float(np.var(differences, ddof=1))
    error = float(np.sqrt((1.0 / J + test_share) * variance))
    half = float(t.ppf(0.975, J - 1)) * error
    if error == 0.0:
        return Corrected(
            mean, mean, mean, 0.0 if mean == 0 else float(np.copysign(np.inf, mean)), float(mean == 0), 0.0
        )
    value = mean / error
    return Corrected(mean, mean - half, mean + half, value, float(2 * t.sf(abs(value), J - 1)), mean / variance**0.5)


def mcnemar(first_right: NDArray[np.bool_], second_right: NDArray[np.bool_]) -> tuple[int, int, float]:
    """Points only the first has right, only the second, and the exact p-value."""
    from mercer.multiclass import agreement

    b = int(np.sum(first_right & ~second_right))
    c = int(np.sum(second_right & ~first_right))
    return b, c, agreement.mcnemar(b, c)


def holm(p: list[float]) -> list[float]:
    """Adjusted p-values, in the order given."""
    order = np.argsort(p)
    adjusted = np.empty(len(p))
    largest = 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p) - rank) * p[index]))
        adjusted[index] = largest
    return [float(value) for value in adjusted]
