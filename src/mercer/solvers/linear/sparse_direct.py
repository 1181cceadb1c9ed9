"""Direct solution for compactly supported kernels, whose matrix is sparse (Hamers 2004, section 4.3.2).

The factor of a sparse matrix has more nonzeros than the matrix; how many depends on the order of the points:

* "reverse_cuthill_mckee" numbers neighbours together, which gives a band; LAPACK's banded Cholesky then costs
  n (bandwidth)^2.  In one dimension the band is as narrow as the support allows.
* "minimum_degree" eliminates the point with fewest neighbours first, "column_counts" orders the columns
  approximately by their fill; both go to SuperLU in symmetric mode, without pivoting off the diagonal.
* "natural" keeps the order given, for comparison.

One factorisation serves the bias, the basis and every output.  A penalised bias adds the full matrix 1 1', which is
kept out of the factor by the rank-one formula (H0 + 1 1')^-1 T = Z0 - e (1'Z0) / (1 + 1'e), H0 [Z0, e] = [T, 1].
"""

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from mercer import dense
from mercer.arrays import Array, Index
from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.gram import GramOperator
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.contract import Acceptance, Start, require
from mercer.solvers.linear.system import LinearSystem
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.solution import Solution

Ordering = Literal["auto", "reverse_cuthill_mckee", "minimum_degree", "column_counts", "natural"]
SUPERLU = {"minimum_degree": "MMD_AT_PLUS_A", "column_counts": "COLAMD", "natural": "NATURAL"}


def accepts(problem: Any) -> Acceptance:
    """Least-squares problems on a sparse Gram operator."""
    if not isinstance(problem, LeastSquares):
        return Acceptance(False, "the sparse direct solver takes least-squares problems only")
    if not (isinstance(problem.gram, GramOperator) and sp.issparse(problem.gram.held_values())):
        return Acceptance(False, 'the kernel matrix is not sparse: use a compactly supported kernel, storage="sparse"')
    return Acceptance(True, "one sparse factorisation serves every output")


def solve(
    problem: LeastSquares,
    *,
    tol: float | None = None,
    start: Start = None,
    monitor: Monitor | None = None,
    ordering: Ordering = "auto",
) -> Solution:
    """Factor once and solve.  `tol` and `start` are taken for the contract's sake.

    details: "ordering", "nonzeros" of H, "factor_nonzeros" of its triangular factor, "fill" their quotient with the
    lower triangle of H, "bandwidth" where the factor is banded.
    """
    del tol, start
    require(accepts(problem))
    system = LinearSystem(problem)
    if system.projection is not None:
        raise InvalidInput("a conditionally positive definite kernel has no sparse matrix: use the saddle solver")
    H = sparse_matrix(system)
    with listening(monitor) as watch:
        factor = factorise(H, ordering)
        constant = problem.constant
        columns = np.hstack([system.T, np.ones((system.n, 1))]) if constant else system.T
        variables = factor.solve(columns)
        if constant:
            variables, e = variables[:, :-1], variables[:, -1:]
            variables = variables - e * (variables.sum(axis=0) / (1.0 / constant + e.sum()))
        c, _ = system.eliminate(variables)
        lower = (H.nnz + system.n) // 2
        details = {
            "ordering": factor.ordering,
            "nonzeros": int(H.nnz),
            "factor_nonzeros": factor.nonzeros,
            "fill": factor.nonzeros / lower,
            "bandwidth": factor.bandwidth,
        }
        return system.exact(c, system.certify(c), "sparse_direct", watch, variables=variables, details=details)


def sparse_matrix(system: LinearSystem) -> Any:
    """K + R on the points of positive weight as a CSR matrix, the constant of a penalised bias left out."""
    K = system.problem.gram.held_values()  # type: ignore[attr-defined]  # it accepts sparse matrices only
    if system.active is not None:
        K = K[system.active][:, system.active]
    return sp.csr_array(K + sp.diags_array(system.ridge), dtype=np.float64)


class SuperLUFactor:
    """H = L U of SuperLU under a fill-reducing order."""

    bandwidth = -1

    def __init__(self, H: Any, ordering: str) -> None:
        self.ordering = ordering
        self.factor = splu(
            sp.csc_array(H), permc_spec=SUPERLU[ordering], diag_pivot_thresh=0.0, options={"SymmetricMode": True}
        )
        if not (self.factor.U.diagonal() > 0).all():
            raise NotPositiveDefinite("K + ridge is not positive definite: lower C or check the kernel")
        self.nonzeros = int(self.factor.L.nnz)

    def solve(self, T: Array) -> Array:
        """H^-1 T."""
        return np.asarray(self.factor.solve(np.ascontiguousarray(T)))


class BandFactor:
    """H = L L' with a banded L in the reverse Cuthill-McKee order."""

    ordering = "reverse_cuthill_mckee"

    def __init__(self, H: Any, order: Index | None = None) -> None:
        self.order = (
            np.asarray(reverse_cuthill_mckee(H, symmetric_mode=True), dtype=np.intp) if order is None else order
        )
        lower = sp.coo_array(sp.tril(H[self.order][:, self.order]))
        n = H.shape[0]
        self.bandwidth = int(np.max(lower.row - lower.col, initial=0))
        band = np.zeros((self.bandwidth + 1, n), order="F")
        band[lower.row - lower.col, lower.col] = lower.data
        if not dense.factorise_band(band):
            raise NotPositiveDefinite("K + ridge is not positive definite: lower C or check the kernel")
        self.band = band
        self.nonzeros = n * (self.bandwidth + 1) - self.bandwidth * (self.bandwidth + 1) // 2

    def solve(self, T: Array) -> Array:
        """H^-1 T."""
        out = np.empty_like(T)
        out[self.order] = dense.solve_band(self.band, T[self.order])
        return out


def factorise(H: Any, ordering: Ordering = "auto") -> SuperLUFactor | BandFactor:
    """Factor H in the order asked for; "auto" takes the band where it stores at most three times the nonzeros of H."""
    if ordering not in ("auto", "reverse_cuthill_mckee", *SUPERLU):
        raise InvalidInput(f"unknown ordering {ordering!r}: use auto, reverse_cuthill_mckee or one of {list(SUPERLU)}")
    if ordering in SUPERLU:
        return SuperLUFactor(H, ordering)
    order = np.asarray(reverse_cuthill_mckee(H, symmetric_mode=True), dtype=np.intp)
    if ordering == "auto" and H.shape[0] * (bandwidth(H, order) + 1) > 3 * H.nnz:
        return SuperLUFactor(H, "minimum_degree")
    return BandFactor(H, order)


def bandwidth(H: Any, order: Index | None = None) -> int:
    """The largest |i - j| of a nonzero H_ij, after renumbering by `order`."""
    entries = sp.coo_array(H)
    place = np.arange(H.shape[0])
    if order is not None:
        place[order] = np.arange(H.shape[0])
    return int(np.max(np.abs(place[entries.row] - place[entries.col]), initial=0))
