"""Greedy landmarks: each step adds the point that lowers the residual trace the most.

With R = K - K~ the residual of the points chosen so far, adding the point j lowers sum_i w_i R_ii by

    gain_j = sum_i w_i R_ij^2 / R_jj.

* `sparse_greedy` tries 59 random points in each step: with probability 0.95 the best of them is among the best 5 %,
  since 59 = ceil(log 0.05 / log 0.95) (Schoelkopf and Smola 2002, section 10.2.3).
* `trace_greedy` tries all.  The sums s_j = sum_i w_i R_ij^2 need not be formed again: a new row g of the factor turns
  R_j into R_j - g g_j, so that s_j falls by 2 g_j h_j - g_j^2 g'Wg with h = R W g, one product with the matrix.
* `feature_vectors` raises the fitness, the mean over i of k_Si' K_SS^-1 k_Si / k_ii: the share of |k(x_i, .)|^2 within
  the span (Baudat and Anouar 2003).  That is the same with weights w_i / k_ii, and 1 - trace / n where all k_ii = 1.
"""

import math

import numpy as np

from mercer.errors import InvalidInput
from mercer.gram import GramOperator
from mercer.kernels.checks import whole
from mercer.lowrank.landmarks.factor import DEPENDENT, Array, Factor, Pick, check_shares
from mercer.lowrank.landmarks.task import Choice, LandmarkTask, Rows
from mercer.resources import row_blocks

CANDIDATES = math.ceil(math.log(0.05) / math.log(0.95))
WORK = 4e11
FULL_WORK = 1e10


def sparse_greedy(
    task: LandmarkTask,
    candidates: int = CANDIDATES,
    tol: float = DEPENDENT,
    trace_tol: float = 0.0,
    rows: int | None = None,
) -> Choice:
    """Add the best of a few random points in each step; candidates m^2 n operations.

    candidates: how many points to try.  tol: a point whose residual is at most this share of the largest k(x, x) is not
    tried.  trace_tol: stop when the residual trace is this share of the trace.  rows: look at so many random rows only;
    None: at all where that is affordable.
    """
    task.need_definite("sparse_greedy")
    check_shares(tol=tol, trace_tol=trace_tol)
    candidates = whole(candidates, "candidates", 1)
    chosen = task.working_rows(rows, WORK / (candidates * task.m**2), 8 * (task.m + 3 * candidates))
    factor = Factor(task.gram(chosen, storage="streamed"), task.m, task.weights[chosen], tol)

    def best_of_some(f: Factor) -> tuple[int, Array | None]:
        open_points = np.flatnonzero(f.independent())
        tried = task.rng.permutation(open_points)[:candidates].astype(np.intp)
        columns = f.residual_columns(tried)
        gains = np.einsum("ij,ij,j->i", columns, columns, f.weights) / f.left[tried]
        best = int(np.argmax(gains))
        return int(tried[best]), columns[best]

    choice = factor.choice(task, chosen, best_of_some, trace_tol * factor.trace)
    choice.details["candidates"] = candidates
    return choice


class Gains:
    """Sums s_j = sum_i w_i R_ij^2 of all points, kept up to date while the factor grows."""

    def __init__(self, factor: Factor) -> None:
        self.factor = factor
        self.sums = weighted_squares(factor.gram, factor.weights)

    def values(self) -> Array:
        """What each point would gain, (n,); zero for points that depend on the chosen ones."""
        left, open_points = self.factor.left, self.factor.independent()
        gains = np.zeros(len(left))
        np.divide(self.sums, left, out=gains, where=open_points)
        return gains

    def pick(self, factor: Factor) -> tuple[int, Array | None]:
        """The point of largest gain; the sums are brought up to date as if it were in."""
        j = int(np.argmax(self.values()))
        column = factor.residual_columns(np.array([j], dtype=np.intp))[0]
        g = column / np.sqrt(factor.left[j])
        weighted = factor.weights * g
        h = factor.gram.dot(weighted) - factor.V.T @ (factor.V @ weighted)
        self.sums += g * (g * float(weighted @ g) - 2.0 * h)
        return j, column


def weighted_squares(gram: GramOperator, weights: Array) -> Array:
    """sum_i w_i K_ij^2 for every j, (n,), by blocks of rows of a symmetric matrix."""
    n = gram.shape[0]
    sums = np.empty(n)
    for rows in row_blocks(n, n):
        sums[rows] = np.square(gram.rows(rows)) @ weights
    return sums


def trace_greedy(task: LandmarkTask, tol: float = DEPENDENT, trace_tol: float = 0.0, rows: int | None = None) -> Choice:
    """Add the best of all points in each step; one product with the whole matrix for each.

    Options as in `sparse_greedy`.
    """
    task.need_definite("trace_greedy")
    check_shares(tol=tol, trace_tol=trace_tol)
    chosen = full_rows(task, rows)
    factor = Factor(task.gram(chosen), task.m, task.weights[chosen], tol)
    return factor.choice(task, chosen, Gains(factor).pick, trace_tol * factor.trace)


def full_rows(task: LandmarkTask, rows: int | None) -> Rows:
    """The rows looked at by a method that multiplies with the whole matrix once for each landmark."""
    return task.working_rows(rows, math.sqrt(FULL_WORK / task.m), 8 * task.m)


def feature_vectors(
    task: LandmarkTask, rule: str = "global", fitness: float = 1.0, tol: float = DEPENDENT, rows: int | None = None
) -> Choice:
    """Add points that raise the mean fitness, until it reaches `fitness` or there are m.

    rule: "global" adds the point that raises it the most, "worst" the point of least fitness of its own, as Baudat and
    Anouar do after a first point chosen by the global rule: one column in place of one product for each step.
    """
    task.need_definite("feature_vectors")
    check_shares(tol=tol)
    if rule not in ("global", "worst") or not 0 < fitness <= 1:
        raise InvalidInput(f"rule={rule!r}, fitness={fitness!r}: give 'global' or 'worst', and a fitness in (0, 1]")
    chosen = full_rows(task, rows)
    gram = task.gram(chosen, storage="auto" if rule == "global" else "streamed")
    diagonal = np.asarray(gram.diagonal(), dtype=np.float64)
    shares = np.divide(task.weights[chosen], diagonal, out=np.zeros(len(chosen)), where=diagonal > 0)
    factor = Factor(gram, task.m, shares / max(float(shares @ diagonal), 1e-300), tol)
    gains = Gains(factor)
    pick = gains.pick if rule == "global" else _worst_after(gains, diagonal)
    choice = factor.choice(task, chosen, pick, 1.0 - fitness)
    choice.details.update(history=1.0 - np.array(factor.history), fitness=1.0 - factor.trace)
    return choice


def _worst_after(gains: Gains, diagonal: Array) -> Pick:
    """The global rule for the first point, then the point of least fitness."""

    def pick(factor: Factor) -> tuple[int, Array | None]:
        if not factor.chosen:
            return int(np.argmax(gains.values())), None
        unfitness = np.divide(factor.left, diagonal, out=np.zeros(len(diagonal)), where=factor.independent())
        return int(np.argmax(unfitness)), None

    return pick
