"""Kernels on histograms, that is on points with no negative feature: chi-square and intersection."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from mercer.errors import InvalidInput
from mercer.kernels.base import Kernel
from mercer.kernels.distances import columns, merged
from mercer.kernels.points import Matrix, Points, Width, prepare, width


def _sums(X: Points) -> Matrix:
    """sum_p x_p, (n,)."""
    return np.asarray(X.sum(axis=1), dtype=np.float64).ravel()


class _Histogram(Kernel):
    """A kernel on points without negative features."""

    def _prepare(self, X: Any) -> Points:
        return _nonnegative(prepare(X, "X"), "X", self)

    def _matrix(self, X: Any, Z: Any) -> Matrix:
        return super()._matrix(self._prepare(X), None if Z is None else _nonnegative(prepare(Z, "Z"), "Z", self))

    def _slopes_of(self, X: Any, Z: Any) -> dict[str, Matrix]:
        return super()._slopes_of(self._prepare(X), None if Z is None else _nonnegative(prepare(Z, "Z"), "Z", self))


def _nonnegative(X: Points, name: str, kernel: Kernel) -> Points:
    if (X.data if sp.issparse(X) else X).min(initial=0.0) < 0.0:
        raise InvalidInput(
            f"{name} has negative values, and {type(kernel).__name__} compares histograms; shift or count the features"
        )
    return X


def _chi_square(X: Points, Z: Points | None) -> Matrix:
    """sum_p (x_p - z_p)^2 / (x_p + z_p), (n, m), where 0/0 counts as 0."""
    if sp.issparse(X) or sp.issparse(Z):
        return merged("chi_square", X, Z)
    result = np.zeros((X.shape[0], X.shape[0] if Z is None else Z.shape[0]))
    for x, z in columns(X, Z):
        total = x + z
        result += np.square(x - z) / np.where(total > 0.0, total, 1.0)
    return result


@dataclass(frozen=True)
class ChiSquare(_Histogram):
    """exp(-1/sigma sum_p (x_p - z_p)^2 / (x_p + z_p)), x, z >= 0; scikit-learn's gamma is 1 / sigma."""

    sigma: Width = 1.0
    _widths: ClassVar[tuple[str, ...]] = ("sigma",)

    def __post_init__(self) -> None:
        self._set(sigma=width(self.sigma, "sigma"))

    def _evaluate(self, X: Points, Z: Points | None) -> Matrix:
        return np.asarray(np.exp(-_chi_square(X, Z) / float(self.sigma)))

    def _diagonal(self, X: Points) -> Matrix:
        return np.ones(X.shape[0])

    def _derivatives(self, X: Points, Z: Points | None) -> dict[str, Matrix]:
        distance = _chi_square(X, Z) / float(self.sigma)
        return {"sigma": np.exp(-distance) * distance / float(self.sigma)}

    def _diagonal_derivatives(self, X: Points) -> dict[str, Matrix]:
        return {"sigma": np.zeros(X.shape[0])}


@dataclass(frozen=True)
class AdditiveChiSquare(_Histogram):
    """sum_p 2 x_p z_p / (x_p + z_p), x, z >= 0: positive definite; k(x, x) = sum_p x_p.

    From 4xz/(x + z) = x + z - (x - z)^2/(x + z).
    """

    def _evaluate(self, X: Points, Z: Points | None) -> Matrix:
        left = _sums(X)
        right = left if Z is None else _sums(Z)
        return 0.5 * (left[:, None] + right[None, :] - _chi_square(X, Z))

    def _diagonal(self, X: Points) -> Matrix:
        return _sums(X)


@dataclass(frozen=True)
class ChiSquareDistance(_Histogram):
    """-sum_p (x_p - z_p)^2 / (x_p + z_p), x, z >= 0: conditionally positive definite of order 1.

    It is scikit-learn's "additive_chi2".
    """

    _order: ClassVar[int] = 1

    def _evaluate(self, X: Points, Z: Points | None) -> Matrix:
        return -_chi_square(X, Z)

    def _diagonal(self, X: Points) -> Matrix:
        return np.zeros(X.shape[0])


@dataclass(frozen=True)
class HistogramIntersection(_Histogram):
    """sum_p min(x_p, z_p), x, z >= 0: the mass two histograms share."""

    def _evaluate(self, X: Points, Z: Points | None) -> Matrix:
        if sp.issparse(X) or sp.issparse(Z):
            return merged("smaller", X, Z)
        result = np.zeros((X.shape[0], X.shape[0] if Z is None else Z.shape[0]))
        for x, z in columns(X, Z):
            result += np.minimum(x, z)
        return result

    def _diagonal(self, X: Points) -> Matrix:
        return _sums(X)
