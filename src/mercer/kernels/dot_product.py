"""Kernels of the inner product <x, z>, of the angle between x and z, and general bilinear forms."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import dense
from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.kernels.base import DotProduct, Kernel
from mercer.kernels.checks import Matrix, Points, nonnegative, positive, real, whole
from mercer.kernels.distances import squared_norms
from mercer.kernels.pairs import Pairs, Same
from mercer.kernels.profile import Profile

_degree = partial(whole, least=1)
_offset = partial(nonnegative, reason="a polynomial with a negative offset has a negative coefficient")


@dataclass(frozen=True)
class Linear(DotProduct):
    """<x, z>; the matrix has rank at most d."""

    def _profile(self) -> Profile:
        return Profile("product", "linear")

    def _of(self, t: Matrix) -> Matrix:
        return t


@dataclass(frozen=True)
class Constant(Kernel):
    """k(x, z) = value for all points; adding it lets a machine without bias shift its output."""

    value: float = 1.0
    _traits = frozenset({"stationary", "isotropic", "dot_product"})
    _checks = {"value": partial(nonnegative, reason="a constant matrix has eigenvalues 0 and n times its value")}

    def of_distance(self, r: Any, dimension: int) -> Matrix:
        """The value, in the shape of r."""
        return np.full(np.shape(r), self.value)

    def _values(self, pairs: Pairs) -> Matrix:
        return np.full(pairs.shape, self.value)

    def _slopes(self, pairs: Pairs) -> dict[str, Matrix]:
        return {"value": np.ones(pairs.shape)}


@dataclass(frozen=True)
class Polynomial(DotProduct):
    """(gamma <x, z> + offset)^degree; offset = 0 is the homogeneous kernel.

    The features are all monomials of that degree (homogeneous) or of at most that degree (offset > 0); `features`
    counts them.  A negative offset is refused: (<x, z> - 1)^1 at x = 0 is -1.
    """

    degree: int = 3
    offset: float = 1.0
    gamma: float = 1.0

    _checks = {"degree": _degree, "offset": _offset, "gamma": positive}

    def _profile(self) -> Profile:
        return Profile("product", "polynomial", (self.gamma, self.offset, float(self.degree)))

    def features(self, dimension: int) -> int:
        """Number of monomials of `dimension` variables the kernel compares."""
        variables = dimension if self.offset == 0.0 else dimension + 1
        return math.comb(variables + self.degree - 1, self.degree)

    def _of(self, t: Matrix) -> Matrix:
        return np.asarray((self.gamma * t + self.offset) ** self.degree)

    def _slopes_of(self, t: Matrix) -> dict[str, Matrix]:
        slope = self.degree * (self.gamma * t + self.offset) ** (self.degree - 1)
        return {"offset": slope, "gamma": slope * t}


@dataclass(frozen=True)
class Sigmoid(DotProduct):
    """tanh(gamma <x, z> + offset); in general not positive definite, whatever the parameters.

    Machines that need a positive definite kernel refuse it; the decomposition solvers take it, as LIBSVM does, and
    then reach a stationary point only.
    """

    gamma: float = 1.0
    offset: float = 0.0
    _order = -1
    _checks = {"gamma": positive, "offset": real}

    def _profile(self) -> Profile:
        return Profile("product", "sigmoid", (self.gamma, self.offset))

    def _of(self, t: Matrix) -> Matrix:
        return np.asarray(np.tanh(self.gamma * t + self.offset))

    def _slopes_of(self, t: Matrix) -> dict[str, Matrix]:
        slope = 1.0 - np.square(np.tanh(self.gamma * t + self.offset))
        return {"gamma": slope * t, "offset": slope}


def _directions(X: Points) -> Points:
    """Rows x / |x|; the zero vector has no direction and stays zero."""
    norms = np.sqrt(squared_norms(X))
    inverse = 1.0 / np.where(norms > 0.0, norms, 1.0)
    return sp.csr_array(sp.diags_array(inverse) @ X) if sp.issparse(X) else X * inverse[:, None]


def _cosines(pairs: Pairs) -> Matrix:
    """<x, z> / (|x| |z|)."""
    if isinstance(pairs, Same):
        return np.where(pairs.products() > 0.0, 1.0, 0.0)
    return pairs.mapped(_directions).products()


@dataclass(frozen=True)
class Cosine(Kernel):
    """<x, z> / (|x| |z|); the zero vector, which has no direction, has similarity 0 to everything."""

    def _values(self, pairs: Pairs) -> Matrix:
        return _cosines(pairs)


@dataclass(frozen=True)
class NormalisedPolynomial(Kernel):
    """(<x, z> / (|x| |z|) + offset)^degree: the polynomial of the directions of x and z; zero counts as in `Cosine`."""

    degree: int = 3
    offset: float = 1.0
    _checks = {"degree": _degree, "offset": _offset}

    def _values(self, pairs: Pairs) -> Matrix:
        return np.asarray((_cosines(pairs) + self.offset) ** self.degree)

    def _slopes(self, pairs: Pairs) -> dict[str, Matrix]:
        return {"offset": self.degree * (_cosines(pairs) + self.offset) ** (self.degree - 1)}


def _semidefinite(value: Any, name: str) -> tuple[tuple[float, ...], ...]:
    """The rows of a symmetric positive semidefinite matrix."""
    try:
        A = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} must be a square matrix of numbers; give rows of equal length") from None
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.size == 0 or not np.isfinite(A).all():
        raise InvalidInput(f"{name} must be a square matrix of finite numbers, got shape {A.shape}")
    if not np.array_equal(A, A.T):
        raise InvalidInput(f"{name} must be symmetric, or k(x, z) differs from k(z, x); give ({name} + {name}.T) / 2")
    smallest = float(dense.eigenvalues(A)[0])
    if smallest < -1e-12 * np.abs(A).max() * len(A):
        raise NotPositiveDefinite(
            f"{name} has the negative eigenvalue {smallest:.3g}, so x'{name}z is not positive definite; "
            f"give a positive semidefinite {name} such as L @ L.T"
        )
    return tuple(tuple(map(float, row)) for row in A)


@dataclass(frozen=True)
class Bilinear(Kernel):
    """x' A z with A symmetric positive semidefinite, (d, d): correlated or weighted features."""

    A: tuple[tuple[float, ...], ...]
    _checks = {"A": _semidefinite}

    @property
    def matrix(self) -> NDArray[np.float64]:
        """A as an array (d, d)."""
        return np.array(self.A)

    def _rotated(self, X: Points) -> Matrix:
        """X L with A = L L' by eigenvectors, (n, d): the values are inner products of these, symmetric to the bit."""
        if X.shape[1] != len(self.A):
            raise InvalidInput(f"A is for {len(self.A)} features and the points have {X.shape[1]}; give A (d, d)")
        eigenvalues, vectors = dense.eigen(self.matrix)
        return np.asarray(X @ (vectors * np.sqrt(np.maximum(eigenvalues, 0.0))))

    def _values(self, pairs: Pairs) -> Matrix:
        return pairs.mapped(self._rotated).products()
