"""Support vector regression: a tube of given width (SVR), or one that a given share of points may leave (NuSVR).

    SVR:    min 1/2 ||f||^2 + C sum_i w_i (|y_i - f(x_i) - b| - epsilon)_+
    NuSVR:  the same, where epsilon costs C nu sum_i w_i epsilon and is found by the machine

(Schoelkopf and Smola 2002, chapter 9).
"""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from mercer.estimation import advice, validation
from mercer.estimation.similarity import kind_of
from mercer.estimation.weights import sample_weights
from mercer.gram import GramOperator
from mercer.lowrank.approximations import Approximation
from mercer.problems import NuRegression, Problem, SupportVectorRegression
from mercer.svm.base import HARD_MARGIN, SupportVectorMachine

Vector = NDArray[np.float64]


class Regressor(RegressorMixin, SupportVectorMachine):  # type: ignore[misc]
    """One machine on real targets."""

    C: float

    def _problem(self, gram: GramOperator, y: Vector, weights: Vector | None) -> Problem:
        raise NotImplementedError

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Regressor":
        """Train on points X (n, d) and targets y (n,); `sample_weight` (n,) counts repetitions of the points.

        X may be dense or CSR, a list of objects for kernels on objects, or the kernel matrix (n, n) when the kernel is
        "precomputed".
        """
        kind = kind_of(self.kernel, X)
        X, y = validation.training_data(self, kind, X, y, numeric=True)
        y = np.ascontiguousarray(y, dtype=np.float64)
        with self._watched(X, y) as monitor:
            training, weights = self._training_set(kind, X, sample_weights(sample_weight, X), y)
            if training.kept is not None:
                y = y[training.kept]
            problem = self._problem(training.gram(), y, weights)
            solution = self._solve(problem, monitor, self._starts(1)[0])
            self._keep_one(training, X, problem, solution)
        if isinstance(problem, SupportVectorRegression):
            advice.on_width(training.kernel, np.abs(solution.coefficients), problem.box, problem.bias == "free")
        return self

    def predict(self, X: Any) -> Vector:
        """Predicted values (n,)."""
        return self._values(X)[:, 0]


class SVR(Regressor):
    """Epsilon-insensitive support vector regression.

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol, shrinking, cache_size, verbose, max_iter
        As in scikit-learn; `kernel` may also be a Kernel object.
    C : price of an error, relative to the norm; weights multiply it.
    epsilon : half the width of the tube inside which errors cost nothing.
    bias : "free", "none" or "penalised" (by 1/2 b^2).
    approximation, solver, memory, precision, gap_tol, max_time, warm_start, n_jobs
        As in `SVC`.

    Attributes
    ----------
    support_, support_vectors_, dual_coef_, intercept_, n_support_, coef_, fit_status_, n_iter_, shape_fit_
        As in scikit-learn.
    objective_, dual_objective_, gap_, stopped_, history_, solution_
        As in `SVC`.

    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SupportVectorMachine._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
        "bias": [StrOptions({"free", "none", "penalised"})],
        "approximation": [Approximation, StrOptions({"auto"}), None],
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: bool | int = False,
        max_iter: int = -1,
        bias: str = "free",
        approximation: Any = None,
        solver: str = "auto",
        memory: int | str | None = None,
        precision: str = "auto",
        gap_tol: float | None = None,
        max_time: float | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.bias = bias
        self.approximation = approximation
        self.solver = solver
        self.memory = memory
        self.precision = precision
        self.gap_tol = gap_tol
        self.max_time = max_time
        self.warm_start = warm_start
        self.n_jobs = n_jobs

    def _problem(self, gram: GramOperator, y: Vector, weights: Vector | None) -> Problem:
        bias: Any = self.bias
        return SupportVectorRegression(gram, y, min(self.C, HARD_MARGIN), self.epsilon, weights, bias)


class NuSVR(Regressor):
    """Support vector regression that finds its own tube: at most a share nu of the (weighted) points lies outside.

    The width of the tube is in `solution_.multipliers["epsilon"]`.  The parameters are those of `SVR` with `nu` in
    (0, 1] for `epsilon`, and without `bias`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SupportVectorMachine._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float = 200,
        verbose: bool | int = False,
        max_iter: int = -1,
        solver: str = "auto",
        memory: int | str | None = None,
        precision: str = "auto",
        gap_tol: float | None = None,
        max_time: float | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.solver = solver
        self.memory = memory
        self.precision = precision
        self.gap_tol = gap_tol
        self.max_time = max_time
        self.warm_start = warm_start
        self.n_jobs = n_jobs

    def _problem(self, gram: GramOperator, y: Vector, weights: Vector | None) -> Problem:
        return NuRegression(gram, y, min(self.C, HARD_MARGIN), self.nu, weights)
