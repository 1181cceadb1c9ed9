"""What a user passes as `approximation=`: which feature map stands for the kernel.

    LSSVC(approximation=Nystrom(1000)),      SVC(approximation=RandomFourier(2000)),      ...

Each is a value: it compares by its fields, prints as the call that builds it, and goes to JSON and back.  All with
landmarks keep the model small: its expansion has at most m points, however many it was trained on.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

from mercer.errors import InvalidInput
from mercer.kernels import Kernel
from mercer.lowrank.feature_map import (
    FeatureMap,
    KernelMap,
    principal_components_map,
    spectral_map,
    triangular_map,
)
from mercer.lowrank.fourier import fourier_map
from mercer.lowrank.landmarks import METHODS, Landmarks, choose

Rows = tuple[tuple[float, ...], ...]
Given = Mapping[str, Any]


@dataclass(frozen=True)
class Approximation(ABC):
    """Base: m landmarks or features, and how a feature map is made of them."""

    m: int

    def __post_init__(self) -> None:
        if not isinstance(self.m, Integral) or isinstance(self.m, bool) or self.m < 1:
            raise InvalidInput(f"m must be a whole number of at least 1, got {self.m!r}")
        object.__setattr__(self, "m", int(self.m))
        self._check()

    def _check(self) -> None:  # noqa: B027 - not every kind has more than m
        """Refuse fields other than m that make no sense."""

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
        own = getattr(self, "seed", None)
        given = {"y": y, "weights": weights, "seed": seed if own is None else own, "memory": memory}
        return self._map(kernel, X, given)

    @abstractmethod
    def _map(self, kernel: Kernel, X: Any, given: Given) -> FeatureMap:
        """The same with y, weights, seed and memory in `given`."""

    def to_dict(self) -> dict[str, Any]:
        """Names and numbers that rebuild it, ready for JSON."""
        arguments = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"name": type(self).__name__, "arguments": {name: _plain(v) for name, v in arguments.items()}}


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def approximation_from_dict(description: Any) -> Approximation:
    """The approximation that `to_dict` described."""
    if not isinstance(description, Mapping) or set(description) != {"name", "arguments"}:
        raise InvalidInput("an approximation is described by its name and arguments")
    kind, arguments = APPROXIMATIONS.get(str(description["name"])), description["arguments"]
    if kind is None or not isinstance(arguments, Mapping):
        raise InvalidInput(f"{description['name']!r:.60} is no approximation; known are {', '.join(APPROXIMATIONS)}")
    unknown = set(arguments) - {field.name for field in fields(kind)}
    if unknown:
        raise InvalidInput(f"{kind.__name__} has no argument {sorted(unknown)!r:.80}")
    return kind(**dict(arguments))


@dataclass(frozen=True)
class _OnLandmarks(Approximation):
    """Landmarks by a method of `mercer.lowrank.landmarks`, or points (m, d) given as they are."""

    landmarks: Any = "uniform"
    seed: int | None = None

    def _check(self) -> None:
        if not isinstance(self.landmarks, str):
            object.__setattr__(self, "landmarks", _rows(self.landmarks))
        elif self.landmarks not in METHODS:
            raise InvalidInput(f"landmarks={self.landmarks!r} is not known; choose one of {', '.join(METHODS)}")
        _check_seed(self.seed)

    def _choose(self, kernel: Kernel, X: Any, given: Given) -> tuple[Any, Landmarks | None]:
        """Landmarks (at most m, d) of X, and what is known of them where they were chosen here."""
        if not isinstance(self.landmarks, str):
            points = np.array(self.landmarks)
            if points.shape[1] != X.shape[1]:
                raise InvalidInput(f"the landmarks have {points.shape[1]} features, X has {X.shape[1]}")
            return points, None
        chosen = choose(kernel, X, self.m, method=self.landmarks, measure=False, **given)
        return chosen.points, chosen


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

    def _check(self) -> None:
        super()._check()
        _check_rank(self.rank)
        _check_tol(self.tol)

    def _map(self, kernel: Kernel, X: Any, given: Given) -> FeatureMap:
        """T from the pivoted Cholesky factor of B, or its leading eigenvectors where a rank is given."""
        points, chosen = self._choose(kernel, X, given)
        if self.rank is None:
            return _said(triangular_map(kernel, points, self.tol), chosen)
        return _said(spectral_map(kernel, points, self.rank, self.tol), chosen)


@dataclass(frozen=True)
class FixedSize(_OnLandmarks):
    """The fixed-size LS-SVM: landmarks of large quadratic Renyi entropy, features from the eigenvectors of B.

    (Suykens and others 2002; Hamers 2004, section 5.5.)  On the same landmarks it equals `Nystrom`.
    """

    landmarks: Any = "entropy"
    tol: float | None = None

    def _check(self) -> None:
        super()._check()
        _check_tol(self.tol)

    def _map(self, kernel: Kernel, X: Any, given: Given) -> FeatureMap:
        """T = U diag(l)^-1/2."""
        points, chosen = self._choose(kernel, X, given)
        return _said(spectral_map(kernel, points, None, self.tol), chosen)


@dataclass(frozen=True)
class IncompleteCholesky(Approximation):
    """K ~ G G' by Cholesky with pivots, until the largest remaining diagonal entry is below `tol` or rank m is reached.

    (Fine and Scheinberg 2001; Hamers 2004, section 5.3, whose tolerance is the default.)  `tol` is relative to the
    largest diagonal entry of the kernel.
    """

    tol: float = 1e-3

    def _check(self) -> None:
        _check_tol(self.tol)

    def _map(self, kernel: Kernel, X: Any, given: Given) -> FeatureMap:
        """The pivots in their order, and T from the factor of B."""
        chosen = choose(kernel, X, self.m, method="pivoted_cholesky", measure=False, tol=self.tol, **given)
        return _said(triangular_map(kernel, chosen.points), chosen)


@dataclass(frozen=True)
class KernelPCA(_OnLandmarks):
    """The leading `rank` kernel principal components of m landmarks (all of them where `rank` is None)."""

    rank: int | None = None
    tol: float | None = None

    def _check(self) -> None:
        super()._check()
        _check_rank(self.rank)
        _check_tol(self.tol)

    def _map(self, kernel: Kernel, X: Any, given: Given) -> FeatureMap:
        """Scores of the centred kernel."""
        points, chosen = self._choose(kernel, X, given)
        return _said(principal_components_map(kernel, points, self.rank, self.tol), chosen)


@dataclass(frozen=True)
class ReducedBasis(_OnLandmarks):
    """f(x) = sum_j alpha_j k(s_j, x) on m landmarks with the penalty of the kernel, or with ||alpha||^2.

    ridge : "kernel" is 1/2 alpha'B alpha, the same machine as `Nystrom`; "identity" is 1/2 ||alpha||^2, the reduced
        support vector machine (Lee and Mangasarian 2001; Hamers 2004, section 5.4), a network of kernel functions with
        a ridge on its weights.
    """

    ridge: Literal["kernel", "identity"] = "kernel"

    def _check(self) -> None:
        super()._check()
        if self.ridge not in ("kernel", "identity"):
            raise InvalidInput(f"ridge must be 'kernel' or 'identity', got {self.ridge!r}")

    def _map(self, kernel: Kernel, X: Any, given: Given) -> FeatureMap:
        """Kernel values themselves for the identity, T from the factor of B for the kernel."""
        points, chosen = self._choose(kernel, X, given)
        if self.ridge == "identity":
            return _said(KernelMap(kernel, points), chosen)
        return _said(triangular_map(kernel, points), chosen)


@dataclass(frozen=True)
class RandomFourier(Approximation):
    """m random cosines and sines, for stationary kernels (Rahimi and Recht 2007); m is made even."""

    seed: int | None = None

    def _check(self) -> None:
        _check_seed(self.seed)

    def _map(self, kernel: Kernel, X: Any, given: Given) -> FeatureMap:
        """Independent frequencies from the kernel's spectral density; of X only the number of features matters."""
        return fourier_map(kernel, int(X.shape[1]), self.m, given["seed"])


