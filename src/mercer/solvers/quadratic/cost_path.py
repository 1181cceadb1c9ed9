"""The path of C: one problem solved for a whole row of costs, each start taken from the solution before it.

    minimise  1/2 s'Ks + p's       C lower <= s <= C upper,   sum of s fixed at zero,        for C_1 < C_2 < ...

with the box of one unit cost (lower, upper) and the linear term p independent of C: support vector classification and
epsilon-insensitive regression are of this form.  K is stored (float32), and the n training points are one or two
contiguous stretches of it, so that with points ordered by fold "all folds but one" is trained on in place.

Multiplying s by C'/C keeps box and equality, keeps the variables that are at their bounds there, and multiplies F = K s
by the same factor (Schoelkopf and Smola 2002, section 10.1.2), so that a start costs nothing.  Going up, s itself is
feasible too, and the better start once few variables are at their bounds.  When none is, the path has ended: the
solution is the same for all larger C, and it is copied.  C rises, because the end then comes for nothing.

Few points have their whole path in one compiled call (`cost_path`), whose pair steps look at all of them; for more,
each cost is a warm start of the engine of working sets (`next_cost`).
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.compiled import loop
from mercer.problems.base import PlainProgram
from mercer.problems.program import QuadraticProgram
from mercer.solvers.monitor import Monitor
from mercer.solvers.quadratic.decomposition import GroupSums
from mercer.solvers.quadratic.pair_steps import pair_steps
from mercer.solvers.quadratic.violations import free_gradients, survey
from mercer.solvers.working_sets import Search

Array = NDArray[np.float64]

# Below this share of bounded support vectors a solution is a better start as it is than scaled.
FEW = 0.1


@loop
def _level(G: Any, s: Any, program: Any, low: float, high: float, scratch: Any) -> float:
    """The mean gradient of the free variables, or the middle between the two extremes where there is none."""
    count = free_gradients(G, s, program, 0, scratch)
    return scratch[:count].sum() / count if count else 0.5 * (low + high)


@loop
def _offset(F: Any, s: Any, program: Any) -> float:
    """The bias: minus the gradient of the free variables, or the middle of what the bounded ones allow."""
    G, extremes = np.empty(s.shape), np.empty((1, 4))
    survey(F, s, program, G, extremes)
    low, high = extremes[0, 0], extremes[0, 2]
    if low == np.inf or high == -np.inf:
        return 0.0
    return -_level(G, s, program, low, high, np.empty(s.size))


@loop
def _largest(s: Any, lower: Any, upper: Any) -> float:
    """Largest share of its bound that a variable takes."""
    share = 0.0
    for l in range(s.shape[0]):
        for k in range(s.shape[1]):
            if upper[l, k] > 0.0:
                share = max(share, s[l, k] / upper[l, k])
            if lower[l, k] < 0.0:
                share = max(share, s[l, k] / lower[l, k])
    return share


@loop
def _start_factor(lower: Any, upper: Any, state: Any, factor: float) -> float:
    """What to multiply the last solution by: C'/C, or one when C rises and few of its variables are at a bound."""
    bound = support = 0
    for l in range(state.shape[0]):
        for k in range(state.shape[1]):
            if state[l, k] != 0.0:
                support += 1
                if state[l, k] == lower[l, k] or state[l, k] == upper[l, k]:
                    bound += 1
    return factor if factor < 1.0 or bound > FEW * support else 1.0


@loop
def _begin(lower: Any, upper: Any, low: Any, high: Any, state: Any, F: Any, now: float, C: float) -> None:
    """Turn bounds, variables and outputs at C = now (0: no solution yet) into a start at C."""
    layers, n = state.shape
    factor = _start_factor(low, high, state, C / now) if now > 0.0 else 1.0
    for k in range(n):
        F[k] *= factor
        for l in range(layers):
            low[l, k], high[l, k] = C * lower[l, k], C * upper[l, k]
            state[l, k] = min(max(state[l, k] * factor, low[l, k]), high[l, k])


@loop
def cost_path(
    K: Any,
    stretches: Any,
    linear: Any,
    lower: Any,
    upper: Any,
    costs: Any,
    tol: float,
    max_steps: int,
    state: Any,
    F: Any,
    start: float,
    coefficients: Any,
    biases: Any,
    facts: Any,
) -> float:
    """Solve for every C of `costs` in turn on `stretches` of K, as `minimise_pairs` has them.

    linear, lower, upper (layers, n) state the problem at C = 1; state (layers, n) and F (n,) hold the solution at
    C = start (zeros and start = 0: none) and are carried along; coefficients (costs, n), biases (costs,) and facts
    (costs, 2), the pair steps and the violation, are written.  Returns the C at which the path ended, infinity when it
    has not.
    """
    layers, n = state.shape
    first, middle, second = stretches
    diagonal = np.empty(n)
    for k in range(n):
        at = first + k if k < middle else second + k - middle
        diagonal[k] = K[at, at]
    low, high = start * lower, start * upper
    program = linear, np.zeros((layers, n)), low, high, np.zeros((layers, n), np.intp)
    ended = np.inf
    now = start
    for c in range(costs.shape[0]):
        C = costs[c]
        if ended < C:
            coefficients[c] = coefficients[c - 1]
            biases[c] = biases[c - 1]
            continue
        _begin(lower, upper, low, high, state, F, now, C)
        steps, violation = pair_steps(K, None, None, stretches, diagonal, F, state, program, 1, tol, max_steps)
        now = C
        for k in range(n):
            total = 0.0
            for l in range(layers):
                total += state[l, k]
            coefficients[c, k] = total
        biases[c] = _offset(F, state, program)
        facts[c, 0], facts[c, 1] = steps, violation
        if _largest(state, low, high) < 1.0 and violation <= tol:
            ended = C
    return ended


class Reached(NamedTuple):
    """One cost of a path: coefficients (n,), bias, steps, the violation left, and whether the path ends there.

    `complete` is False where the monitor ended the search before.
    """

    coefficients: Array
    bias: float
    steps: int
    violation: float
    ended: bool
    complete: bool


def next_cost(
    unit: QuadraticProgram, state: Array, F: Array, now: float, C: float, tol: float, monitor: Monitor
) -> Reached:
    """The problem `unit`, stated at C = 1, at another C, from the solution at C = now (0: none).

    state (layers, n) and F = K c (n,) hold that solution and become those of the new one.
    """
    shape = state.shape
    lower, upper = unit.lower.reshape(shape), unit.upper.reshape(shape)
    low, high = now * lower, now * upper
    _begin(lower, upper, low, high, state, F, now, C)
    problem = PlainProgram(replace(unit, lower=low.ravel(), upper=high.ravel()))
    strategy = GroupSums(problem, tol, state.ravel(), outputs=F)
    search = Search(strategy, tol=tol, gap_tol=None, monitor=monitor, seed=0)
    stopped = search.rounds_until(-1)
    state[:], F[:] = strategy.s, strategy.F
    parts = unit.linear.reshape(shape), np.zeros(shape), low, high, np.zeros(shape, np.intp)
    ended = stopped == "converged" and _largest(state, low, high) < 1.0
    complete = stopped in ("converged", "stalled")
    bias = float(_offset(F, state, parts))
    return Reached(state.sum(axis=0), bias, search.steps, strategy.violation, ended, complete)
