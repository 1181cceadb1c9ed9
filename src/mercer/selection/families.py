"""Kernels with free parameters, as a search over them sees them.

A family gives the kernel matrix at positive parameters theta (p,), and turns the derivative of a criterion by the
matrix, S (n, n), into derivatives by log theta:  sum_ij S_ij dK_ij / d log theta.  The Gaussian keeps its squared
distances between calls; with one width for each feature its derivatives come from one matrix product instead of one
n x n matrix for each feature:

    sum_ij W_ij (x_ip - x_jp)^2 = 2 (W 1)'x_p^2 - 2 x_p'W x_p,      W = S * K.
"""

from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.kernels import Gaussian, Kernel, median_sigma
from mercer.kernels.distances import squared_distances
from mercer.solvers.linear.bordered import Array


class Family(Protocol):
    """A kernel matrix that depends on positive parameters."""

    names: tuple[str, ...]
    start: Array

    def kernel(self, theta: Array) -> Kernel:
        """The kernel with parameters theta (p,)."""
        ...

    def matrix(self, theta: Array) -> Array:
        """K (n, n) at theta."""
        ...

    def slopes(self, theta: Array, K: Array, S: Array) -> Array:
        """Derivatives (p,) by log theta of a criterion whose derivative by the matrix is S; K is the one at theta."""
        ...

    def part(self, index: NDArray[np.intp]) -> "Family":
        """The same family on some of the points."""
        ...


def distance_scale(X: Any, seed: int = 0, sample: int = 500) -> float:
    """The median distance of different points, from at most `sample` of them; 1 where all are equal."""
    try:
        return median_sigma(X, sample=sample, seed=seed)
    except InvalidInput:  # all points are equal
        return 1.0


class OneWidth:
    """The Gaussian kernel with its width sigma free."""

    names: tuple[str, ...] = ("sigma",)

    def __init__(self, X: Any, squares: Array | None = None, scale: float | None = None) -> None:
        self.X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        self._squares = squares
        self.start = np.array([distance_scale(self.X) / np.sqrt(2.0) if scale is None else scale])

    @property
    def squares(self) -> Array:
        """Squared distances (n, n), computed once."""
        if self._squares is None:
            self._squares = squared_distances(self.X, None)
        return self._squares

    def kernel(self, theta: Array) -> Kernel:
        """Gaussian of that width."""
        return Gaussian(sigma=float(theta[0]))

    def matrix(self, theta: Array) -> Array:
        """exp(-q / (2 sigma^2)) from the stored squared distances."""
        K = np.multiply(self.squares, -0.5 / theta[0] ** 2)
        return np.asarray(np.exp(K, out=K))

    def slopes(self, theta: Array, K: Array, S: Array) -> Array:
        """DK / d log sigma = K q / sigma^2."""
        return np.array([np.einsum("ij,ij,ij->", S, K, self.squares) / theta[0] ** 2])

    def part(self, index: NDArray[np.intp]) -> "OneWidth":
        """The same on some of the points; distances already stored are not computed again."""
        squares = None if self._squares is None else self._squares[np.ix_(index, index)]
        return OneWidth(self.X[index], squares, float(self.start[0]))


class WidthPerFeature:
    """The Gaussian kernel with one free width for each feature of dense points X (n, d)."""

    def __init__(self, X: Any, start: Array | None = None) -> None:
        if sp.issparse(X):
            raise InvalidInput("one width for each feature is searched on dense points only: convert X to an array.")
        self.X = np.asarray(X, dtype=np.float64)
        d = self.X.shape[1]
        self.names: tuple[str, ...] = tuple(f"sigma[{p}]" for p in range(d))
        self.start = np.full(d, distance_scale(self.X) / np.sqrt(2.0)) if start is None else start

    def kernel(self, theta: Array) -> Kernel:
        """Gaussian of those widths."""
        return Gaussian(sigma=tuple(float(width) for width in theta))

    def matrix(self, theta: Array) -> Array:
        """exp(-q / 2) at the scaled points."""
        q = squared_distances(self.X / theta, None)
        q *= -0.5
        return np.asarray(np.exp(q, out=q))

    def slopes(self, theta: Array, K: Array, S: Array) -> Array:
        """DK / d log sigma_p = K (x_p - z_p)^2 / sigma_p^2."""
        W = S * K
        X = (self.X - self.X.mean(axis=0)) / theta
        return np.asarray(2.0 * (W.sum(axis=1) @ X**2 - np.einsum("ip,ip->p", X, W @ X)))

    def part(self, index: NDArray[np.intp]) -> "WidthPerFeature":
        """The same on some of the points."""
        return WidthPerFeature(self.X[index], self.start)


class Parameters:
    """Any kernel with some of its positive parameters free, by their names in `kernel.parameters`."""

    def __init__(self, kernel: Kernel, X: Any, names: tuple[str, ...], start: Array | None = None) -> None:
        self._kernel, self.X, self.names = kernel, X, names
        self.start = np.full(len(names), distance_scale(X) / np.sqrt(2.0)) if start is None else start
        known = self.kernel(self.start).derivatives(X[:2])
        for name in names:
            if name not in known or np.ndim(known[name]) != 2:
                raise InvalidInput(f"{kernel!r} gives no derivative by {name}: set it to a number.")

    def kernel(self, theta: Array) -> Kernel:
        """The kernel with those parameters."""
        return self._kernel.with_parameters(**{name: float(value) for name, value in zip(self.names, theta)})

    def matrix(self, theta: Array) -> Array:
        """By the kernel's own call."""
        return np.asarray(self.kernel(theta)(self.X), dtype=np.float64)

    def slopes(self, theta: Array, K: Array, S: Array) -> Array:
        """By the kernel's own derivatives."""
        derivatives = self.kernel(theta).derivatives(self.X)
        return np.array([value * np.vdot(S, derivatives[name]) for name, value in zip(self.names, theta)])

    def part(self, index: NDArray[np.intp]) -> "Parameters":
        """The same on some of the points."""
        return Parameters(self._kernel, self.X[index], self.names, self.start)


def family_of(kernel: Kernel, X: Any) -> Family:
    """The family behind a kernel whose placeholders are to be chosen by leave-one-out."""
    names = tuple(name for name, rule in kernel.placeholders.items() if rule == "loo")
    if not names:
        raise InvalidInput(f"{kernel!r} has no parameter to choose: write sigma='loo' for one.")
    if isinstance(kernel, Gaussian):
        return OneWidth(X)
    return Parameters(kernel, X, names)
