"""What the five support vector machines share: their parameters, how one problem is solved, and warm starts.

`fit` states one problem of `mercer.problems` for each binary machine, has it solved and keeps the expansion together
with its certificate: `objective_`, `dual_objective_` and `gap_` are sums over the machines, `solution_` has each of
them.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, StrOptions

from mercer import threads
from mercer.machine.base import KernelMachine, Matrix, Vector
from mercer.machine.outcome import MET
from mercer.machine.training_set import FACTORISING, TrainingSet
from mercer.problems import Problem
from mercer.resources import Resources
from mercer.solvers.catalogue import NAMES
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution
from mercer.svm.solving import BinaryMachine, WarmStart, solve

DEFAULT_CACHE = 200  # scikit-learn's default cache_size, in MB


@dataclass(kw_only=True, eq=False, repr=False)
class SupportVectorMachine(KernelMachine):
    """Base of the five machines; see `SVC` for the meaning of the parameters."""

    shrinking: bool = True
    cache_size: float = DEFAULT_CACHE
    solver: str = "auto"
    gap_tol: float | None = None

    from_factor: ClassVar[bool] = False
    """Whether a linear kernel on few features may be trained from the points: C bounds the coefficients."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelMachine._parameter_constraints,
        "shrinking": ["boolean"],
        "cache_size": [Interval(Real, 0, None, closed="neither")],
        "solver": [StrOptions({"auto", *NAMES})],
        "gap_tol": [Interval(Real, 0.0, None, closed="neither"), None],
    }

    def _resources(self) -> Resources:
        """`memory`, else a `cache_size` that was changed; solvers that factorise the matrix take it in float64."""
        memory: Any = self.memory
        if memory is None and self.cache_size != DEFAULT_CACHE:
            memory = int(self.cache_size * 2**20)
        return Resources(memory, "float64" if self._factorises else self.precision, threads=self.n_jobs)

    @property
    def _factorises(self) -> bool:
        """Whether a solver that factorises the matrix is asked for, or the interior point method needed for a basis."""
        return self.solver in FACTORISING or self.basis is not None

    def _blas(self, n: int) -> AbstractContextManager[None]:
        """The interior point factorises large matrices; all else runs its own threads, each with one of BLAS."""
        return nullcontext() if self._factorises else threads.one_blas_thread()

    def _take_factor(self, training: TrainingSet, n: int, C: float) -> None:
        """Leave it to the training set whether machines of up to n points work from a factor of a linear kernel.

        Not where pair steps are bounded or go on from others, and where the precision of values was chosen.
        """
        free = self.solver == "auto" and self.precision == "auto" and self.max_iter < 0 and not self.warm_start
        if free and self.approximation is None and self.basis is None:
            training.take_factor(n, C)

    def _solve(
        self, problem: Problem, resources: Resources, monitor: Monitor | None, start: WarmStart | None = None
    ) -> Solution:
        """One binary machine."""
        return solve(
            problem,
            solver=self.solver,
            tol=self.tol,
            gap_tol=self.gap_tol,
            max_iter=self.max_iter,
            resources=resources,
            start=start,
            monitor=monitor,
        )

    def _keep_one(self, training: TrainingSet, X: Any, problem: Problem, solution: Solution) -> None:
        """Store the only machine of an estimator."""
        c = solution.coefficients
        support = np.flatnonzero(c)
        self._keep(training, X, support, c[None, support], np.array([float(solution.bias)]), np.array([len(support)]))
        if self.basis is not None:
            self._basis_coefficients = np.asarray(solution.multipliers["basis"])[:, None]
        self._finish(training, [BinaryMachine(problem, solution, problem.box)])

    def _finish(self, training: TrainingSet, machines: Sequence[BinaryMachine]) -> None:
        """Keep the certificate of the fit, and what a warm start needs of it."""
        problems, solutions, _ = zip(*machines)
        found = self._certify(
            solutions,
            training.doubt(getattr(self, "bias", "free")),
            "few enough points to be trained on in one compiled call",
            vars(training).get("whole"),
            training.resources,
        )
        self.fit_status_ = int(self.stopped_ not in MET)
        self._previous = None
        if self.warm_start:
            self._previous = [WarmStart.of(p, s) for p, s in zip(problems, found) if p is not None]

    def _starts(self, count: int) -> list[WarmStart | None]:
        """What the last fit left for `count` machines."""
        previous = getattr(self, "_previous", None) if self.warm_start else None
        return list(previous) if previous is not None and len(previous) == count else [None] * count

    @property
    def basis_coef_(self) -> Matrix:
        """Coefficients of the basis functions: (q,), or (q, machines) for several machines."""
        found = self._basis_coefficients
        return found[:, 0] if found.shape[1] == 1 else found

    def _public(self, dual: Matrix, intercept: Vector) -> tuple[Any, Vector]:
        if sp.issparse(self.support_vectors_):
            kind = sp.csr_array if isinstance(self.support_vectors_, sp.sparray) else sp.csr_matrix
            return kind(dual), intercept
        return dual, intercept
