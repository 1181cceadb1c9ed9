"""Whether the dual of a machine is a lower bound at all: that takes a kernel matrix without negative curvature.

For the coefficients c of any function and dual-feasible coefficients s

    P(c) - D(s) = 1/2 (c - s)' K (c - s) + terms >= 0,

so that D <= P needs d'Kd >= 0 for every difference d of coefficients: all vectors without bias, those of sum zero where
the bias is free, those orthogonal to every unpenalised function where there are more.  Elsewhere a solver may end at a
point that is not the optimum, and the difference of its values says nothing.

- mercer's own kernels are known by their flags, at no cost.
- A matrix that was given, the values of a function, and kernels whose flags promise nothing are looked at: a few
  Lanczos steps search a vector of negative curvature, which disproves; a Cholesky factor of the matrix, shifted by its
  rounding error, proves, up to `LARGEST` points.
- Beyond, a given matrix in which the search found nothing is believed, and a kernel that promises nothing is not.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import dense
from mercer.gram import Gram, GramOperator
from mercer.kernels import Custom, Kernel, Precomputed
from mercer.kernels.diagnostics import polynomial_basis

Array = NDArray[np.float64]

LARGEST = 2000  # the n^3 / 3 operations take a tenth of a second there, and the matrix 32 MB
LANCZOS_STEPS = 30
MARGIN = 4.0  # times n eps |K|, the rounding error of a factorisation


def doubt(
    kernel: Kernel, n: int, points: Any, columns: Array, constant: float, whole: Callable[[], GramOperator]
) -> str | None:
    """Why the machine has no certificate, with the remedy; None where it has one.

    points: n of them, or None for a given matrix; columns (n, q): the unpenalised functions, a column of ones for a
    free bias; constant: added to every kernel value, 1 for a penalised bias; whole: the operator the machine is trained
    on, asked for where its values are given.
    """
    order, given = kernel.conditional_order, _of_user(kernel)
    promised = order == 0 or (order > 0 and not constant and _spans(columns, order, points))
    if promised and not given:
        return None
    if n > LARGEST:
        if not promised:
            return _explained(kernel, order, "")
        if not isinstance(kernel, Precomputed):
            return None
    # Values that the user gave are held by the machine; others are computed anew in full precision.
    gram = whole() if given else Gram(kernel, points, storage="streamed")
    found = _negative_curvature(gram, columns, constant)
    return None if found is None else _explained(kernel, order, f" (d'Kd / d'd = {found:.3g} for some d)")


def _of_user(kernel: Kernel) -> bool:
    """Whether the values of a kernel, or of a part of it, come from the user."""
    return isinstance(kernel, (Precomputed, Custom)) or any(map(_of_user, kernel._children.values()))


def _spans(columns: Array, order: int, points: Any) -> bool:
    """Whether the columns (n, q) span the polynomials of degree below `order` on the points."""
    n = len(columns)
    wanted = np.ones((n, 1)) / np.sqrt(n) if order == 1 else polynomial_basis(points, order - 1)
    if columns.shape[1] == 0:
        return False
    Q = dense.orthonormal(columns)
    return bool(np.abs(wanted - Q @ (Q.T @ wanted)).max() <= 1e-8)


def _explained(kernel: Kernel, order: int, evidence: str) -> str:
    """The reason and the remedy in words."""
    if isinstance(kernel, Precomputed):
        return (
            f"the kernel matrix is not positive semidefinite{evidence}: check how it was computed, or add a multiple "
            "of the identity to it"
        )
    if order < 1:
        return f"{kernel!r:.200} is not positive definite on these points{evidence}: choose a positive definite kernel"
    remedy = 'use bias="free"' if order == 1 else "use a least-squares machine with those polynomials as basis"
    return f"{kernel!r:.200} is positive definite only up to polynomials of degree < {order}{evidence}: {remedy}"


def _negative_curvature(gram: GramOperator, columns: Array, constant: float) -> float | None:
    """A value of d'Kd / d'd below the rounding of K for some d orthogonal to the columns; None where there is none.

    Exact up to rounding for at most `LARGEST` points, else the outcome of a search.
    """
    n = int(gram.shape[0])
    Q = dense.orthonormal(columns) if columns.shape[1] else columns
    small = n <= LARGEST
    M: Any = np.array(gram.dense(), dtype=np.float64, order="F") if small else None

    def product(v: Array) -> Array:
        v = v - Q @ (Q.T @ v)
        v = (M @ v if small else np.asarray(gram.dot(v), dtype=np.float64)) + constant * v.sum()
        return np.asarray(v - Q @ (Q.T @ v))

    size = float(np.linalg.norm(M)) if small else float(np.abs(gram.diagonal()).max()) * n
    slack = MARGIN * n * _unit(gram, M) * (size + constant * n)
    lowest = _lanczos(product, n)
    if lowest < -slack:
        return lowest
    return -slack if small and not _factorises(M, Q, constant, slack) else None


def _unit(gram: GramOperator, M: Array | None) -> float:
    """Relative rounding error of the values: that of float32 where they are stored so, or all of them could be."""
    single = gram.dtype == np.float32
    if M is not None and not single:
        single = bool((M.astype(np.float32) == M).all() and not (np.rint(M) == M).all())
    return float(np.finfo(np.float32 if single else np.float64).eps)


def _lanczos(product: Callable[[Array], Array], n: int) -> float:
    """The smallest d'Kd / d'd over the Krylov space of a random vector, at least the smallest eigenvalue."""
    steps = min(n, LANCZOS_STEPS)
    V = np.zeros((steps, n))
    v = product(np.random.default_rng(0).standard_normal(n))
    along, beside = np.zeros(steps), np.zeros(steps)
    for k in range(steps):
        length = float(np.linalg.norm(v))
        if length <= 1e-12 * (float(np.abs(along).max()) if k else 0.0) or length == 0.0:
            steps = k
            break
        V[k] = v / length
        beside[k] = length
        v = product(V[k])
        along[k] = float(V[k] @ v)
        for _ in range(2):
            v = v - V[: k + 1].T @ (V[: k + 1] @ v)
    if steps == 0:
        return 0.0
    vector = V[:steps].T @ dense.lowest_eigenvector(along[:steps], beside[1:steps])
    return float(vector @ product(vector)) / float(vector @ vector)


def _factorises(M: Array, Q: Array, constant: float, slack: float) -> bool:
    """Whether the projection of M + constant onto the complement of Q, raised by `slack`, has a Cholesky factor.

    The memory of M is used up.
    """
    M += constant
    if Q.shape[1]:
        B = M @ Q
        B -= 0.5 * Q @ (Q.T @ B)
        both = B @ Q.T
        M -= both
        M -= both.T
    np.einsum("ii->i", M)[...] += slack
    return dense.factorise(M)
