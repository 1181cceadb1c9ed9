"""The dual in signed variables with a kink, for the methods whose loops over single steps are compiled.

A method is a loop over `steps.step_pair` and `steps.step_alone` that ends when nothing is left to do, after so many
steps, or at a row that is not held.  Here rows are fetched, steps counted, and variables carried to and from the
program's own (`signed.Signed`).
"""

from collections.abc import Callable

import numpy as np

from mercer.errors import InvalidInput
from mercer.solvers.classical.dual import ClassicalDual, Given
from mercer.solvers.classical.signed import Signed, slope_offsets
from mercer.solvers.classical.steps import Rows, State, missing
from mercer.solvers.working_sets import steps_of_a_slice


class SignedDual(ClassicalDual):
    """u (M,) as `Signed` has it; a subclass says in `loop` how the next steps are found."""

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.signed = Signed.of(self.program)
        self.made = np.zeros(1, dtype=np.int64)

    def loop(self, state: State, rows: Rows, tol: float, most: int) -> int:
        """Steps until the violation is at most tol, at most `most` in `made`; what the loop has ended with."""
        raise NotImplementedError

    def advance(self, aim: float, most: int) -> int:
        """A slice of steps."""
        tol = self.tol if self.violation > self.tol else aim
        most = min(most, steps_of_a_slice(self.n))
        u = self.signed.merged(self.flat)
        state = State(u, self.F, *slope_offsets(self.signed, u), np.zeros(1))
        self.made[0] = 0
        self.fetching(lambda rows: self.loop(state, rows, tol, most))
        self.flat[:] = self.signed.split(u, self.N)
        done = int(self.made[0])
        self.updates += 2 * done
        return done

    def fetching(self, run: Callable[[Rows], int]) -> int:
        """Run a loop to its end, with the rows it misses; what it has ended with."""
        cache = self.cache
        while True:
            before = int(cache.clock[0])
            code = run(Rows(cache.rows, cache.slot_of, cache.used, cache.clock, self.diagonal))
            cache.hits += int(cache.clock[0]) - before
            if code >= 0:
                return code
            cache.provide(np.array([missing(code)], dtype=np.intp))
            cache.hits -= 1  # the loop asks again for what was just fetched


def one_of(name: str, value: str, choices: tuple[str, ...]) -> str:
    """An option that must be one of a few words."""
    if value not in choices:
        raise InvalidInput(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return value
