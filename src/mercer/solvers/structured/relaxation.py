"""Relaxed inference: the best labelling as a linear programme over the local polytope, by HiGHS.

    max  sum_t u_t'm_t + sum_e <V_e, m_e>      m >= 0,   sum_i m_t(i) = 1,
                                               sum_j m_e(i, j) = m_a(i),   sum_i m_e(i, j) = m_b(j)     for e = (a, b)

(Schlesinger 1976; Wainwright and Jordan 2008, section 8).  Its corners are the labellings and, where the graph has
cycles, fractional points besides, so that its value bounds every labelling's score.  The multipliers of the last two
rows are messages, from which `Network.bound` has a bound that holds whatever the tolerances of HiGHS are.  With whole
numbers the programme is exact (Huangfu and Hall 2018).  For labels 0 and 1 a relaxed label that is not fractional is
the label of some best labelling (Hammer, Hansen and Simeone 1984: roof duality).
"""

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from mercer.arrays import Array
from mercer.errors import MercerError
from mercer.problems.networks import Inferred, Network


def local_polytope(given: Network) -> tuple[sp.csr_array, Array]:
    """Rows A and right-hand sides of A m = b, for m = (node marginals (T, k), edge marginals (E, k, k)) in one vector.

    The T rows of the sums come first, then for each edge k rows for its first node and k for its second.
    """
    (T, k), E = given.unary.shape, len(given.edges)
    sums = sp.kron(sp.eye_array(T), np.ones((1, k)))
    ends = [sp.csr_array((np.full(E, -1.0), (np.arange(E), given.edges[:, side])), shape=(E, T)) for side in (0, 1)]
    first, second = np.kron(np.eye(k), np.ones((1, k))), np.kron(np.ones((1, k)), np.eye(k))
    couplings = sp.vstack([sp.kron(end, sp.eye_array(k)) for end in ends])
    pairs = sp.vstack([sp.kron(sp.eye_array(E), part) for part in (first, second)])
    rows = sp.block_array([[sums, None], [couplings, pairs]], format="csr")
    return rows, np.concatenate((np.ones(T), np.zeros(2 * E * k)))


def infer(given: Network, *, whole: bool = False) -> Inferred:
    """Labels rounded from the relaxed marginals with a valid bound, or the best labels where they must be `whole`."""
    (T, k), E = given.unary.shape, len(given.edges)
    A, b = local_polytope(given)
    costs = -np.concatenate((given.unary.ravel(), given.pairwise[given.tables].ravel()))
    if whole:
        # The edges are whole where the nodes are.
        kinds = np.concatenate((np.ones(T * k), np.zeros(E * k * k)))
        answer = milp(costs, constraints=LinearConstraint(A, b, b), bounds=Bounds(0.0, 1.0), integrality=kinds)
    else:
        answer = linprog(costs, A_eq=A, b_eq=b, bounds=(0.0, None), method="highs")
    if answer.x is None:
        raise MercerError(f"HiGHS found no labelling: {answer.message}")
    marginals = np.clip(answer.x[: T * k].reshape(T, k), 0.0, 1.0)
    labels = np.argmax(marginals, axis=1)
    value = given.score(labels)
    if whole:
        bound = max(value, -float(answer.mip_dual_bound))
        return Inferred(labels, value, bound, exact=given.reached(value, bound))
    multipliers = answer.eqlin.marginals[T:].reshape(2, E, k).transpose(1, 0, 2)
    bound = max(value, -float(answer.fun), given.bound(-multipliers))  # rounding may put them in any order
    exact = given.reached(value, bound)
    return Inferred(labels, value, bound, exact, marginals, answer.x[T * k :].reshape(E, k, k))
