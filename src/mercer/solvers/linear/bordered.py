"""One shape for every least-squares machine: a shifted matrix with a border.

With weights w_i on the squared errors, D = diag(sqrt(w)) and r = 1/C the machine f = K c + P b solves

    min  1/2 sum_i w_i (y_i - f_i)^2 + r/2 c'Kc      <=>      [[A + r I, B], [B', 0]] [a; b] = [Z; 0]

with A = D K D, B = D P, Z = D Y and c = D a.  P (n, q) holds the functions that are not penalised: the constant for
a free bias, and the basis of a semiparametric model.  A penalised bias is the kernel K + 1.  Scaling by D keeps the
matrix symmetric, makes r a pure shift whatever the weights, and lets every C share one reduction of A.  Solvers that
only multiply leave the weights in the ridge instead (`mercer.solvers.linear.system`); elimination and projection are
the same for both.

*Elimination* (Hamers 2004, section 3.2; q = 1 there).  With M the matrix under the border, solve M [eta, nu] = [B, Z];
then

    (B'eta) b = B'nu,     a = nu - eta b,

which satisfies B'a = 0 for *any* eta and nu, exact or not.

*Projection*.  A kernel that is positive definite only on vectors orthogonal to the border gives an M with negative
eigenvalues.  With Q an orthonormal basis of B and P = I - QQ', P A P in the place of A leaves a unchanged, and G, the
leading block of the inverse of the whole; it moves only b.

Points of weight zero take no part in training: they are set aside here, and what a machine that never saw them says
about them is their leave-one-out value.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer import dense
from mercer.errors import Infeasible, InvalidInput, NotPositiveDefinite

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Bordered:
    """A (m, m), Z (m, k), B (m, q) and D (m,) over the m points of positive weight.

    `matrix` is Fortran-ordered; it belongs to this object alone and may be overwritten by whoever reduces it.
    `used` (m,) numbers those points among all n; `unused` are the others, `across` = K[unused, used] and `outside` =
    P[unused] say how a trained machine is evaluated there.
    """

    matrix: Array
    targets: Array
    border: Array
    scale: Array
    used: NDArray[np.intp]
    unused: NDArray[np.intp]
    across: Array
    outside: Array
    all_targets: Array
    moved: Array | None = None  # (q, m): b is off by moved @ a where A was projected

    @property
    def columns(self) -> Array:
        """[B, Z] (m, q + k): everything the matrix is solved against."""
        return np.concatenate([self.border, self.targets], axis=1)


def bordered(
    K: ArrayLike,
    Y: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    border: ArrayLike | None = None,
    constant: float = 0.0,
    projected: bool = False,
    overwrite: bool = False,
) -> Bordered:
    """State the problem of kernel matrix K (n, n), targets Y (n,) or (n, k), weights (n,) and border P (n, q).

    `constant` is added to every kernel value: 1 for a penalised bias.  `projected`: K is positive definite only on
    vectors orthogonal to the border.  With `overwrite` the memory of K is reused.
    """
    kernel = np.asarray(K, dtype=np.float64)
    targets = np.asarray(Y, dtype=np.float64)
    targets = targets[:, None] if targets.ndim == 1 else targets
    n = targets.shape[0]
    if kernel.shape != (n, n):
        raise InvalidInput(f"K must be square with one row for each of the {n} targets; its shape is {kernel.shape}.")
    P = np.empty((n, 0)) if border is None else np.asarray(border, dtype=np.float64).reshape(n, -1)
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != (n,) or not np.all(np.isfinite(w)) or np.any(w < 0):
        raise InvalidInput(f"weights must be {n} finite numbers, none negative.")
    used, unused = np.flatnonzero(w > 0), np.flatnonzero(w == 0)
    if used.size == 0:
        raise InvalidInput("all weights are zero: give at least one point a positive weight.")
    scale = np.sqrt(w[used])
    A = _own(kernel, used, overwrite)
    if constant:
        A += constant
    if weights is not None:
        A *= scale[:, None]
        A *= scale
    B = scale[:, None] * P[used]
    moved = _moved(A, B) if projected and B.shape[1] else None
    return Bordered(
        matrix=A,
        targets=scale[:, None] * targets[used],
        border=B,
        scale=scale,
        used=used,
        unused=unused,
        across=kernel[np.ix_(unused, used)] + constant if unused.size else np.empty((0, used.size)),
        outside=P[unused],
        all_targets=targets,
        moved=moved,
    )


def project(A: Array, Q: Array) -> Array:
    """Write P A P over A (m, m), P = I - Q Q' with orthonormal Q (m, q); returns Q'A (q, m) of the old A."""
    seen = Q.T @ A
    A -= Q @ seen
    A -= (A @ Q) @ Q.T
    return seen


def _moved(A: Array, B: Array) -> Array:
    """Write P A P over A, and return (q, m) what of b that moves: B b = B b' - Q Q'A a."""
    Q, R = dense.qr(B)
    return dense.solve_square(R, project(A, Q))


def _own(kernel: Array, used: NDArray[np.intp], overwrite: bool) -> Array:
    """A Fortran-ordered matrix over the used points that may be written to; symmetric, so K.T serves as well as K."""
    if used.size < kernel.shape[0]:
        return np.asfortranarray(kernel[np.ix_(used, used)])
    if kernel.flags.c_contiguous:
        kernel = kernel.T
    if overwrite and kernel.flags.f_contiguous and kernel.flags.writeable:
        return kernel
    return kernel.copy(order="F")


def eliminate(solved: Array, border: Array) -> tuple[Array, Array]:
    """Coefficients a (m, k) with B'a = 0 and the border's part b (q, k), from [eta, nu] (m, q + k) and B (m, q)."""
    q = border.shape[1]
    eta, nu = solved[:, :q], solved[:, q:]
    if q == 0:
        return nu, np.zeros((0, nu.shape[1]))
    schur = border.T @ eta
    b = dense.least_squares(schur, border.T @ nu)
    a = nu - eta @ b
    # Rounding leaves B'a a little off zero; a second elimination of what is left removes it.
    again = dense.least_squares(schur, border.T @ a)
    return a - eta @ again, b + again


def border_share(eta: Array, border: Array) -> Array:
    """U (m, q) with G = M^-1 - U U', the leading block of the inverse of the bordered matrix, from eta = M^-1 B."""
    schur = border.T @ eta
    factor = (schur + schur.T) / 2
    if border.shape[1] and not dense.factorise(factor):
        raise Infeasible(
            "the functions outside the penalty are linearly dependent on the data (a basis column may repeat the "
            "bias, or there are fewer points than functions): leave some of them out."
        )
    return dense.solve_triangular(factor, eta.T).T


def check_ridge(ridge: float) -> None:
    """Refuse a ridge that is negative or not finite."""
    if not ridge >= 0 or not np.isfinite(ridge):
        raise InvalidInput(f"ridge must be a finite number, at least 0; it is {ridge!r}.")


def cholesky(matrix: Array, ridge: float, poll: dense.Poll | None = None) -> Array:
    """Lower Cholesky factor of A + r I, written over the lower triangle of A, which is contiguous."""
    n = matrix.shape[0]
    largest = float(np.max(np.abs(np.diagonal(matrix)))) + ridge
    matrix.reshape(-1, order="A")[:: n + 1] += ridge
    positive = dense.factorise(matrix, poll)
    # A pivot at the level of rounding means that the matrix is singular, whether or not the last step went through.
    if not positive or np.min(np.diagonal(matrix)) ** 2 <= n * np.finfo(float).eps * largest:
        raise NotPositiveDefinite(
            f"the kernel matrix with ridge 1/C = {ridge:.3g} on its diagonal is not positive definite to working "
            "precision: lower C, or take a positive definite kernel."
        )
    return matrix
