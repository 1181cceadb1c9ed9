"""The expansion that a machine keeps, and its values at new points:

    f(x) = sum over support vectors v of c_v k(x, v) + b (+ g(x)'beta, functions outside the norm)

with coefficients c_v, b and beta for each output.  Every kernel value is computed once, in a tile that stays in cache,
multiplied with the coefficients of all machines that use its support vector, and forgotten
(`mercer.gram.KernelColumns`).  What is held besides the points, the support vectors and the results is bounded by the
machine's budget, whatever their numbers.

Kernels of distance, with values up to 1, run in float32 for large inputs as long as that cannot be seen: a value has
an error of about 5e-7, so that a sum with coefficients c is off by about 5e-7 |c|, which is held below `VISIBLE`.
All else runs in float64.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mercer.errors import InvalidInput
from mercer.gram import KernelColumns, Plan, size
from mercer.kernels import Kernel
from mercer.lowrank.approximations import Approximation
from mercer.lowrank.feature_map import FeatureMap
from mercer.machine.arguments import HasKernel, Kind, evaluate, is_linear, prediction_data, take
from mercer.machine.outcome import FitPlan
from mercer.resources import Resources
from mercer.solvers.solution import Record, Solution

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Index = NDArray[np.intp]

SINGLE_ERROR = 5e-7
VISIBLE = 1.25e-4
SMALL = 1 << 20  # so few kernel values cost less than a millisecond in either precision
FUNCTION_VALUES = 1 << 21  # values a plain function is asked for at once


class Terms(NamedTuple):
    """Terms of an expansion: coefficients `dual` (rows, s) on `vectors` (s, d), so many of each class.

    `place` (s,) says which of the support vectors that are shown they are.  Where rows of the data repeat, one
    term stands for all copies of its vector, and those that are shown are its shares.
    """

    place: Index
    vectors: Any
    dual: Matrix
    counts: NDArray[np.integer[Any]]

    @classmethod
    def at(cls, place: Index, shown: Any, dual: Matrix, counts: NDArray[np.integer[Any]]) -> "Terms":
        """Terms on some of the support vectors that are shown; these are none where the matrix was given."""
        return cls(place, take(shown, place) if size(shown) else shown, dual, counts)


class Expansion(HasKernel):
    """A machine as it is after its fit: what predictions are made of."""

    memory: int | str | None
    precision: str
    n_jobs: int | None
    basis: Any = None
    """Function of points (n, d) to columns (n, q) outside the norm, for machines that take one."""

    kernel_: Kernel
    support_: Index
    support_vectors_: Any
    dual_coef_: Any
    intercept_: Any
    approximation_: Approximation | None
    approximation_reason_: str
    feature_map_: FeatureMap | None
    shape_fit_: tuple[int, ...]
    objective_: float
    dual_objective_: float
    gap_: float
    stopped_: str
    solver_: str
    n_iter_: Any
    solution_: Solution | list[Solution]
    history_: Sequence[Record] | list[Sequence[Record]]
    plan_: FitPlan

    _kind: Kind
    _gamma: float
    _dual_coef_: Matrix
    _intercept_: Vector
    _basis_coefficients: Matrix
    _n_support: NDArray[np.int32]
    _points: Any
    _trained: Terms | None = None
    """What predictions are computed from where that is not what is shown."""

    def _prediction_resources(self) -> Resources:
        """What a prediction may use."""
        return Resources(self.memory, self.precision, threads=self.n_jobs)

    def _operands(self) -> tuple[list[slice], list[Matrix]]:
        """Blocks of support vectors, and the coefficients (size of the block, outputs) of each."""
        dual = self._dual_coef_ if self._trained is None else self._trained.dual
        return [slice(0, dual.shape[1])], [dual.T]

    @property
    def _vectors(self) -> Any:
        """The support vectors that the coefficients of `_operands` belong to."""
        return self.support_vectors_ if self._trained is None else self._trained.vectors

    def _combine(self, products: list[Matrix], intercept: Vector) -> Matrix:
        """Decision values (n, outputs) from the products of all blocks."""
        return np.asarray(products[0] + intercept)

    def _checked(self, X: Any) -> Any:
        """New points in the form predictions work on."""
        if not hasattr(self, "shape_fit_"):
            check_is_fitted(self)
        return prediction_data(self, self._kind, X, self.shape_fit_[0])

    def _values(self, X: Any) -> Matrix:
        """Decision values (n, outputs) at new points."""
        return self._values_at(self._checked(X))

    def _values_at(self, X: Any) -> Matrix:
        """The same at points that have been checked."""
        blocks, coefficients = self._operands()
        vectors = self._vectors
        if self.feature_map_ is not None and vectors.shape[0] == 0:
            products = [self.feature_map_.multiply(X, self._dual_coef_.T)]
        elif self._kind == "precomputed":
            products = contract(X[:, self.support_], blocks, coefficients)
        elif self._kind == "function":
            support = self.support_ if self._trained is None else self.support_[self._trained.place]
            products = call(self.kernel, X, self._points, support, blocks, coefficients)
        else:
            products = expand(self.kernel_, X, vectors, blocks, coefficients, self._prediction_resources())
        values = self._combine(products, self._intercept_)
        if self.basis is not None:
            values += self._basis_columns(X, len(values)) @ self._basis_coefficients
        return values

    def _basis_columns(self, X: Any, n: int) -> Matrix:
        """Values (n, q) of the functions outside the norm."""
        if self.basis is None:
            return np.empty((n, 0))
        values = self.basis(X)
        values = np.asarray(values.toarray() if sp.issparse(values) else values, dtype=np.float64)
        values = values[:, None] if values.ndim == 1 else values
        if values.ndim != 2 or len(values) != n or not np.isfinite(values).all():
            raise InvalidInput(f"basis must return finite values of shape (n, q) for n = {n} points.")
        return values

    def prediction_plan(self, X: Any) -> Plan | None:
        """How kernel values between the points X and the support vectors are computed, in what memory and why.

        Print it.  None where a prediction computes none: a given matrix, a plain function, features of another kind.
        """
        points, vectors = self._checked(X), self._vectors
        if self._kind not in ("features", "objects") or vectors.shape[0] == 0:
            return None
        _, coefficients = self._operands()
        return columns_of(self.kernel_, points, vectors, coefficients, self._prediction_resources()).plan(points)

    @property
    def n_support_(self) -> NDArray[np.int32]:
        """Number of support vectors, of each class for classifiers."""
        try:
            return self._n_support
        except AttributeError:
            raise AttributeError("n_support_ is available after fit") from None

    @property
    def coef_(self) -> Any:
        """Weight vectors (outputs, d) of a linear kernel; read only."""
        if not is_linear(getattr(self, "kernel_", None)) or self.support_vectors_.shape[0] == 0 < self.dual_coef_.size:
            raise AttributeError("coef_ is only available when using a linear kernel")
        weights = self._weight_vectors()
        (weights.data if sp.issparse(weights) else weights).flags.writeable = False
        return weights

    def _weight_vectors(self) -> Any:
        return self.dual_coef_ @ self.support_vectors_


def working_precision(kernel: Kernel, coefficients: Sequence[Matrix], values: int, precision: str) -> Any:
    """float32 or float64 for an expansion that needs `values` kernel values."""
    profile = kernel.profile
    if profile is None or profile.name == "linear":
        return np.dtype(np.float64)
    if precision != "auto":
        return np.dtype(precision)
    if values <= SMALL or profile.base != "squared_distance":
        return np.dtype(np.float64)
    squares = [np.einsum("ij,ij->j", c, c) for c in coefficients]
    norm = float(np.sqrt(np.max(sum(squares)))) if squares else 0.0
    return np.dtype(np.float32 if SINGLE_ERROR * norm <= VISIBLE else np.float64)


def columns_of(
    kernel: Kernel, X: Any, vectors: Any, coefficients: Sequence[Matrix], resources: Resources
) -> KernelColumns:
    """The support vectors as columns for expansions at X; `columns_of(...).plan(X)` says how they are computed."""
    dtype = working_precision(kernel, coefficients, size(X) * size(vectors), resources.precision)
    return KernelColumns(kernel, vectors, dtype, memory=resources.memory)


def expand(
    kernel: Kernel,
    X: Any,
    vectors: Any,
    blocks: Sequence[slice],
    coefficients: Sequence[Matrix],
    resources: Resources,
) -> list[Matrix]:
    """K(X, vectors[block]) @ c for every block and its coefficients c (size of the block, k): a list of (n, k).

    `resources` bound what is allocated beside the results.
    """
    return columns_of(kernel, X, vectors, coefficients, resources).expand(X, blocks, coefficients)


def call(
    function: Any, X: Any, points: Any, support: Any, blocks: Sequence[slice], coefficients: Sequence[Matrix]
) -> list[Matrix]:
    """The same for a plain function of two sets, called on all training points, of which `support` carry weight."""
    n, total = (len(Z) if isinstance(Z, list) else int(np.shape(Z)[0]) for Z in (X, points))
    step = max(1, FUNCTION_VALUES // max(1, total))
    results = [np.empty((n, c.shape[1])) for c in coefficients]
    for start in range(0, n, step):
        part = slice(start, min(n, start + step))
        values = evaluate(function, X[part], points, part.stop - part.start, total)
        for product, result in zip(contract(values[:, support], blocks, coefficients), results):
            result[part] = product
    return results


def contract(values: Matrix, blocks: Sequence[slice], coefficients: Sequence[Matrix]) -> list[Matrix]:
    """The same for kernel values (n, n_SV) that are already there."""
    return [values[:, block] @ c for block, c in zip(blocks, coefficients)]
