"""LinearProgrammingSVC and LinearProgrammingSVR: a norm of the coefficients in the place of the norm of f.

    min ||a|| + C sum_i w_i l(y_i, f(x_i) + b),       f = sum_j a_j k(x_j, .)

with the l1 norm, which leaves few kernels, or the largest absolute value.  The kernel need not be positive definite
(`mercer.problems.linear_program`, `mercer.solvers.linear_programming`).
"""

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from mercer.losses import EpsilonInsensitive, Hinge, Loss
from mercer.machine import arguments
from mercer.machine.arguments import (
    kind_of,
    refuse_huge,
    sample_weights,
)
from mercer.machine.base import KernelMachine, Matrix, Vector
from mercer.machine.training_set import TrainingSet
from mercer.problems.linear_program import NORMS, LinearProgram
from mercer.solvers.linear_programming import solve
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution
from mercer.svm.one_versus_all import OneVersusAllMachine


@dataclass(kw_only=True, eq=False, repr=False)
class LinearProgrammingMachine(KernelMachine):
    """Base of both machines; see `LinearProgrammingSVC` for the meaning of the parameters."""

    C: float = 1.0
    norm: str = "l1"
    tol: float = 1e-6

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelMachine._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "norm": [StrOptions(set(NORMS))],
    }

    def _solve_all(
        self, training: TrainingSet, targets: Matrix, loss: Loss, weights: Vector | None, monitor: Monitor
    ) -> list[Solution]:
        """One linear program for each column of targets (n, k)."""
        gram: Any = training.gram()
        norm: Any = self.norm
        before = getattr(self, "solution_", None) if self.warm_start else None
        starts = before if isinstance(before, list) else [before]
        if len(starts) != targets.shape[1]:
            starts = [None] * targets.shape[1]
        return [
            solve(
                LinearProgram(gram, column, loss, self.C, weights, norm),
                tol=self.tol,
                start=first,
                monitor=monitor,
                max_iter=self.max_iter,
                max_time=self.max_time,
                memory=training.resources.memory,
            )
            for column, first in zip(targets.T, starts)
        ]

    def _store(self, training: TrainingSet, X: Any, found: list[Solution], codes: NDArray[np.intp] | None) -> None:
        """Keep the expansion and its certificate."""
        A = np.stack([solution.coefficients for solution in found])
        support = np.flatnonzero(A.any(axis=0))
        classes = max(2, len(found))
        counts = np.array([support.size]) if codes is None else np.bincount(codes[support], minlength=classes)
        bias = np.array([float(solution.bias) for solution in found])
        self._keep(training, X, support, np.ascontiguousarray(A[:, support]), bias, counts)
        self._certify(found, None, "HiGHS", vars(training).get("whole"), training.resources)


@dataclass(kw_only=True, eq=False, repr=False)
class LinearProgrammingSVC(OneVersusAllMachine, LinearProgrammingMachine):
    """Classification by a linear program: few kernels, or coefficients of equal size.

    Two classes are one program, k > 2 classes k of them, one class against the rest.

    Parameters
    ----------
    C : cost of an error relative to the norm of the coefficients; sample and class weights multiply it.
    norm : "l1", the sum of absolute coefficients, or "linf", the largest; copies of a point have one coefficient.
    tol : relative duality gap that is certified.
    max_iter : most steps of the simplex method; -1 is no limit.  max_time : seconds for each program.
    class_weight : as in scikit-learn.
    warm_start : a solution of the last fit that has the gap `tol` on these points is kept.
    kernel, degree, gamma, coef0, approximation, memory, precision, random_state, verbose, n_jobs
        As in `SVC`; the kernel need not be positive definite.  The matrix is held as a whole.

    Attributes
    ----------
    classes_ : the labels.
    support_, support_vectors_, dual_coef_, intercept_ : the points whose kernels have a coefficient, and these
        (1 or k, n_SV).
    objective_, dual_objective_, gap_ : primal and dual value of the linear programs, summed, and their difference.
    kernel_, solver_, solution_, history_, stopped_, n_iter_, plan_, approximation_, approximation_reason_, feature_map_
        As in `SVC`; `solution_.variables` are the multipliers delta of the dual.

    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **OneVersusAllMachine._parameter_constraints,
        **LinearProgrammingMachine._parameter_constraints,
    }

    def _largest(self) -> float:
        return self.C

    def _learn(
        self, training: TrainingSet, X: Any, codes: NDArray[np.intp], signs: Matrix, weights: Vector | None,
        monitor: Monitor,
    ) -> None:  # fmt: skip
        refuse_huge(self.C, weights)
        self._store(training, X, self._solve_all(training, signs, Hinge(), weights, monitor), codes)


@dataclass(kw_only=True, eq=False, repr=False)
class LinearProgrammingSVR(RegressorMixin, LinearProgrammingMachine):  # type: ignore[misc]  # untyped
    """Regression by a linear program: the epsilon-insensitive loss, and few kernels.

    `epsilon` is half the width of the tube inside which errors cost nothing; the other parameters and the attributes
    are those of `LinearProgrammingSVC`.
    """

    epsilon: float = 0.1

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearProgrammingMachine._parameter_constraints,
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
    }

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LinearProgrammingSVR":
        """Train on points X (n, d), dense or CSR, and targets y (n,); `sample_weight` (n,) multiplies C."""
        kind = kind_of(self.kernel, X)
        X, y = arguments.training_data(self, kind, X, y, numeric=True)
        y = np.ascontiguousarray(y, dtype=np.float64)
        with self._watched(X, y) as monitor:
            training, weights = self._training_set(kind, X, sample_weights(sample_weight, X), y, y, largest=self.C)
            y = y if training.kept is None else y[training.kept]
            refuse_huge(self.C, weights)
            loss = EpsilonInsensitive(self.epsilon)
            self._store(training, X, self._solve_all(training, y[:, None], loss, weights, monitor), None)
        return self

    def predict(self, X: Any) -> Vector:
        """Predicted values (n,)."""
        return self._values(X)[:, 0]
