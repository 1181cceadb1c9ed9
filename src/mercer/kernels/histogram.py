"""Kernels on histograms, that is on points with no negative feature: chi-square and intersection."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from mercer.errors import InvalidInput
from mercer.kernels.base import Kernel
from mercer.kernels.checks import Matrix, Width, width
from mercer.kernels.distances import row_sums
from mercer.kernels.pairs import Pairs, Same


class _Histogram(Kernel):
    """A kernel on points without negative features."""

    def _values(self, pairs: Pairs) -> Matrix:
        return self._of(self._histograms(pairs))

    @abstractmethod
    def _of(self, pairs: Pairs) -> Matrix:
        """The kernel at pairs of histograms."""

    def _histograms(self, pairs: Pairs) -> Pairs:
        """The pairs, refused where a feature is negative."""
        for points, name in zip(pairs.points, "XZ", strict=True):
            if points is not None and (points.data if sp.issparse(points) else points).min(initial=0.0) < 0.0:
                kind = type(self).__name__
                raise InvalidInput(
                    f"{name} has negative values, and {kind} compares histograms; shift or count the features"
                )
        return pairs


def _chi_square(pairs: Pairs) -> Matrix:
    """sum_p (x_p - z_p)^2 / (x_p + z_p), where 0/0 counts as 0."""
    if pairs.sparse or isinstance(pairs, Same):
        return pairs.merged("chi_square")
    result = np.zeros(pairs.shape)
    for x, z in pairs.columns():
        total = x + z
        result += np.square(x - z) / np.where(total > 0.0, total, 1.0)
    return result


@dataclass(frozen=True)
class ChiSquare(_Histogram):
    """exp(-1/sigma sum_p (x_p - z_p)^2 / (x_p + z_p)), x, z >= 0; scikit-learn's gamma is 1 / sigma."""

    sigma: Width = 1.0
    _checks = {"sigma": width}

    def _of(self, pairs: Pairs) -> Matrix:
        return np.asarray(np.exp(-_chi_square(pairs) / float(self.sigma)))

    def _slopes(self, pairs: Pairs) -> dict[str, Matrix]:
        distance = _chi_square(self._histograms(pairs)) / float(self.sigma)
        return {"sigma": np.exp(-distance) * distance / float(self.sigma)}


@dataclass(frozen=True)
class AdditiveChiSquare(_Histogram):
    """sum_p 2 x_p z_p / (x_p + z_p), x, z >= 0: positive definite; k(x, x) = sum_p x_p.

    From 4xz/(x + z) = x + z - (x - z)^2/(x + z).
    """

    def _of(self, pairs: Pairs) -> Matrix:
        left, right = pairs.each(lambda same: row_sums(same.points[0]))
        return 0.5 * (left + right - _chi_square(pairs))


@dataclass(frozen=True)
class ChiSquareDistance(_Histogram):
    """-sum_p (x_p - z_p)^2 / (x_p + z_p), x, z >= 0: conditionally positive definite of order 1.

    It is scikit-learn's "additive_chi2".
    """

    _order = 1

    def _of(self, pairs: Pairs) -> Matrix:
        return -_chi_square(pairs)


@dataclass(frozen=True)
class HistogramIntersection(_Histogram):
    """sum_p min(x_p, z_p), x, z >= 0: the mass two histograms share."""

    def _of(self, pairs: Pairs) -> Matrix:
        if pairs.sparse or isinstance(pairs, Same):
            return pairs.merged("smaller")
        result = np.zeros(pairs.shape)
        for x, z in pairs.columns():
            result += np.minimum(x, z)
        return result