@dataclass(frozen=True)
class OrthogonalFourier(RandomFourier):
    """The same with frequencies orthogonal in blocks of d, for isotropic kernels: less variance (Yu et al. 2016)."""

    def _map(self, kernel: Kernel, X: Any, given: Given) -> FeatureMap:
        """Directions from random rotations, lengths from the kernel's spectral density."""
        return fourier_map(kernel, int(X.shape[1]), self.m, given["seed"], orthogonal=True)


APPROXIMATIONS: dict[str, type[Approximation]] = {
    kind.__name__: kind
    for kind in (Nystrom, FixedSize, IncompleteCholesky, KernelPCA, ReducedBasis, RandomFourier, OrthogonalFourier)
}


def _said(found: KernelMap, chosen: Landmarks | None) -> KernelMap:
    """The map with what is known of its landmarks."""
    found.landmarks = chosen
    return found


def _rows(points: Any) -> Rows:
    """Points (m, d) as tuples of numbers."""
    try:
        values = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 2 or values.size == 0 or not np.isfinite(values).all():
        raise InvalidInput("landmarks must be the name of a method, or finite points as a dense array (m, d)")
    return tuple(map(tuple, values.tolist()))


def _check_seed(seed: Any) -> None:
    if seed is not None and (not isinstance(seed, Integral) or isinstance(seed, bool) or seed < 0):
        raise InvalidInput(f"seed must be a whole number of at least 0, or None, got {seed!r}")


def _check_rank(rank: Any) -> None:
    if rank is not None and (not isinstance(rank, Integral) or isinstance(rank, bool) or rank < 1):
        raise InvalidInput(f"rank must be a whole number of at least 1, or None, got {rank!r}")


def _check_tol(tol: Any) -> None:
    if tol is not None and (not isinstance(tol, Real) or isinstance(tol, bool) or not 0.0 <= float(tol) < 1.0):
        raise InvalidInput(f"tol must be a number from 0 to below 1, got {tol!r}")
