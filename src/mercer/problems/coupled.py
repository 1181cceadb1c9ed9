"""Members of an ensemble that are trained together, so that neighbours agree on points whose targets nobody knows.

Member j is a function f_j(x) = sum_p a_jp k(x_p, x) over basis points of its own, not necessarily those it is fitted
to; there is no bias, and k need not be positive definite.  With K_j (g_j, p_j) the values of its basis at its points,
F_j (m, p_j) those at the m coupling points, and a graph of members with edges of weight l_ij (Hamers 2004, section 6.7,
equations 6.39 to 6.43),

    J(a) = sum_j [ 1/2 sum_i w_i (K_j a_j - y_j)_i^2 + r_j/2 |a_j|^2 ]  +  nu/2 sum_edges l_ij |F_i a_i - F_j a_j|^2 .

The penalty is on the coefficients, r_j = 1 / gamma, and not on the norm of the function.  With the Laplacian L of the
graph the gradient is M a - b,

    M = blockdiag(K_j' W K_j + r_j) + nu F' (L x 1) F,      b_j = K_j' W y_j,      F = blockdiag(F_j) .

The book prints 2 b, and once the part of L that belongs to a member of a ring instead of twice; that matrix is
indefinite, and the zero of its gradient is none of J.

For nu >= 0 the eigenvalues of M are at least those of the ridge, so that with the residual R = b - M a

    J(a) - min J = 1/2 R' M^-1 R <= 1/2 sum_j |R_j|^2 / r_j ,

which is the gap stated here; the dual value is the lower bound J - gap.  For nu < 0, which drives members apart, the
smallest eigenvalue of M takes the place of r_j, and the problem is refused where it is not positive.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercer import dense
from mercer.arrays import Array, Index
from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.problems.certificate import Certificate

GRAPHS = ("ring", "chain", "star", "complete")
EXACT_UP_TO = 3000  # unknowns up to which the smallest eigenvalue of M is computed, and not bounded


def laplacian(graph: str, members: int) -> Array:
    """The Laplacian (q, q) of a graph by its name, all edges of weight one."""
    edges = np.zeros((members, members))
    if graph in ("ring", "chain"):
        if graph == "ring" and members < 3:
            raise InvalidInput(f"a ring needs at least three members, got {members}: take graph='chain'")
        for i in range(members - (graph == "chain")):
            edges[i, (i + 1) % members] = 1.0
    elif graph == "star":
        edges[0, 1:] = 1.0
    elif graph == "complete":
        edges[np.triu_indices(members, 1)] = 1.0
    else:
        raise InvalidInput(f"graph={graph!r} is not known; give one of {', '.join(GRAPHS)}, or weights of edges")
    return laplacian_of(edges + edges.T)


def laplacian_of(weights: Array) -> Array:
    """The Laplacian (q, q) of edges with these weights (q, q), symmetric and not negative."""
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1] or not np.array_equal(weights, weights.T):
        raise InvalidInput(f"the weights of edges must be a symmetric matrix, got one of shape {weights.shape}")
    if not np.isfinite(weights).all() or weights.min(initial=0.0) < 0.0 or np.diagonal(weights).any():
        raise InvalidInput("the weights of edges must be finite, not negative, and zero between a member and itself")
    return np.asarray(np.diag(weights.sum(axis=1)) - weights)


@dataclass(frozen=True, eq=False)
class CoupledMembers:
    """The problem: for each of q members K_j, targets (g_j, k), weights (g_j,), F_j and the ridge; the graph and nu."""

    values: Sequence[Array]
    targets: Sequence[Array]
    weights: Sequence[Array]
    coupled: Sequence[Array]
    ridges: Array
    laplacian: Array
    nu: float

    @cached_property
    def borders(self) -> Index:
        """Where the coefficients of each member begin and end in the vector of all, (q + 1,)."""
        return np.cumsum([0, *(K.shape[1] for K in self.values)], dtype=np.intp)

    @property
    def size(self) -> int:
        """Number of unknowns for each output."""
        return int(self.borders[-1])

    def part(self, j: int) -> slice:
        """The coefficients of a member in the vector of all."""
        return slice(int(self.borders[j]), int(self.borders[j + 1]))

    @cached_property
    def right(self) -> Array:
        """The right-hand side b (p, k)."""
        return np.concatenate([K.T @ (w[:, None] * Y) for K, w, Y in zip(self.values, self.weights, self.targets)])

    def block(self, i: int, j: int) -> Array:
        """The block (p_i, p_j) of M."""
        B = (self.nu * self.laplacian[i, j]) * (self.coupled[i].T @ self.coupled[j])
        if i == j:
            K = self.values[i]
            B += K.T @ (self.weights[i][:, None] * K)
            B[np.diag_indices_from(B)] += self.ridges[i]
        return np.asarray(B)

    def dense(self) -> Array:
        """M (p, p)."""
        q = len(self.values)
        return np.block([[self.block(i, j) for j in range(q)] for i in range(q)])

    def dot(self, A: Array) -> Array:
        """M A for A (p, k), without a product of two kernel matrices."""
        out = np.empty_like(A)
        pull = self._pull(A) if self.nu else None
        for j, (K, w) in enumerate(zip(self.values, self.weights)):
            here = self.part(j)
            out[here] = K.T @ (w[:, None] * (K @ A[here])) + self.ridges[j] * A[here]
            if pull is not None:
                out[here] += self.nu * (self.coupled[j].T @ pull[j])
        return out

    def coupled_outputs(self, A: Array) -> Array:
        """Outputs (q, m, k) of the members at the coupling points."""
        return np.stack([F @ A[self.part(j)] for j, F in enumerate(self.coupled)])

    def _pull(self, A: Array) -> Array:
        return np.asarray(np.einsum("ij,jmk->imk", self.laplacian, self.coupled_outputs(A), optimize=True))

    # Values --------------------------------------------------------------------------------------------------------

    def fit(self, A: Array) -> float:
        """What the members would minimise alone: half the weighted squared errors and the ridges."""
        total = 0.0
        for j, (K, w, Y) in enumerate(zip(self.values, self.weights, self.targets)):
            own = A[self.part(j)]
            total += 0.5 * float(np.sum(w[:, None] * (K @ own - Y) ** 2)) + 0.5 * self.ridges[j] * float(np.sum(own**2))
        return total

    def disagreement(self, A: Array) -> float:
        """Sum over edges of l_ij |f_i - f_j|^2 on the coupling points."""
        return float(np.sum(self.coupled_outputs(A) * self._pull(A)))

    def primal(self, A: Array) -> float:
        """J at coefficients A (p, k)."""
        return self.fit(A) + (0.5 * self.nu * self.disagreement(A) if self.nu else 0.0)

    @cached_property
    def curvature(self) -> Array:
        """Lower bounds (q,): M - blockdiag(curvature) has no negative eigenvalue; refused where M may have one."""
        if self.nu >= 0.0:
            return self.ridges
        lowest = float(dense.eigenvalues(self.dense())[0]) if self.size <= EXACT_UP_TO else self.guaranteed()
        if not lowest > 0.0:
            most = self.least_nu()
            raise NotPositiveDefinite(
                f"nu={self.nu:g} drives the members apart without end: the smallest eigenvalue of the system is "
                f"{lowest:.3g}; nu > {most:.3g} is safe, whatever the data"
            )
        return np.full(len(self.ridges), lowest)

    def guaranteed(self) -> float:
        """A lower bound on the eigenvalues of M that needs no factorisation of it."""
        return float(self.ridges.min()) + min(self.nu, 0.0) * self._largest_pull()

    def least_nu(self) -> float:
        """The nu above which no negative coupling is refused: -min r / (largest of L times largest of F_j'F_j)."""
        pull = self._largest_pull()
        return -float(self.ridges.min()) / pull if pull > 0.0 else -np.inf

    def _largest_pull(self) -> float:
        """Largest eigenvalue of L times the largest of all F_j'F_j."""
        each = [float(dense.eigenvalues(F @ F.T if len(F) <= F.shape[1] else F.T @ F)[-1]) for F in self.coupled]
        return float(dense.eigenvalues(self.laplacian)[-1]) * max(each, default=0.0)

    def certificate(self, A: Array) -> Certificate:
        """Primal value and gap at coefficients A (p, k)."""
        R = self.right - self.dot(A)
        primal = self.primal(A)
        gap = sum(0.5 * float(np.sum(R[self.part(j)] ** 2)) / self.curvature[j] for j in range(len(self.values)))
        return Certificate(primal, primal - gap, gap)
