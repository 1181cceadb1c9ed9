"""Feature maps: phi(x) in R^p with <phi(x), phi(z)> close to k(x, z), so that a kernel machine becomes a linear one.

With m points S = (s_1, ..., s_m), A = k(X, S) (n, m) and B = k(S, S) (m, m), a matrix T (m, p) with T T' = B^+ gives

    phi(x) = T' k(S, x),        Z = A T,        Z Z' = A B^+ A' = K~,

the Nystrom matrix on these landmarks (Hamers 2004, sections 3.5 and 5.5): exact wherever one argument is a landmark,
and K - K~ is positive semidefinite.  Two choices of T are here,

    triangular:  P'BP = R'R with pivots, T = P R^-1     m^3/3 operations; leaves out landmarks that depend on others
    spectral:    B = U diag(l) U', T = U diag(l)^-1/2   may keep the largest p eigenvalues only

and kernel principal components, the spectral one of the centred kernel.  A linear machine w on such a map is a kernel
expansion on the landmarks, w'phi(x) = sum_j alpha_j k(s_j, x) with alpha = T w.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer import dense
from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.gram import KernelColumns
from mercer.kernels import Kernel

Array = NDArray[np.float64]
Index = NDArray[np.intp]

BLOCK_VALUES = 1 << 21  # kernel values held at once while features are computed


class Expansion(NamedTuple):
    """f(x) = k(x, points) @ coefficients + constant: points (m, d), coefficients (m, k), constant (k,)."""

    points: Any
    coefficients: Array
    constant: Array


class FeatureMap(ABC):
    """phi: R^d -> R^p for some kernel; `dimension` is p."""

    kernel: Kernel

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Number of features p."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Columns of the widest intermediate array: kernel values or features."""

    @abstractmethod
    def _block(self, X: Any) -> Array:
        """Features (b, p) of a few points (b, d), in float64."""

    def features(self, X: Any, out: NDArray[Any] | None = None, *, dtype: Any = np.float64) -> NDArray[Any]:
        """Z (n, p) for points X (n, d), dense or CSR, in blocks of rows; written to `out` when given."""
        n = X.shape[0]
        Z = np.empty((n, self.dimension), dtype) if out is None else out
        if Z.shape != (n, self.dimension):
            raise InvalidInput(f"out must have shape {(n, self.dimension)}, it has {Z.shape}")
        for part in self.pieces(n):
            Z[part] = self._block(X[part])
        return Z

    def multiply(self, X: Any, W: Array) -> Array:
        """Z W (n, k) for weights W (p, k), without keeping Z."""
        values = np.empty((X.shape[0], W.shape[1]))
        for part in self.pieces(X.shape[0]):
            values[part] = self._block(X[part]) @ W
        return values

    def pieces(self, n: int) -> Iterator[slice]:
        """Blocks of rows whose features are a few megabytes."""
        step = max(64, BLOCK_VALUES // max(1, self.width))
        return (slice(start, min(n, start + step)) for start in range(0, n, step))

    def expansion(self, w: ArrayLike) -> Expansion | None:
        """The kernel expansion of x -> w'phi(x), w (p,) or (p, k); None for maps that are not made of kernel values."""
        return None


class KernelMap(FeatureMap):
    """phi(x) = T' k(S, x) - shift: `points` S (m, d), `transform` T (m, p) or None for the identity, `shift` (p,).

    `kept` (m,) says where the points stood among the landmarks the map was made from; `method` how T was made.
    """

    def __init__(
        self,
        kernel: Kernel,
        points: Any,
        transform: Array | None = None,
        shift: Array | None = None,
        *,
        kept: Index | None = None,
        method: str = "kernel values",
    ) -> None:
        m = int(points.shape[0])
        if transform is not None and transform.shape[0] != m:
            raise InvalidInput(f"transform has {transform.shape[0]} rows for {m} points; it needs one for each")
        self.kernel, self.points, self.transform, self.shift = kernel, points, transform, shift
        self.kept = np.arange(m) if kept is None else kept
        self.method = method
        self.landmarks: Any = None
        self._columns: KernelColumns | None = None

    @property
    def dimension(self) -> int:
        """Number of features p."""
        return self.width if self.transform is None else int(self.transform.shape[1])

    @property
    def width(self) -> int:
        """Number of points m."""
        return int(self.points.shape[0])

    def _block(self, X: Any) -> Array:
        if self._columns is None:
            self._columns = KernelColumns(self.kernel, self.points)
        A = self._columns.values(X)
        Z = A if self.transform is None else A @ self.transform
        return Z if self.shift is None else Z - self.shift

    def expansion(self, w: ArrayLike) -> Expansion:
        """Coefficients T w on the points, and the constant -shift'w."""
        W = np.asarray(w, dtype=np.float64)
        W = W[:, None] if W.ndim == 1 else W
        constant = np.zeros(W.shape[1]) if self.shift is None else -(self.shift @ W)
        return Expansion(self.points, W.copy() if self.transform is None else self.transform @ W, constant)

    def __getstate__(self) -> dict[str, Any]:
        """Prepared columns are made again."""
        return {**self.__dict__, "_columns": None}

    def __repr__(self) -> str:
        return f"KernelMap({self.kernel!r}, {self.width} points, {self.dimension} features, {self.method})"


def landmark_matrix(kernel: Kernel, points: Any) -> Array:
    """B = k(S, S) (m, m), symmetric, after a look at whether the kernel can have a feature map at all."""
    if not kernel.positive_definite:
        raise NotPositiveDefinite(
            f"{kernel!r} is not positive definite, so that it has no feature map: train without approximation, or take "
            "a positive definite kernel"
        )
    if int(points.shape[0]) == 0:
        raise InvalidInput("landmarks hold no points; at least one is needed")
    B = KernelColumns(kernel, points).values(points)
    if not np.isfinite(B).all():
        raise InvalidInput("kernel values between the landmarks are not finite: the data hold very large values")
    return np.asfortranarray(0.5 * (B + B.T))


def triangular_map(kernel: Kernel, points: Any, tol: float | None = None) -> KernelMap:
    """T = P R^-1 from the Cholesky factor with pivots; landmarks whose pivot falls below tol max_j B_jj are left out.

    `tol` None is m times the rounding unit, below which a pivot is noise.
    """
    B = landmark_matrix(kernel, points)
    m, largest = len(B), float(np.max(np.diagonal(B)))
    relative = m * float(np.finfo(np.float64).eps) if tol is None else tol
    L, kept = dense.pivoted_cholesky(B, relative * largest)
    if not len(kept) or not largest > 0.0:
        raise InvalidInput("all kernel values between the landmarks are zero: choose other landmarks or another kernel")
    dense.invert_lower(L)
    return KernelMap(kernel, points[kept], np.ascontiguousarray(L.T), kept=kept, method="triangular")


def spectral_map(kernel: Kernel, points: Any, rank: int | None = None, tol: float | None = None) -> KernelMap:
    """T = U diag(l)^-1/2 with the eigenvalues of B above tol times the largest, at most `rank` of them."""
    values, vectors = _leading(landmark_matrix(kernel, points), rank, tol)
    return KernelMap(kernel, points, vectors / np.sqrt(values), method="spectral")


def principal_components_map(
    kernel: Kernel, points: Any, rank: int | None = None, tol: float | None = None
) -> KernelMap:
    """Kernel principal components of the points (Schoelkopf and Smola 2002, chapter 14).

    With H = I - 1 1'/m and H B H = U diag(l) U':  z(x) = diag(l)^-1/2 U' (k(S, x) - B 1/m), whose values at the points
    have mean zero and Z'Z = diag(l).  The constant 1'k(S, x)/m drops out because U'1 = 0.
    """
    B = landmark_matrix(kernel, points)
    if len(B) == 1:
        raise InvalidInput("principal components need at least two landmarks, got 1 sample")
    mean = B.mean(axis=0)
    values, vectors = _leading(B - mean - mean[:, None] + mean.mean(), rank, tol)
    T = vectors / np.sqrt(values)
    T -= T.mean(axis=0)
    return KernelMap(kernel, points, T, mean @ T, method="principal components")


def _leading(B: Array, rank: int | None, tol: float | None) -> tuple[Array, Array]:
    """Eigenvalues (p,) from the largest down and eigenvectors (m, p), those above tol times the largest."""
    values, vectors = dense.eigen(B)
    relative = len(B) * float(np.finfo(np.float64).eps) if tol is None else tol
    if not values[-1] > 0.0:
        raise InvalidInput("all kernel values between the landmarks are equal or zero: choose other landmarks")
    count = int(np.count_nonzero(values > relative * values[-1]))
    count = count if rank is None else min(count, rank)
    return values[::-1][:count].copy(), np.ascontiguousarray(vectors[:, ::-1][:, :count])
