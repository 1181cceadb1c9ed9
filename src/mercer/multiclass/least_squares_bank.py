"""Codes of least-squares machines from few factorisations (Rifkin 2002, section 4.4).

The solution of least squares is linear in its targets.  Let g_j be the output of one-versus-all for class j, with
targets +-1, and h = sum_j g_j / (2 - k) the fit of the constant one.  For a column a of a code without zeros, with
column sum s_a, the machine of that column is

    f_a = sum_j M_ja (g_j + h)/2 = sum_j g_j T_ja,        T = M/2 + 1 s'/(2 (2 - k)),

so that every such code costs one factorisation, exact leave-one-out included, and is decoded without training anything.
A column with zeros is a system of its own on the points of its classes.  Columns with the same classes share one; all
share one kernel matrix, and one product with it predicts them all.  Few or small systems are factorised one by one; a
sparse code, whose many systems hold half of the points each, is solved by iterations for all columns at once
(`mercer.solvers.linear.masked_systems`).
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mercer import dense, threads
from mercer.errors import BudgetTooSmall
from mercer.gram import Gram, GramOperator
from mercer.kernels import Kernel, Precomputed
from mercer.least_squares import LSSVC
from mercer.least_squares.solving import certified
from mercer.machine import arguments, prediction
from mercer.machine.approximation import EXACT
from mercer.machine.arguments import is_linear, kind_of, symmetrised, working_form
from mercer.machine.outcome import FitPlan
from mercer.machine.training_set import TrainingSet
from mercer.multiclass.banks import Bank
from mercer.multiclass.codes import Code
from mercer.problems.least_squares import LeastSquares
from mercer.selection.leave_one_out import summarise
from mercer.solvers.linear.bordered import Bordered, bordered, cholesky, eliminate
from mercer.solvers.linear.masked_systems import LEAST_TOL, Layout, Stalled, class_sets, solve, worthwhile
from mercer.solvers.solution import Solution

Array = NDArray[np.float64]
Index = NDArray[np.intp]


def combination(code: Code) -> Array:
    """T (k, F): outputs of a zero-free code from those of one-versus-all; (1, F) for two classes."""
    M = code.astype(np.float64)
    k = len(M)
    if k == 2:
        return M[1:]
    return np.asarray(0.5 * (M + M.sum(axis=0) / (2.0 - k)))


class LinearBank(Bank):
    """Any zero-free code through one LSSVC of one-versus-all."""

    def __init__(self, machine: LSSVC, code: Code) -> None:
        self.machine = machine
        self.combination = combination(code)

    def parts(self) -> list[Any]:
        """The machine of one-versus-all."""
        return [self.machine]

    def outputs(self, X: Any) -> Array:
        """Outputs (m, F), combined from those of one-versus-all."""
        return self._combined(self.machine.decision_function(X))

    def leave_one_out(self) -> Array | None:
        """Exact leave-one-out outputs (n, F): they are linear in the targets too."""
        try:
            return self._combined(self.machine.loo_predictions_)
        except BudgetTooSmall:
            return None

    def _combined(self, values: Array) -> Array:
        return np.asarray(values.reshape(len(values), -1) @ self.combination)


class SubsystemBank(Bank):
    """A code with zeros: one system for each set of classes that occurs among the columns, on one kernel matrix.

    The matrix is held in the order of the classes, so that the part of some classes is a few stretches of it.  `gaps`
    (F,) are the relative duality gaps of columns solved by iterations, None where all were factorised.  The bank is its
    own part: its certificate, which takes the kernel matrix once more, is computed when it is first asked for.
    """

    stopped_ = "converged"

    coefficients: Array
    intercepts: Array
    gaps: Array | None
    solver_: str
    plan_: FitPlan

    def __init__(
        self, base: LSSVC, code: Code, X: Any, labels: Index, weights: Array | None, C: float, kernel: Kernel
    ) -> None:
        self.C, self.kernel = C, kernel
        self._X, self._resources = X, base._resources()
        self._bias = base._bias
        self._order = np.argsort(labels, kind="stable").astype(np.intp)
        self._labels, self._code = labels[self._order], code
        self._weights = None if weights is None else weights[self._order]
        self._gram: Any = None

    @classmethod
    def train(cls, base: LSSVC, code: Code, X: Any, labels: Index, weights: Array | None) -> "SubsystemBank":
        """Train on points X whose classes 0..k-1 are `labels` (n,)."""
        bank = cls(base, code, X, labels, weights, *_parameters(base, X, labels, weights))
        bank.gaps = None
        with threads.limit(base.n_jobs), threads.one_blas_thread():
            bank._gram = bank._ordered_gram()
            layout = Layout(bank._labels, code)
            solved = bank._together(layout, max(base.tol, LEAST_TOL)) if base.solver == "auto" else None
            c, bank.intercepts = solved or bank._one_by_one(layout)
        bank.solver_ = (
            "cholesky: a system for each set of classes"
            if solved is None
            else "conjugate gradients: many large systems on parts of one matrix"
        )
        bank.plan_ = FitPlan.of(bank.solver_, len(layout.sets), EXACT, bank._resources, bank._gram)
        bank.coefficients = bank._unordered(c)
        bank._gram = None  # not worth keeping: leave-one-out, asked for at most once, computes it again
        return bank

    @property
    def labels(self) -> Index:
        """Classes 0..k-1 (n,) of the points, in their own order."""
        return self._unordered(self._labels)

    @property
    def weights(self) -> Array | None:
        """Weights (n,) of the points in their own order, None where all are one."""
        return None if self._weights is None else self._unordered(self._weights)

    def _unordered(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of points in the order of the classes, back in the order of the points."""
        own = np.empty_like(values)
        own[self._order] = values
        return own

    def parts(self) -> list[Any]:
        """The bank itself."""
        return [self]

    @property
    def kernel_(self) -> Kernel:
        """The kernel of all columns."""
        return self.kernel

    @cached_property
    def solution_(self) -> list[Solution]:
        """The solution of each system, with its certificate from one product with the kernel matrix."""
        if self._X is None:
            raise AttributeError("the kernel matrix did not travel with the machines: read the certificate before")
        whole, found = self._ordered_gram(), []
        for classes, columns in class_sets(self._code).items():
            where = np.flatnonzero(np.isin(self._labels, classes))
            weights = None if self._weights is None else self._weights[where]
            targets = self._code[self._labels[where]][:, columns].astype(np.float64)
            problem = LeastSquares(whole.subset(where), targets, self.C, weights, self._bias)
            c = self.coefficients[self._order][where[:, None], columns]
            found.append(certified(problem, c, self.solver_.partition(":")[0], None))
        return found

    @property
    def objective_(self) -> float:
        """Primal value, summed over the columns."""
        return float(sum(solution.primal for solution in self.solution_))

    @property
    def dual_objective_(self) -> float:
        """Dual value, summed over the columns."""
        return float(sum(solution.dual for solution in self.solution_))

    @property
    def gap_(self) -> float:
        """Difference of the two."""
        return float(sum(solution.gap for solution in self.solution_))

    @property
    def n_iter_(self) -> NDArray[np.int32]:
        """Iterations of each system."""
        return np.array([solution.iterations for solution in self.solution_], dtype=np.int32)

    def __getstate__(self) -> dict[str, Any]:
        """A given matrix does not travel with the machines."""
        return {**vars(self), "_X": None} if isinstance(self.kernel, Precomputed) else vars(self)

    def _together(self, layout: Layout, tol: float) -> tuple[Array, Array] | None:
        """Coefficients (n, F) and biases of all columns by iterations; None where factorising is the better method."""
        roots = None if self._weights is None else np.sqrt(self._weights)
        if not worthwhile(layout) or (roots is not None and not roots.all()):
            return None
        targets = self._code[self._labels].astype(np.float64)
        try:
            found = solve(self._gram.held_values(), layout, targets, self.C, roots=roots, bias=self._bias, tol=tol)
        except Stalled:
            return None
        self.gaps = found.gaps
        return found.coefficients, found.biases

    def _one_by_one(self, layout: Layout) -> tuple[Array, Array]:
        """Coefficients (n, F) and biases of all columns, systems side by side, the large ones first."""
        c, intercepts = np.zeros(self._code[self._labels].shape), np.zeros(self._code.shape[1])
        sizes = np.diff(layout.borders)
        sets = sorted(layout.sets, key=lambda item: -int(sizes[list(item[0])].sum()))
        for where, columns, own, bias in threads.run(self._solve, sets, self._systems_together(sets)):
            c[where[:, None], columns] = own
            intercepts[columns] = bias
        return c, intercepts

    def _systems_together(self, sets: list[tuple[tuple[int, ...], list[int]]]) -> int:
        """How many systems the budget holds beside the kernel matrix of all points."""
        sizes = np.bincount(self._labels, minlength=len(self._code))
        largest = max(int(sizes[list(classes)].sum()) for classes, _ in sets)
        left = self._resources.budget - 8 * len(self._labels) ** 2
        return int(max(1, left // (8 * largest**2)))

    def _ordered_gram(self) -> GramOperator:
        """The kernel matrix (n, n), held whole in the order of the classes."""
        if isinstance(self.kernel, Precomputed):
            return Gram(self.kernel, symmetrised(np.asarray(self._X))[np.ix_(self._order, self._order)])
        points = arguments.take(working_form(self._X), self._order)
        memory, precision = self._resources.memory, self._resources.precision
        return Gram(self.kernel, points, storage="dense", memory=memory, precision=precision)

    def _system(self, classes: tuple[int, ...], columns: list[int]) -> tuple[Index, Bordered]:
        """Points of some classes, and the least-squares problem of the columns that use exactly those."""
        where = np.flatnonzero(np.isin(self._labels, classes))
        K = self._gram.block(where, where).astype(np.float64, copy=False)
        system = bordered(
            K,
            self._code[self._labels[where]][:, columns],
            weights=None if self._weights is None else self._weights[where],
            border=np.ones((len(where), 1)) if self._bias == "free" else None,
            constant=1.0 if self._bias == "penalised" else 0.0,
            overwrite=True,
        )
        return where, system

    def _solve(self, classes: tuple[int, ...], columns: list[int]) -> tuple[Index, list[int], Array, Array]:
        """Points, columns, coefficients and biases of one system."""
        where, system = self._system(classes, columns)
        solved = _solutions(cholesky(system.matrix, 1.0 / self.C), system)
        a, b = eliminate(solved, system.border)
        own = np.zeros((len(where), len(columns)))
        own[system.used] = system.scale[:, None] * a
        if self._bias == "penalised":
            return where, columns, own, own.sum(axis=0)
        return where, columns, own, b[0] if self._bias == "free" else np.zeros(len(columns))

    def outputs(self, X: Any) -> Array:
        """Outputs (m, F) from one product with the kernel values."""
        c = self.coefficients
        if isinstance(self.kernel, Precomputed):
            return np.asarray(np.asarray(X) @ c + self.intercepts)
        points = working_form(self._X)
        values = prediction.expand(self.kernel, X, points, [slice(0, len(c))], [c], self._resources)[0]
        return np.asarray(values + self.intercepts)

    def leave_one_out(self) -> Array | None:
        """Exact leave-one-out outputs (n, F)."""
        if self._X is None:
            return None
        self._gram = self._ordered_gram()
        # A machine that never used a point says about it what it says: only the others change.
        values = np.asarray(self._gram.held_values() @ self.coefficients[self._order] + self.intercepts)

        def own(classes: tuple[int, ...], columns: list[int]) -> tuple[Index, list[int], Array]:
            where, system = self._system(classes, columns)
            factor = cholesky(system.matrix, 1.0 / self.C)
            solved = _solutions(factor, system)
            found = summarise(system, 1.0 / self.C, solved, dense.inverse_diagonal(factor))
            return where, columns, found.predictions

        with threads.one_blas_thread():
            sets = list(class_sets(self._code).items())
            for where, columns, predictions in threads.run(own, sets, self._systems_together(sets)):
                values[where[:, None], columns] = predictions
        self._gram = None
        return self._unordered(values)


def _solutions(factor: Array, system: Bordered) -> Array:
    """(A + 1/C)^-1 [B, Z], other threads running meanwhile."""
    rows = np.ascontiguousarray(system.columns.T)
    dense.solve_rows(factor, rows)
    return rows.T


def _parameters(base: LSSVC, X: Any, labels: Index, weights: Array | None) -> tuple[float, Kernel]:
    """C and the kernel, the same for all columns; chosen on all points where the base chooses them."""
    kernel = clone(base)._resolved(kind_of(base.kernel, X), working_form(X), weights, searched=True)
    if isinstance(base.C, str) or np.ndim(base.C) > 0 or kernel.placeholders:
        chosen = clone(base).fit(X, labels, sample_weight=weights)
        return float(chosen.C_), chosen.kernel_
    return float(base.C), kernel


def bank(base: LSSVC, code: Code, X: Any, labels: Index, weights: Array | None) -> Bank | None:
    """The bank that suits a base machine and a code; None where machines must be trained one by one."""
    if base.class_weight is not None:  # balanced within each column: the columns then have different systems
        return None
    if code.all():
        present = len(np.unique(labels)) == len(code)
        return LinearBank(clone(base).fit(X, labels, sample_weight=weights), code) if present else None
    fits = _takes_subsystems(base, X, len(labels), code.shape[1])
    return SubsystemBank.train(base, code, X, labels, weights) if fits else None


def _takes_subsystems(base: LSSVC, X: Any, n: int, F: int) -> bool:
    """Whether systems are parts of one dense kernel matrix: it and all coefficients fit, and nothing asks for more."""
    kernel, C = base.kernel, base.C
    if kind_of(kernel, X) not in ("features", "precomputed") or 16 * n * (n + F) > base._resources().budget:
        return False
    if base.basis is not None or base.approximation is not None or base.solver not in ("auto", "cholesky"):
        return False
    if isinstance(kernel, Kernel) and (kernel.conditional_order != 0 or is_linear(kernel)):
        return False
    if kind_of(kernel, X) == "precomputed" and _doubtful(base, np.asarray(X)):
        return False
    interpolates = not isinstance(C, str) and np.ndim(C) == 0 and np.isinf(C)
    return not interpolates and not (isinstance(kernel, str) and kernel in ("linear", "sigmoid", "additive_chi2"))


def _doubtful(base: LSSVC, K: Any) -> bool:
    """Whether a given matrix may be indefinite: single machines then say that they have no certificate."""
    return TrainingSet("precomputed", K, None, None, base._resources()).doubt(base._bias) is not None
