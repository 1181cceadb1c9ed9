"""Codes of support vector machines on shared kernel values.

Every column is a binary machine on the points of its classes.  All of them use parts of one kernel matrix, which is
computed once where it fits, and they are trained side by side.  Their support vectors are kept once: one pass over the
kernel values of new points serves all machines.  All pairs go through `SVC` itself, whose pairs share as well.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import threads
from mercer.estimation.training import TrainingSet
from mercer.gram import Gram
from mercer.gram.memory import budget
from mercer.multiclass.banks import Bank
from mercer.multiclass.codes import Code, all_versus_all
from mercer.problems import Problem
from mercer.solvers import decomposition
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution
from mercer.svm import SVC
from mercer.svm.classifier import Trained

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Index = NDArray[np.intp]

WHOLE = 3000  # points up to which steps on all of them are faster than working sets, once the matrix is there


class CodedSVC(SVC):
    """An SVC whose binary machines are the columns of a code; labels are the rows 0..k-1 of the code."""

    _code: Code

    @classmethod
    def like(cls, base: SVC, code: Code) -> "CodedSVC":
        """One with the parameters of `base`."""
        machine = cls(**{**base.get_params(deep=False), "probability": False})
        machine._code = code
        return machine

    def _encode(self, y: NDArray[Any], weights: Vector | None) -> Index:
        self.classes_ = np.arange(len(self._code))
        return np.asarray(y, dtype=np.intp)

    @property
    def _paired(self) -> bool:
        return False

    def _train(
        self, training: TrainingSet, codes: Index, weights: Vector | None, index: Index | None, monitor: Monitor
    ) -> Trained:
        hold(training)
        columns = self._code.T

        def train(column: int) -> tuple[Index | None, Problem, Solution]:
            signs = columns[column][codes].astype(np.float64)
            members = None if signs.all() else np.flatnonzero(signs)
            own = weights if members is None or weights is None else weights[members]
            problem = self._problem(training.gram(members), signs if members is None else signs[members], own)
            return members, problem, self._solve_held(problem, monitor)

        _ = training.whole  # computed before the threads part
        trained = threads.run(train, [(column,) for column in range(len(columns))])
        rows = np.zeros((len(columns), len(codes)))
        for row, (members, _, solution) in zip(rows, trained):
            row[slice(None) if members is None else members] = solution.coefficients
        support = np.flatnonzero(rows.any(axis=0))
        support = support[np.argsort(codes[support], kind="stable")]
        counts = np.bincount(codes[support], minlength=len(self._code)).astype(np.int32)
        intercept = np.array([float(solution.bias) for _, _, solution in trained])
        problems, solutions = [problem for _, problem, _ in trained], [solution for _, _, solution in trained]
        dual = np.ascontiguousarray(rows[:, support])
        return Trained(support, counts, dual, intercept, list(problems), solutions, [p.box for p in problems])

    def _solve_held(self, problem: Problem, monitor: Monitor) -> Solution:
        """One column; where its matrix is held and not large, all points are one working set."""
        held = getattr(problem.gram, "matrix", None) is not None
        n = problem.program().n
        if self.solver == "interior_point" or not held or n > WHOLE:
            return self._solve(problem, monitor)
        return decomposition.solve(
            problem, tol=self.tol, gap_tol=self.gap_tol, monitor=monitor, max_iter=self.max_iter, working_set=n
        )

    def _public(self, dual: Matrix, intercept: Vector) -> tuple[Matrix, Vector]:
        return dual, intercept

    def outputs(self, X: Any) -> Matrix:
        """Decision values (n, F)."""
        return self._values(X)


def hold(training: TrainingSet) -> None:
    """Compute the whole matrix once where it fits: with many machines even cheap values are cheaper to read."""
    size = training.n**2 * np.dtype(training.precision).itemsize
    if training.kind in ("features", "objects") and not training.shared and 2 * size <= budget(training.memory):
        training.shared = True
        training.whole = Gram(
            training.kernel, training.points, memory=training.memory, precision=training.precision, storage="dense"
        )


class SupportVectorBank(Bank):
    """Machines of one SVC: its pairs, its only machine, or the columns of a code."""

    def __init__(self, base: SVC, code: Code, X: Any, labels: Index, weights: Vector | None) -> None:
        self._sign: Matrix | None = None
        self._pairs = len(code) > 2 and np.array_equal(code, all_versus_all(len(code)))
        if len(code) == 2:
            self.machine = SVC(**{**base.get_params(deep=False), "probability": False})
            self._sign = code[1:].astype(np.float64)
        elif self._pairs:
            options = {"multiclass": "ovo", "decision_function_shape": "ovo", "break_ties": False, "probability": False}
            self.machine = SVC(**{**base.get_params(deep=False), **options})
        else:
            self.machine = CodedSVC.like(base, code)
        self.machine.fit(X, labels, sample_weight=weights)

    def outputs(self, X: Any) -> Matrix:
        """Outputs (m, F)."""
        if isinstance(self.machine, CodedSVC):
            return self.machine.outputs(X)
        values = self.machine.decision_function(X)
        return values if self._sign is None else np.asarray(values[:, None] * self._sign)


def bank(base: SVC, code: Code, X: Any, labels: Index, weights: Vector | None) -> Bank | None:
    """The bank of a base SVC; None where machines must be trained one by one."""
    if base.class_weight is not None or type(base) is not SVC or getattr(base, "approximation", None) is not None:
        return None
    if len(np.unique(labels)) < len(code):  # a class is missing, as may happen in a fold
        return None
    return SupportVectorBank(base, code, X, labels, weights)
