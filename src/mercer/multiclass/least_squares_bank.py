"""Codes of least-squares machines from few factorisations (Rifkin 2002, section 4.4).

The solution of least squares is linear in its targets.  Let g_j be the output of one-versus-all for class j, with
targets +-1, and h = sum_j g_j / (2 - k) the fit of the constant one.  For a column a of a code without zeros, with
column sum s_a, the machine of that column is

    f_a = sum_j M_ja (g_j + h)/2 = sum_j g_j T_ja,        T = M/2 + 1 s'/(2 (2 - k)),

so that every such code costs one factorisation, exact leave-one-out included, and is decoded without training anything.
A column with zeros is a system of its own on the points of its classes.  Columns with the same classes share one; all
share one kernel matrix, and one product with it predicts them all.  Few or small systems are factorised one by one; a
sparse code, whose many systems hold half of the points each, is solved by iterations for all columns at once
(`mercer.multiclass.masked_systems`).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mercer import threads, unlocked
from mercer.errors import BudgetTooSmall
from mercer.estimation import prediction, validation
from mercer.estimation.similarity import gamma_of, is_linear, kind_of
from mercer.gram import Gram
from mercer.gram.memory import budget
from mercer.gram.stored import gather
from mercer.kernels import Kernel, Precomputed, as_kernel
from mercer.least_squares import LSSVC, choosing
from mercer.least_squares.machine import BIASES
from mercer.multiclass.banks import Bank
from mercer.multiclass.codes import Code
from mercer.multiclass.masked_systems import LEAST_TOL, Layout, Stalled, class_sets, solve, worthwhile
from mercer.selection.bordered import Bordered, bordered, cholesky, eliminate
from mercer.selection.leave_one_out import inverse_diagonal, summarise

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

    def __init__(self, base: LSSVC, code: Code, X: Any, labels: Index, weights: Array | None) -> None:
        self.machine: LSSVC = clone(base).fit(X, labels, sample_weight=weights)
        self.combination = combination(code)

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
    (F,) are the relative duality gaps of columns solved by iterations, None where all were factorised.
    """

    def __init__(self, base: LSSVC, code: Code, X: Any, labels: Index, weights: Array | None) -> None:
        self.C, self.kernel = _parameters(base, X, labels, weights)
        self._X, self._precision = X, "float32" if base.precision == "float32" else "float64"
        self._bias = base.bias if isinstance(base.bias, str) else BIASES[bool(base.bias)]
        self._order = np.argsort(labels, kind="stable").astype(np.intp)
        self._labels, self._code = labels[self._order], code
        self._weights = None if weights is None else weights[self._order]
        self._memory = base.memory
        self.gaps: Array | None = None
        with threads.limit(base.n_jobs), threads.one_blas_thread():
            self._matrix: Any = self._ordered_matrix()
            layout = Layout(self._labels, code)
            solved = self._together(layout, max(base.tol, LEAST_TOL)) if base.solver == "auto" else None
            c, self.intercepts = solved or self._one_by_one(layout)
        self.coefficients = np.empty_like(c)
        self.coefficients[self._order] = c
        self._matrix = None  # not worth keeping: leave-one-out, asked for at most once, computes it again

    def __getstate__(self) -> dict[str, Any]:
        """A given matrix does not travel with the machines."""
        return {**vars(self), "_X": None} if isinstance(self.kernel, Precomputed) else vars(self)

    def _together(self, layout: Layout, tol: float) -> tuple[Array, Array] | None:
        """Coefficients (n, F) and biases of all columns by iterations; None where factorising is the better road."""
        roots = None if self._weights is None else np.sqrt(self._weights)
        if not worthwhile(layout) or (roots is not None and not roots.all()):
            return None
        targets = self._code[self._labels].astype(np.float64)
        try:
            found = solve(self._matrix, layout, targets, self.C, roots=roots, bias=self._bias, tol=tol)
        except Stalled:
            return None
        self.gaps = found.gaps
        return found.coefficients, found.biases

    def _one_by_one(self, layout: Layout) -> tuple[Array, Array]:
        """Coefficients (n, F) and biases of all columns, systems side by side, the large ones first."""
        c, intercepts = np.zeros(self._code[self._labels].shape), np.zeros(self._code.shape[1])
        sizes = np.diff(layout.borders)
        sets = sorted(layout.sets, key=lambda item: -int(sizes[list(item[0])].sum()))
        for where, columns, own, bias in threads.run(self._solve, sets):
            c[where[:, None], columns] = own
            intercepts[columns] = bias
        return c, intercepts

    def _ordered_matrix(self) -> NDArray[Any]:
        """The kernel matrix (n, n) in the order of the classes."""
        if isinstance(self.kernel, Precomputed):
            return np.asarray(self._X)[np.ix_(self._order, self._order)]
        points = validation.take(validation.working_form(self._X), self._order)
        held: Any = Gram(self.kernel, points, storage="dense", memory=self._memory, precision=self._precision)
        return np.asarray(held.matrix)

    def _system(self, classes: tuple[int, ...], columns: list[int]) -> tuple[Index, Bordered]:
        """Points of some classes, and the least-squares problem of the columns that use exactly those."""
        where = np.flatnonzero(np.isin(self._labels, classes))
        K = np.empty((len(where), len(where)))
        gather(self._matrix, where, where, K)
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
        a, b, _ = eliminate(solved, system.columns, system.border.shape[1])
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
        points = validation.working_form(self._X)
        values = prediction.expand(self.kernel, X, points, [slice(0, len(c))], [c], self._precision)[0]
        return np.asarray(values + self.intercepts)

    def leave_one_out(self) -> Array | None:
        """Exact leave-one-out outputs (n, F)."""
        if self._X is None:
            return None
        self._matrix = self._ordered_matrix()
        # A machine that never used a point says about it what it says: only the others change.
        values = np.asarray(self._matrix @ self.coefficients[self._order] + self.intercepts)

        def own(classes: tuple[int, ...], columns: list[int]) -> tuple[Index, list[int], Array]:
            where, system = self._system(classes, columns)
            factor = cholesky(system.matrix, 1.0 / self.C)
            solved = _solutions(factor, system)
            found = summarise(system, system.columns, 1.0 / self.C, solved, inverse_diagonal(factor))
            return where, columns, found.predictions

        with threads.one_blas_thread():
            for where, columns, predictions in threads.run(own, list(class_sets(self._code).items())):
                values[where[:, None], columns] = predictions
        self._matrix = None
        unordered = np.empty_like(values)
        unordered[self._order] = values
        return unordered


