"""Codes of support vector machines on shared kernel values.

Every column is a binary machine on the points of its classes.  All of them use parts of one kernel matrix, which is
computed once where it fits, and they are trained side by side.  Their support vectors are kept once: one pass over the
kernel values of new points serves all machines.  All pairs go through `SVC` itself, whose pairs share as well.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import threads
from mercer.gram import Gram, GramOperator
from mercer.machine.fitted_state import State, Values
from mercer.machine.training_set import TrainingSet
from mercer.multiclass.banks import Bank
from mercer.multiclass.codes import Code, all_versus_all
from mercer.problems import HardMargin, Problem
from mercer.resources import Resources
from mercer.solvers.monitor import Monitor
from mercer.solvers.quadratic import decomposition
from mercer.solvers.solution import Solution
from mercer.svm import SVC
from mercer.svm.base import SupportVectorMachine
from mercer.svm.classification import Trained
from mercer.svm.solving import BinaryMachine

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

    def _state(self) -> State:
        return {**super()._state(), "_code": Values(("classes", "outputs"), "i1")}

    def _expansion_shape(self, outputs: int) -> tuple[int, int]:
        return self._code.shape[1], self._code.shape[1]

    def _train(
        self, training: TrainingSet, codes: Index, weights: Vector | None, index: Index | None, monitor: Monitor
    ) -> Trained:
        hold(training)
        columns = self._code.T

        def train(column: int) -> tuple[Index | None, Problem, Solution]:
            signs = columns[column][codes].astype(np.float64)
            members = None if signs.all() else np.flatnonzero(signs)
            own = weights if members is None or weights is None else weights[members]
            problem = self._problem(training.gram(members, share), signs if members is None else signs[members], own)
            return members, problem, self._solve_held(problem, training.resources, monitor)

        _ = training.whole  # computed before the threads part
        share = training.side_by_side(len(columns))
        trained = threads.run(train, [(column,) for column in range(len(columns))], share)
        rows = np.zeros((len(columns), len(codes)))
        scales = [self._scale(problem, solution) for _, problem, solution in trained]
        for row, (members, _, solution), scale in zip(rows, trained, scales):
            row[slice(None) if members is None else members] = solution.coefficients / scale
        support = np.flatnonzero(rows.any(axis=0))
        support = support[np.argsort(codes[support], kind="stable")]
        counts = np.bincount(codes[support], minlength=len(self._code)).astype(np.int32)
        intercept = np.array([float(solution.bias) / scale for (_, _, solution), scale in zip(trained, scales)])
        machines = [BinaryMachine(problem, solution, problem.box) for _, problem, solution in trained]
        dual = np.ascontiguousarray(rows[:, support])
        return Trained(support, counts, dual, intercept, machines, np.zeros((0, len(rows))))

    def _solve_held(self, problem: Problem, resources: Resources, monitor: Monitor) -> Solution:
        """One column; where its matrix is held and not large, all points are one working set."""
        held = isinstance(problem.gram, GramOperator) and problem.gram.held_values() is not None
        n = problem.program().n
        if self.solver == "interior_point" or not held or n > WHOLE or isinstance(problem, HardMargin):
            return self._solve(problem, resources, monitor)
        return decomposition.solve(
            problem, tol=self.tol, gap_tol=self.gap_tol, monitor=monitor, max_iter=self.max_iter, working_set=n
        )

    def _public(self, dual: Matrix, intercept: Vector) -> tuple[Any, Vector]:
        return SupportVectorMachine._public(self, dual, intercept)

    def outputs(self, X: Any) -> Matrix:
        """Decision values (n, F)."""
        return self._values(X)


def shares_matrix(base: Any) -> bool:
    """Whether the machines of all columns are parts of one problem: a plain SVC, whose points weigh the same in all."""
    return type(base) is SVC and base.class_weight is base.approximation is base.basis is None


def hold(training: TrainingSet) -> None:
    """Compute the whole matrix once where it fits: with many machines even cheap values are cheaper to read."""
    memory, precision = training.resources.memory, training.resources.precision
    size = training.n**2 * np.dtype(precision).itemsize
    if training.kind in ("features", "objects") and not training.shared and 2 * size <= training.resources.budget:
        training.shared = True
        training.whole = Gram(training.kernel, training.points, memory=memory, precision=precision, storage="dense")


class SupportVectorBank(Bank):
    """Machines of one SVC: its pairs, its only machine, or the columns of a code."""

    def __init__(self, machine: SVC, code: Code) -> None:
        self.machine = machine
        self._sign = code[1:].astype(np.float64) if len(code) == 2 else None

    @classmethod
    def train(cls, base: SVC, code: Code, X: Any, labels: Index, weights: Vector | None) -> "SupportVectorBank":
        """Train on points X whose classes 0..k-1 are `labels` (n,)."""
        options = {**base.get_params(deep=False), "probability": False}
        if len(code) == 2:
            machine = SVC(**options)
        elif np.array_equal(code, all_versus_all(len(code))):
            options |= {"multiclass": "ovo", "decision_function_shape": "ovo", "break_ties": False}
            machine = SVC(**options)
        else:
            machine = CodedSVC.like(base, code)
        machine.fit(X, labels, sample_weight=weights)
        return cls(machine, code)

    def parts(self) -> list[Any]:
        """The one SVC."""
        return [self.machine]

    def outputs(self, X: Any) -> Matrix:
        """Outputs (m, F)."""
        if isinstance(self.machine, CodedSVC):
            return self.machine.outputs(X)
        values = self.machine.decision_function(X)
        return values if self._sign is None else np.asarray(values[:, None] * self._sign)


def bank(base: SVC, code: Code, X: Any, labels: Index, weights: Vector | None) -> Bank | None:
    """The bank of a base SVC; None where machines must be trained one by one."""
    if not shares_matrix(base) or len(np.unique(labels)) < len(code):  # a class is missing, as may happen in a fold
        return None
    return SupportVectorBank.train(base, code, X, labels, weights)
