"""Support vector classification: SVC with a price C for errors, NuSVC with a share nu of them.

    SVC:    min 1/2 ||f||^2 + C sum_i w_i (1 - y_i (f(x_i) + b))_+
    NuSVC:  min 1/2 ||f||^2 - nu (sum_i w_i) rho + sum_i w_i (rho - y_i (f(x_i) + b))_+ ,  then f / rho

(Rifkin 2002, section 2.2; Schoelkopf and Smola 2002, chapter 7).
"""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from mercer.errors import Infeasible, InvalidInput
from mercer.estimation.training import TrainingSet
from mercer.gram import GramOperator
from mercer.lowrank.approximations import Approximation
from mercer.problems import NuClassification, Problem, SupportVectorClassification
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution
from mercer.svm.base import HARD_MARGIN
from mercer.svm.classifier import Classifier
from mercer.svm.small_pairs import train_pairs

Vector = NDArray[np.float64]
Index = NDArray[np.intp]


class SVC(Classifier):
    """C-support vector classification.

    Parameters
    ----------
    C : price of an error relative to the norm; sample and class weights multiply it.  inf stands for 1e10.
    kernel : a Kernel object, one of scikit-learn's names, "precomputed", or a function of two sets of points.
    degree, gamma, coef0 : parameters of the named kernels; gamma = "scale" is 1 / (d Var X), rows counted by weight.
    shrinking : taken for scikit-learn's sake; the working sets leave settled variables alone in any case.
    probability : also fit Platt's sigmoids on 5 held-out folds, for `predict_proba`.
    tol : largest violation of the optimality conditions at which the solver stops, as in LIBSVM.
    cache_size : memory for kernel values in MB; the default of 200 leaves the amount to mercer.
    class_weight : {label: weight}, or "balanced" for weights inverse to the (weighted) size of the classes.
    verbose : print a line for every record of the solver; they are in `history_` and go to callbacks in any case.
    max_iter : most iterations of the solver; -1 is no limit.
    decision_function_shape, break_ties : as in scikit-learn, for one machine per pair.
    random_state : seed of the folds for `probability` and of landmarks that have no seed of their own.
    bias : "free", "none" or "penalised" (by 1/2 b^2).
    multiclass : "ovo", one machine for each pair of classes, or "ovr", one for each class.
    approximation : None for the exact machine, a low-rank kernel such as Nystrom(2000) from `mercer.lowrank`, or "auto"
        to let size and memory decide.
    solver : "decomposition", "interior_point" (small problems, or an approximation; high accuracy), "linear_dual" (an
        approximation of many points, or a linear kernel, dense or CSR points), or "auto".
    memory : bytes, or text such as "512 MiB", for kernel values; goes before `cache_size`.
    precision : of kernel values, "float32" or "float64"; "auto" decides by their number and the error they may cause.
    gap_tol : stop at this relative duality gap instead of at `tol`.
    max_time : seconds after which the best solution so far is kept.
    warm_start : begin the next fit from the solution of this one, for the same points and other parameters.
    n_jobs : number of threads; None is all.

    Attributes
    ----------
    support_, support_vectors_, dual_coef_, intercept_, n_support_, coef_, class_weight_, classes_, fit_status_,
    n_iter_, shape_fit_, n_features_in_, feature_names_in_
        As in scikit-learn.
    objective_, dual_objective_, gap_ : primal and dual value and their difference, summed over the machines.
    stopped_ : "converged", or what ended the training before.
    approximation_, approximation_reason_, feature_map_ : the approximation used, None for the exact machine, why, and
        its features; with one, `dual_coef_` has a row for each machine on the landmarks `support_vectors_` (rows
        `support_` of X where they are points of it), or on the features where there are no landmarks.
    solution_ : the Solution, or the list of them for several machines; `history_` likewise.

    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Classifier._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "bias": [StrOptions({"free", "none", "penalised"})],
        "approximation": [Approximation, StrOptions({"auto"}), None],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: bool = False,
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Any = None,
        verbose: bool | int = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        bias: str = "free",
        multiclass: str = "ovo",
        approximation: Any = None,
        solver: str = "auto",
        memory: int | str | None = None,
        precision: str = "auto",
        gap_tol: float | None = None,
        max_time: float | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.bias = bias
        self.multiclass = multiclass
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
        return SupportVectorClassification(gram, y, min(self.C, HARD_MARGIN), weights, bias)

    def _train_from_points(
        self, training: TrainingSet, codes: Index, weights: Vector | None, index: Index | None, monitor: Monitor
    ) -> dict[int, tuple[Problem | None, Solution, Vector]]:
        if self.bias != "free" or self.warm_start or self.gap_tol is not None:
            return {}
        if self.solver in ("interior_point", "linear_dual") or training.reduction is not None:
            return {}
        if monitor.attended or not (self._paired or len(self.classes_) == 2):
            return {}
        box = np.full(len(codes), float(min(self.C, HARD_MARGIN)))
        if weights is not None:
            box *= weights
        return train_pairs(training, codes, len(self.classes_), box, index, self.tol, self.max_iter, monitor)


class NuSVC(Classifier):
    """nu-support vector classification: nu bounds the share of margin errors from above, of support vectors from below.

    The parameters are those of `SVC` with `nu` in (0, 1] for `C`, and without `bias`.  Each pair of classes admits nu
    up to twice the (weighted) share of its smaller class.  Class weights count, as sample weights do; where they make
    nu infeasible, the largest feasible one is taken.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Classifier._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    def __init__(
        self,
        *,
        nu: float = 0.5,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: bool = False,
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Any = None,
        verbose: bool | int = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        multiclass: str = "ovo",
        solver: str = "auto",
        memory: int | str | None = None,
        precision: str = "auto",
        gap_tol: float | None = None,
        max_time: float | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.multiclass = multiclass
        self.solver = solver
        self.memory = memory
        self.precision = precision
        self.gap_tol = gap_tol
        self.max_time = max_time
        self.warm_start = warm_start
        self.n_jobs = n_jobs

    def _problem(self, gram: GramOperator, y: Vector, weights: Vector | None) -> Problem:
        nu = self.nu
        if self.class_weight is not None and weights is not None:
            smaller = min(float(weights[y > 0].sum()), float(weights[y < 0].sum()))
            nu = min(nu, 2.0 * smaller / float(weights.sum()))
        try:
            return NuClassification(gram, y, nu, weights)
        except Infeasible as error:
            raise Infeasible(f"specified nu is infeasible: {error}") from None

    def _scale(self, solution: Solution) -> float:
        rho = float(solution.multipliers["rho"])
        return rho if rho > 0.0 else 1.0

    def _one_class_left(self) -> InvalidInput:
        return Infeasible(
            "specified nu is infeasible: all samples with positive weights belong to the same class; give points of "
            "at least two classes a positive weight"
        )