def _solutions(factor: Array, system: Bordered) -> Array:
    """(A + 1/C)^-1 [B, Z], other threads running meanwhile."""
    rows = np.ascontiguousarray(system.columns.T)
    unlocked.solve(factor, rows)
    return rows.T


def _parameters(base: LSSVC, X: Any, labels: Index, weights: Array | None) -> tuple[float, Kernel]:
    """C and the kernel, the same for all columns; chosen on all points where the base chooses them."""
    kernel = base.kernel
    if kind_of(kernel, X) == "precomputed":
        kernel = Precomputed()
    elif not isinstance(kernel, Kernel):
        points = validation.working_form(X)
        kernel = as_kernel(kernel, gamma=gamma_of(base.gamma, points, weights), degree=base.degree, coef0=base.coef0)
    else:
        kernel = choosing.with_median(kernel, X)
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
        return LinearBank(base, code, X, labels, weights) if present else None
    fits = _takes_subsystems(base, X, len(labels), code.shape[1])
    return SubsystemBank(base, code, X, labels, weights) if fits else None


def _takes_subsystems(base: LSSVC, X: Any, n: int, F: int) -> bool:
    """Whether systems are parts of one dense kernel matrix: it and all coefficients fit, and nothing asks for more."""
    kernel, C = base.kernel, base.C
    if kind_of(kernel, X) not in ("features", "precomputed") or 16 * n * (n + F) > budget(base.memory):
        return False
    if base.basis is not None or base.approximation is not None or base.solver not in ("auto", "cholesky"):
        return False
    if isinstance(kernel, Kernel) and (kernel.conditional_order != 0 or is_linear(kernel)):
        return False
    interpolates = not isinstance(C, str) and np.ndim(C) == 0 and np.isinf(C)
    return not interpolates and not (isinstance(kernel, str) and kernel == "linear")
