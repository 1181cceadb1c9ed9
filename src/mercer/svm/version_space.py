"""What the machines share that only separate the classes: the perceptron and the Bayes point.

They look for some f with y_i f(x_i) > 0, or for the middle of all of them, not for the optimum of an objective: there
is no dual, and `objective_`, `dual_objective_` and `gap_` are nan.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from mercer.gram import GramOperator
from mercer.machine.base import Matrix, Vector
from mercer.machine.outcome import FitPlan, warn_if_stopped
from mercer.machine.training_set import TrainingSet
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution, Stopped
from mercer.svm.one_versus_all import OneVersusAllMachine


@dataclass(kw_only=True, eq=False, repr=False)
class Separator(OneVersusAllMachine):
    """Base of the machines; see `KernelPerceptron` for the meaning of the parameters."""

    _reason: ClassVar[str]
    """Name of the method, and what it does."""

    def _separate(
        self, gram: GramOperator, y: Vector, weights: Vector, random: np.random.Generator, monitor: Monitor
    ) -> tuple[Vector, int, Stopped]:
        """Coefficients (n,) of a function that separates labels y (n,), their sum being the bias; updates; outcome."""
        raise NotImplementedError

    def _learn(
        self, training: TrainingSet, X: Any, codes: NDArray[np.intp], signs: Matrix, weights: Vector | None,
        monitor: Monitor,
    ) -> None:  # fmt: skip
        sizes = np.ones(training.n) if weights is None else weights
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        found = []
        for column in signs.T:
            random = np.random.default_rng(seed)
            began = monitor.seconds
            answer = self._separate(training.gram(), np.ascontiguousarray(column), sizes, random, monitor)
            found.append(self._solution(*answer, monitor.seconds - began))
        self._finish(training, X, codes, found, monitor)

    def _solution(self, c: Vector, updates: int, stopped: Stopped, seconds: float) -> Solution:
        nan = math.nan
        name = self._reason.partition(":")[0]
        return Solution(c, float(c.sum()), c, nan, nan, nan, updates, stopped, seconds, name)

    def _finish(
        self, training: TrainingSet, X: Any, codes: NDArray[np.intp], found: list[Solution], monitor: Monitor
    ) -> None:
        """Store the functions and how they were found."""
        C = np.stack([solution.coefficients for solution in found])
        support = np.flatnonzero(C.any(axis=0))
        counts = np.bincount(codes[support], minlength=len(self.classes_))
        self._keep(training, X, support, np.ascontiguousarray(C[:, support]), C.sum(axis=1), counts)
        self.objective_ = self.dual_objective_ = self.gap_ = math.nan
        single = len(found) == 1
        self.n_iter_ = found[0].iterations if single else np.array([s.iterations for s in found], dtype=np.int32)
        self.solution_, self.history_ = found[0] if single else found, tuple(monitor.history)
        self.solver_ = self._reason
        self.plan_ = FitPlan.of(
            self.solver_, len(found), self.approximation_reason_, training.resources, vars(training).get("whole")
        )
        self.stopped_ = warn_if_stopped(found, self.max_iter, self.max_time)
