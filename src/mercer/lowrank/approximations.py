"""What a user passes as `approximation=`: which feature map stands for the kernel.

    LSSVC(approximation=Nystrom(1000)),      SVC(approximation=RandomFourier(2000)),      ...

Each is a value: it compares by its fields, prints as the call that builds it, and goes to JSON and back.  All with
landmarks keep the model small: its expansion has at most m points, however many it was trained on.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mercer.errors import BudgetTooSmall, InvalidInput
from mercer.kernels import Kernel
from mercer.loading import load
from mercer.lowrank import landmarks as methods
from mercer.lowrank.feature_map import (
    FeatureMap,
    KernelMap,
    principal_components_map,
    spectral_map,
    triangular_map,
)
from mercer.parameters import Value, described, rebuilt
from mercer.resources import parse, show

if TYPE_CHECKING:
    from mercer.lowrank.landmarks import Landmarks

Rows = tuple[tuple[float, ...], ...]
Given = Mapping[str, Any]

MATRICES = 4  # m x m matrices a machine on m landmarks holds at once


def _fourier_map(*given: Any, **options: Any) -> FeatureMap:
    """The map of that name; its module is loaded for those who ask for it."""
    found: FeatureMap = load("mercer.lowrank.fourier").fourier_map(*given, **options)
    return found


def _whole(value: Any, name: str, least: int, optional: bool = True) -> int | None:
    if optional and value is None:
        return None
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        none = ", or None" if optional else ""
        raise InvalidInput(f"{name} must be a whole number of at least {least}{none}, got {value!r}")
    return int(value)


def _share(value: Any, name: str) -> Any:
    if value is not None and (not isinstance(value, Real) or isinstance(value, bool) or not 0.0 <= float(value) < 1.0):
        raise InvalidInput(f"{name} must be a number from 0 to below 1, got {value!r}")
    return value


def _ridge(value: Any, name: str) -> Any:
    if value not in ("kernel", "identity"):
        raise InvalidInput(f"{name} must be 'kernel' or 'identity', got {value!r}")
    return value


def _landmarks(value: Any, name: str) -> str | Rows:
    """The name of a method, or points (m, d) as tuples of numbers."""
    if isinstance(value, str):
        if value not in methods.METHODS:
            raise InvalidInput(f"{name}={value!r} is not known; choose one of {', '.join(methods.METHODS)}")
        return value
    try:
        values = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 2 or values.size == 0 or not np.isfinite(values).all():
        raise InvalidInput(f"{name} must be the name of a method, or finite points as a dense array (m, d)")
    return tuple(map(tuple, values.tolist()))


@dataclass(frozen=True)
class Approximation(Value, ABC):
    """Base: m landmarks or features, and how a feature map is made of them."""

    m: int
    _checks = {
        "m": partial(_whole, least=1, optional=False),
        "landmarks": _landmarks,
        "seed": partial(_whole, least=0),
        "rank": partial(_whole, least=1),
        "tol": _share,
        "ridge": _ridge,
    }

    @property
    def supervised(self) -> bool:
        """Whether the map depends on the targets."""
        return False

    def feature_map(
        self,
        kernel: Kernel,
        X: Any,
        *,
        y: Any = None,
        weights: Any = None,
        seed: int | None = None,
        memory: int | str | None = None,
    ) -> FeatureMap:
        """The map for points X (n, d), dense or CSR, with targets y and weights (n,).

        The approximation's own seed goes before `seed`; `memory` bounds what the choice of landmarks may take.
        """
        if memory is not None and not isinstance(self, RandomFourier):
            self._refuse_beyond(int(X.shape[0]), memory)
        own = getattr(self, "seed", None)
        given = {"y": y, "weights": weights, "seed": seed if own is None else own, "memory": memory}
        return self._map(kernel, X, given)

    def _refuse_beyond(self, n: int, memory: int | str) -> None:
        """Refuse landmarks whose own matrices do not fit in the memory, before any of them is computed."""
        m = min(n, self.m)
        needed, allowed = 8 * MATRICES * m * m, parse(memory)
        if needed > allowed:
            raise BudgetTooSmall(
                f"{type(self).__name__}(m={m}) takes {show(needed)} for the kernel values between its landmarks, "
                f"memory allows {show(allowed)}: take fewer landmarks, or raise memory"
            )

    @abstractmethod
    def _map(self, kernel: Kernel, X: Any, given: Given) -> FeatureMap:
        """The same with y, weights, seed and memory in `given`."""

    def to_dict(self) -> dict[str, Any]:
        """Names and numbers that rebuild it, ready for JSON."""
        return described(self)


def approximation_from_dict(description: Any) -> Approximation:
    """The approximation that `to_dict` described."""
    return rebuilt(description, APPROXIMATIONS, "approximation")


@dataclass(frozen=True)
class _OnLandmarks(Approximation):
    """Landmarks by a method of `mercer.lowrank.landmarks`, or points (m, d) given as they are."""

    landmarks: Any = "uniform"
    seed: int | None = None

    @property
    def supervised(self) -> bool:
        """Whether the landmarks are chosen by the targets."""
        return isinstance(self.landmarks, str) and self.landmarks in methods.SUPERVISED

    def _choose(self, kernel: Kernel, X: Any, given: Given) -> "tuple[Any, Landmarks | None]":
        """Landmarks (at most m, d) of X, and what is known of them where they were chosen here."""
        if not isinstance(self.landmarks, str):
            points = np.array(self.landmarks)
            if points.shape[1] != X.shape[1]:
                raise InvalidInput(f"the landmarks have {points.shape[1]} features, X has {X.shape[1]}")
            return points, None
        chosen = methods.choose(kernel, X, self.m, method=self.landmarks, measure=False, **given)
        return chosen.points, chosen

    def _map(self, kernel: Kernel, X: Any, given: Given) -> FeatureMap:
        """The map on the landmarks, with what is known of them."""
        points, chosen = self._choose(kernel, X, given)
        found = self._on(kernel, points)
        found.landmarks = chosen
        return found

    @abstractmethod
    def _on(self, kernel: Kernel, points: Any) -> KernelMap:
        """The map on landmarks (m, d)."""


@dataclass(frozen=True)
class Nystrom(_OnLandmarks):
    """K~ = A B^+ A' on m landmarks: the rectangle method, subset of regressors, reduced basis and fixed-size machine.

    Parameters
    ----------
    m : number of landmarks; all points where there are fewer.
    landmarks : the name of a method of `mercer.lowrank.landmarks`, such as "uniform" or "kmeans++", or points (m, d).
    rank : keep only so many eigenvalues of B; None keeps all above `tol`.
    tol : share of the largest pivot (or eigenvalue, with `rank`) below which a landmark counts as dependent on the
        others; None is m times the rounding unit.
    seed : of the choice; None leaves it to the machine, which makes a fit repeatable.

    """

    rank: int | None = None
    tol: float | None = None

    def _on(self, kernel: Kernel, points: Any) -> KernelMap:
        """T from the pivoted Cholesky factor of B, or its leading eigenvectors where a rank is given."""
        if self.rank is None:
            return triangular_map(kernel, points, self.tol)
        return spectral_map(kernel, points, self.rank, self.tol)


@dataclass(frozen=True)
class FixedSize(_OnLandmarks):
    """The fixed-size LS-SVM: landmarks of large quadratic Renyi entropy, features from the eigenvectors of B.

    (Suykens and others 2002; Hamers 2004, section 5.5.)  On the same landmarks it equals `Nystrom`.
    """

    landmarks: Any = "entropy"
    tol: float | None = None

    def _on(self, kernel: Kernel, points: Any) -> KernelMap:
        """T = U diag(l)^-1/2."""
        return spectral_map(kernel, points, None, self.tol)


@dataclass(frozen=True)
class IncompleteCholesky(Approximation):
    """K ~ G G' by Cholesky with pivots, until the largest remaining diagonal entry is below `tol` or rank m is reached.

    (Fine and Scheinberg 2001; Hamers 2004, section 5.3, whose tolerance is the default.)  `tol` is relative to the
    largest diagonal entry of the kernel.
    """

    tol: float = 1e-3

    def _map(self, kernel: Kernel, X: Any, given: Given) -> FeatureMap:
        """The pivots in their order, and T from the factor of B."""
        chosen = methods.choose(kernel, X, self.m, method="pivoted_cholesky", measure=False, tol=self.tol, **given)
        found = triangular_map(kernel, chosen.points)
        found.landmarks = chosen
        return found


@dataclass(frozen=True)
class KernelPCA(_OnLandmarks):
    """The leading `rank` kernel principal components of m landmarks (all of them where `rank` is None)."""

    rank: int | None = None
    tol: float | None = None

    def _on(self, kernel: Kernel, points: Any) -> KernelMap:
        """Scores of the centred kernel."""
        return principal_components_map(kernel, points, self.rank, self.tol)


@dataclass(frozen=True)
class ReducedBasis(_OnLandmarks):
    """f(x) = sum_j alpha_j k(s_j, x) on m landmarks with the penalty of the kernel, or with ||alpha||^2.

    ridge : "kernel" is 1/2 alpha'B alpha, the same machine as `Nystrom`; "identity" is 1/2 ||alpha||^2, the reduced
        support vector machine (Lee and Mangasarian 2001; Hamers 2004, section 5.4), a network of kernel functions with
        a ridge on its weights.
    """

    ridge: Literal["kernel", "identity"] = "kernel"

    def _on(self, kernel: Kernel, points: Any) -> KernelMap:
        """Kernel values themselves for the identity, T from the factor of B for the kernel."""
        return KernelMap(kernel, points) if self.ridge == "identity" else triangular_map(kernel, points)


@dataclass(frozen=True)
class RandomFourier(Approximation):
    """m random cosines and sines, for stationary kernels (Rahimi and Recht 2007); m is made even."""

    seed: int | None = None

    def _map(self, kernel: Kernel, X: Any, given: Given) -> FeatureMap:
        """Independent frequencies from the kernel's spectral density; of X only the number of features matters."""
        return _fourier_map(kernel, int(X.shape[1]), self.m, given["seed"])


@dataclass(frozen=True)
class OrthogonalFourier(RandomFourier):
    """The same with frequencies orthogonal in blocks of d, for isotropic kernels: less variance (Yu et al. 2016)."""

    def _map(self, kernel: Kernel, X: Any, given: Given) -> FeatureMap:
        """Directions from random rotations, lengths from the kernel's spectral density."""
        return _fourier_map(kernel, int(X.shape[1]), self.m, given["seed"], orthogonal=True)


APPROXIMATIONS: dict[str, type[Approximation]] = {
    kind.__name__: kind
    for kind in (Nystrom, FixedSize, IncompleteCholesky, KernelPCA, ReducedBasis, RandomFourier, OrthogonalFourier)
}
