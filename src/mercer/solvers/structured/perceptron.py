"""The averaged structured perceptron (Collins 2002), on chains the hidden Markov perceptron.

Step number s takes an example, finds its best structure y at w, and where that is wrong adds  w += F(x, y_i) - F(x,
y) . The answer is the mean of w over all steps.  With u the sum of s times what step s added, after N steps it is

    mean = ((N + 1) w - u) / N ,

so that a step costs what it adds and no more.  There is no objective and no gap: passes end when one of them makes no
mistake (the data are separated), or after `max_iter` of them.
"""

import math
import time

import numpy as np

from mercer.errors import InvalidInput
from mercer.problems.structured import StructuredProblem
from mercer.solvers.contract import Start, require, variables_of
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.solution import Record, Solution, Stopped
from mercer.solvers.structured.additive import add_pass
from mercer.solvers.structured.search import accepts

__all__ = ["accepts", "solve"]

NAME = "averaged structured perceptron"


def solve(
    problem: StructuredProblem,
    *,
    start: Start = None,
    monitor: Monitor | None = None,
    max_iter: int = 10,
    seed: int = 0,
) -> Solution:
    """At most `max_iter` passes over the examples in random order; `start`: go on after those of an earlier solution.

    Coefficients are the mean; `variables` hold the number of steps, w and u.
    """
    require(accepts(problem), NAME)
    if max_iter < 1:
        raise InvalidInput(f"max_iter must be at least 1, got {max_iter}: a perceptron need not come to an end")
    n, size, began = problem.n, problem.size, time.perf_counter()
    w, u, steps = np.zeros(size), np.zeros(size), 0
    history: list[Record] = []
    random = np.random.default_rng(seed)

    def solution(stopped: Stopped, passes: int) -> Solution:
        mean = ((steps + 1) * w - u) / max(steps, 1)
        nan, seconds = math.nan, time.perf_counter() - began
        return Solution(
            mean, 0.0, np.concatenate(([steps], w, u)), nan, nan, nan, passes, stopped, seconds, NAME,
            history=tuple(history), details={"last": w.copy(), "mistakes": mistakes},
        )  # fmt: skip

    with listening(monitor) as listener:
        given, mistakes = variables_of(start, listener), n
        if given is not None:
            if len(given) != 1 + 2 * size:
                raise InvalidInput(f"start has {len(given)} numbers, this problem needs {1 + 2 * size}")
            steps, w, u = int(given[0]), given[1 : 1 + size].copy(), given[1 + size :].copy()
        for passes in range(1, max_iter + 1):
            mistakes, loss = add_pass(problem, random.permutation(n), steps, w, u, pace=0.0, augmented=False)
            steps += n
            record = Record(passes, time.perf_counter() - began, loss, math.nan, math.nan, {"mistakes": mistakes})
            history.append(record)
            if mistakes == 0:
                return solution("converged", passes)
            ended = listener.watch(
                passes, loss, math.nan, snapshot=lambda: solution("interrupted", len(history)), mistakes=mistakes
            )
            if not ended:
                return solution(listener.stopped or "interrupted", passes)
        return solution("seen", max_iter)
