"""Looking at a kernel matrix: what kind it is, its spectrum, norms in its space, its feature map, a first width."""

from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import dense
from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.kernels.base import Kernel
from mercer.kernels.checks import Matrix, positive, prepare
from mercer.kernels.distances import squared_distances


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """What `kernel_diagnostics` found.

    kind: "positive definite", "positive semidefinite", "conditionally positive definite" or "indefinite".
    order: 0 for the first two, the conditional order for the third, -1 for the last.
    eigenvalues: all of them, ascending, (n,); their decay is what low-rank methods live on.
    negative: how many are below -tolerance.
    """

    kind: str
    order: int
    eigenvalues: NDArray[np.float64]
    negative: int
    tolerance: float

    @property
    def smallest(self) -> float:
        """The smallest eigenvalue."""
        return float(self.eigenvalues[0])

    @property
    def largest(self) -> float:
        """The largest eigenvalue."""
        return float(self.eigenvalues[-1])

    @property
    def condition(self) -> float:
        """Largest over smallest absolute eigenvalue; infinite for a singular matrix."""
        sizes = np.abs(self.eigenvalues)
        return float(sizes.max() / sizes.min()) if sizes.min() > 0.0 else float("inf")

    def __str__(self) -> str:
        """One line for people."""
        order = f" of order {self.order}" if self.order > 0 else ""
        return (
            f"{self.kind}{order}: eigenvalues from {self.smallest:.3g} to {self.largest:.3g}, "
            f"{self.negative} negative, condition {self.condition:.3g}"
        )


def kernel_diagnostics(K: Any, X: Any = None, *, highest_order: int = 3, tol: float | None = None) -> Diagnostics:
    """Eigenvalues and kind of a symmetric kernel matrix K (n, n).

    Conditional definiteness of order m looks at the vectors orthogonal to the polynomials of degree below m on the
    points X (n, d).  Without X only order 1 (vectors of sum zero) can be tested.  `tol`: eigenvalues between -tol and
    tol count as zero; by default n eps times the largest in size.
    """
    matrix = _symmetric(K)
    eigenvalues = dense.eigenvalues(matrix)
    rounding = len(matrix) * float(np.finfo(np.float64).eps) * float(np.abs(eigenvalues).max())
    tolerance = rounding if tol is None else positive(tol, "tol")
    negative = int(np.count_nonzero(eigenvalues < -tolerance))

    def found(kind: str, order: int) -> Diagnostics:
        return Diagnostics(kind, order, eigenvalues, negative, tolerance)

    if eigenvalues[0] > tolerance:
        return found("positive definite", 0)
    if negative == 0:
        return found("positive semidefinite", 0)
    for order in range(1, (1 if X is None else highest_order) + 1):
        polynomials = np.ones((len(matrix), 1)) if X is None else polynomial_basis(X, order - 1)
        basis = dense.null_space(polynomials.T)
        if basis.shape[1] == 0:
            break
        if dense.eigenvalues(basis.T @ matrix @ basis)[0] >= -tolerance:
            return found("conditionally positive definite", order)
    return found("indefinite", -1)


def _symmetric(K: Any) -> Matrix:
    matrix = np.asarray(K, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        raise InvalidInput(f"K must be a square matrix, got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise InvalidInput("K contains NaN or infinite values; check the kernel and the points")
    if not np.allclose(matrix, matrix.T, rtol=1e-6, atol=1e-6 * np.abs(matrix).max()):
        raise InvalidInput("K is not symmetric; a kernel has k(x, z) = k(z, x): give (K + K.T) / 2 if that is meant")
    return 0.5 * (matrix + matrix.T)


def polynomial_basis(X: Any, degree: int) -> Matrix:
    """All monomials of at most that degree on the points X (n, d): (n, C(degree + d, d)), columns of unit length."""
    points = prepare(X, "X")
    points = np.asarray(points.toarray() if hasattr(points, "toarray") else points)
    spread = points.std(axis=0)
    points = (points - points.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    columns = [
        np.prod(points[:, list(chosen)], axis=1) if chosen else np.ones(len(points))
        for power in range(degree + 1)
        for chosen in combinations_with_replacement(range(points.shape[1]), power)
    ]
    basis = np.stack(columns, axis=1)
    lengths = np.linalg.norm(basis, axis=0)
    return np.asarray(basis / np.where(lengths > 0.0, lengths, 1.0))


def rkhs_norm(c: Any, K: Any) -> Any:
    """||f|| = sqrt(c'Kc) of f = sum_i c_i k(x_i, .); K a matrix or operator (n, n); c (n,), or (n, k) for k norms.

    |f(x)| <= kappa ||f|| for every x, with kappa = sup sqrt(k(x, x)).
    """
    coefficients = np.asarray(c, dtype=np.float64)
    image = np.asarray(K @ coefficients, dtype=np.float64)
    squares = np.einsum("i...,i...->...", coefficients, image)
    size = np.einsum("i...,i...->...", np.abs(coefficients), np.abs(image))
    if (squares < -1e-8 * size).any():
        raise NotPositiveDefinite(
            f"c'Kc is {np.min(squares):.3g}, below zero: K is not positive semidefinite, so it has no norm; "
            "check it with kernel_diagnostics(K)"
        )
    norms = np.sqrt(np.maximum(squares, 0.0))
    return float(norms) if norms.ndim == 0 else norms


def kappa(kernel: Kernel, X: Any) -> float:
    """max_i sqrt(k(x_i, x_i)) over the points X: the factor in |f(x)| <= kappa ||f||."""
    diagonal = kernel.diagonal(X)
    if (diagonal < 0.0).any():
        raise NotPositiveDefinite(
            f"k(x, x) is {diagonal.min():.3g} for a point, below zero; kappa needs a positive definite kernel"
        )
    return float(np.sqrt(diagonal.max()))


def empirical_map(K: Any, rank: int | None = None) -> Matrix:
    """Features (n, r) with features @ features.T = K, the empirical kernel map: sqrt(eigenvalue) times eigenvector.

    Columns go from the largest eigenvalue down; `rank` keeps the first ones, the best approximation of that rank.
    """
    matrix = _symmetric(K)
    eigenvalues, vectors = dense.eigen(matrix)
    tolerance = len(matrix) * np.finfo(np.float64).eps * float(np.abs(eigenvalues).max())
    if eigenvalues[0] < -1e3 * tolerance:
        raise NotPositiveDefinite(
            f"K has the negative eigenvalue {eigenvalues[0]:.3g}, so no real features give it; use a positive "
            "definite kernel"
        )
    kept = np.flatnonzero(eigenvalues > tolerance)[::-1][:rank]
    return np.asarray(vectors[:, kept] * np.sqrt(eigenvalues[kept]))


def median_sigma(X: Any, *, sample: int = 1000, seed: int = 0) -> float:
    """The median of the distances |x_i - x_j| > 0 between points of X (n, d): a first guess for a width.

    From more than `sample` points that many are drawn with `seed`.
    """
    points = prepare(X, "X")
    if points.shape[0] > sample:
        chosen = np.sort(np.random.default_rng(seed).choice(points.shape[0], size=sample, replace=False))
        points = points[chosen]
    above = squared_distances(points, None)[np.triu_indices(points.shape[0], 1)]
    above = above[above > 0.0]
    if above.size == 0:
        raise InvalidInput("X has no two different points, so distances give no width; set sigma to a number")
    return float(np.sqrt(np.median(above)))
