"""Support vector regression: a loss of the residual (SVR), or a tube that a given share of points may leave (NuSVR).

    SVR:    min 1/2 ||f||^2 + C sum_i w_i l(y_i - f(x_i) - b)

        epsilon_insensitive            l(r) = (|r| - epsilon)_+
        squared_epsilon_insensitive    its square
        huber                          r^2 / (2 threshold) up to the threshold, |r| - threshold / 2 beyond
        quantile                       q r_+ + (1 - q) (-r)_+         f(x) + b is the q-quantile of y at x
        expectile                      q r_+^2 + (1 - q) (-r)_+^2     the q-expectile, the mean for q = 1/2

    NuSVR:  the first, where epsilon costs C nu sum_i w_i epsilon and is found by the machine

(Schoelkopf and Smola 2002, chapter 9; Takeuchi et al. 2006 for quantiles; Newey and Powell 1987 for expectiles).
"""

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from mercer.errors import Infeasible, InvalidInput
from mercer.gram import GramOperator
from mercer.kernels import Linear
from mercer.losses import EpsilonInsensitive, Expectile, Huber, Loss, Quantile, SquaredEpsilonInsensitive
from mercer.machine import advice, arguments
from mercer.machine.arguments import kind_of, refuse_huge, sample_weights
from mercer.problems import NuRegression, Problem, RegularisedRisk
from mercer.svm.base import SupportVectorMachine

Vector = NDArray[np.float64]

LOSSES = {"epsilon_insensitive", "squared_epsilon_insensitive", "huber", "quantile", "expectile"}
# Coefficients have no bound at C = inf; one that grows beyond this says that no function stays within the tube.
NO_ERROR = 1e10


class Regressor(RegressorMixin, SupportVectorMachine):  # type: ignore[misc]  # scikit-learn is untyped
    """One machine on real targets."""

    C: float

    def _problem(self, gram: GramOperator, y: Vector, weights: Vector | None, basis: Vector | None) -> Problem:
        raise NotImplementedError

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Regressor":
        """Train on points X (n, d) and targets y (n,); `sample_weight` (n,) counts repetitions of the points.

        X may be dense or CSR, a list of objects for kernels on objects, or the kernel matrix (n, n) when the kernel is
        "precomputed".
        """
        kind = kind_of(self.kernel, X)
        X, y = arguments.training_data(self, kind, X, y, numeric=True)
        y = np.ascontiguousarray(y, dtype=np.float64)
        with self._watched(X, y) as monitor:
            training, weights = self._training_set(kind, X, sample_weights(sample_weight, X), y, y, largest=self.C)
            if training.kept is not None:
                y = y[training.kept]
            refuse_huge(self.C, weights)
            if self.from_factor and isinstance(self.kernel_, Linear):
                self._take_factor(training, training.n, self.C)
            problem = self._problem(training.gram(), y, weights, training.basis)
            solution = self._solve(problem, training.resources, monitor, self._starts(1)[0])
            if np.isinf(self.C) and np.abs(solution.coefficients).max() >= NO_ERROR:
                raise Infeasible(
                    "C=inf asks for errors of at most epsilon at every point, and this kernel has no such function: "
                    "give a finite C, a larger epsilon or a narrower kernel"
                )
            self._keep_one(training, X, problem, solution)
        if isinstance(problem.loss, EpsilonInsensitive) and np.isfinite(problem.loss.lipschitz):
            advice.on_width(training.kernel, np.abs(solution.coefficients), problem.box, problem.bias == "free")
        return self

    def predict(self, X: Any) -> Vector:
        """Predicted values (n,)."""
        return self._values(X)[:, 0]


@dataclass(kw_only=True, eq=False, repr=False)
class SVR(Regressor):
    """Support vector regression, by default epsilon-insensitive.

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol, shrinking, cache_size, verbose, max_iter
        As in scikit-learn; `kernel` may also be a Kernel object.
    C : cost of an error, relative to the norm; weights multiply it.
    loss : "epsilon_insensitive", "squared_epsilon_insensitive", "huber", "quantile" or "expectile".
    epsilon : half the width of the tube inside which errors cost nothing, for the first two losses.
    threshold : size of the residual at which the Huber loss turns from a square to a straight line of slope C.
    quantile : which quantile or expectile to estimate, in (0, 1).
    bias : "free", "none" or "penalised" (by 1/2 b^2).
    basis : function of X (n, d) that returns (n, q) columns outside the norm, as in `SVC`.
    random_state, approximation, solver, memory, precision, gap_tol, max_time, warm_start, n_jobs
        As in `SVC`.

    Attributes
    ----------
    support_, support_vectors_, dual_coef_, intercept_, n_support_, coef_, fit_status_, n_iter_, shape_fit_
        As in scikit-learn.
    kernel_, solver_, plan_, objective_, dual_objective_, gap_, stopped_, history_, solution_, approximation_,
    approximation_reason_, feature_map_, basis_coef_
        As in `SVC`.

    """

    C: float = 1.0
    loss: str = "epsilon_insensitive"
    epsilon: float = 0.1
    threshold: float = 1.0
    quantile: float = 0.5
    bias: str = "free"
    basis: Any = None

    from_factor: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SupportVectorMachine._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "loss": [StrOptions(LOSSES)],
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
        "threshold": [Interval(Real, 0.0, None, closed="neither")],
        "quantile": [Interval(Real, 0.0, 1.0, closed="neither")],
        "basis": [callable, None],
        "bias": [StrOptions({"free", "none", "penalised"})],
    }

    def _loss(self) -> Loss:
        """The loss by its name and parameter."""
        if self.loss == "epsilon_insensitive" or (self.loss == "squared_epsilon_insensitive" and np.isinf(self.C)):
            return EpsilonInsensitive(self.epsilon)  # where no error is allowed, its square is the same
        if np.isinf(self.C):
            raise InvalidInput(
                f"C=inf allows no error outside a tube, and loss={self.loss!r} has none: give a finite C"
            )
        if self.loss == "squared_epsilon_insensitive":
            return SquaredEpsilonInsensitive(self.epsilon)
        if self.loss == "huber":
            return Huber(self.threshold)
        return Quantile(self.quantile) if self.loss == "quantile" else Expectile(self.quantile)

    def _problem(self, gram: GramOperator, y: Vector, weights: Vector | None, basis: Vector | None) -> Problem:
        bias: Any = self.bias
        return RegularisedRisk(gram, y, self._loss(), NO_ERROR if np.isinf(self.C) else self.C, weights, bias, basis)


@dataclass(kw_only=True, eq=False, repr=False)
class NuSVR(Regressor):
    """Support vector regression that finds its own tube: at most a share nu of the (weighted) points lies outside.

    The width of the tube is in `solution_.multipliers["epsilon"]`.  The parameters are those of `SVR` with `nu` in
    (0, 1] for `epsilon`, and without `loss` with its parameters, `bias` and `basis`.
    """

    C: float = 1.0
    nu: float = 0.5

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SupportVectorMachine._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    def _problem(self, gram: GramOperator, y: Vector, weights: Vector | None, basis: Vector | None) -> Problem:
        return NuRegression(gram, y, self.C, self.nu, weights, basis)
