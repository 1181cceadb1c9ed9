"""Support vector classification: binary machines for k classes, how they are trained, and SVC.

    min 1/2 ||f||^2 + C sum_i w_i l(y_i (f(x_i) + b)),      l(z) = (1 - z)_+ , or its square

(Rifkin 2002, section 2.2).  k classes become the machines of `mercer.svm.decisions`, which says what is predicted from
them; small ones are trained from their points in one compiled call each (`mercer.svm.small_pairs`).
"""

import warnings
from dataclasses import dataclass
from numbers import Real
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets

from mercer import threads
from mercer.errors import Infeasible, InvalidInput, NoMargin
from mercer.gram import GramOperator
from mercer.kernels import Linear
from mercer.losses import Hinge, Loss, SquaredHinge
from mercer.machine import advice, arguments, pairwise, prediction, probability
from mercer.machine.arguments import classes_of, kind_of, refuse_huge, sample_weights, with_class_weights
from mercer.machine.training_set import TrainingSet
from mercer.problems import HardMargin, NuClassification, Problem, RegularisedRisk
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution
from mercer.svm.base import SupportVectorMachine
from mercer.svm.decisions import HELD_VALUES, Decisions
from mercer.svm.small_pairs import STORED_POINTS, train_pairs
from mercer.svm.solving import BinaryMachine, margin_of

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Index = NDArray[np.intp]
Counts = NDArray[np.int32]

LOSSES: dict[str, Loss] = {"hinge": Hinge(), "squared_hinge": SquaredHinge()}

FOLDS = 5
SETTLED = ("converged", "stalled")  # the solver went as far as it could
LONG_RUNS = 1e8  # beyond this C a machine may take so many steps that time limits and Ctrl-C must be looked at


@dataclass(frozen=True)
class BinaryTask:
    """A binary machine to train: its positive class, its points (None: all), and whether both sides have any."""

    positive: int
    members: Index | None
    contested: bool

    def signs(self, codes: Index) -> Vector:
        """+1 for points of the positive class, -1 for the others, (n,)."""
        return np.where((codes if self.members is None else codes[self.members]) == self.positive, 1.0, -1.0)

    def without_rival(self, codes: Index) -> float:
        """The constant answer of a machine that saw one class only, as may happen in a fold: +1, -1, or 0 for none."""
        signs = self.signs(codes)
        return float(signs[0]) if len(signs) else 0.0


@dataclass
class Trained:
    """Binary machines of one training run: expansion in LIBSVM's layout, intercepts, and where they come from."""

    support: Index
    counts: Counts
    dual: Matrix
    intercept: Vector
    machines: list[BinaryMachine]
    basis: Matrix
    """Coefficients (q, machines) of basis functions."""


@dataclass(kw_only=True, eq=False, repr=False)
class Classifier(Decisions):
    """Binary machines for k classes, and how they are trained."""

    class_weight: Any = None
    probability: bool = False
    decision_function_shape: str = "ovr"
    break_ties: bool = False
    multiclass: str = "ovo"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SupportVectorMachine._parameter_constraints,
        "probability": ["boolean"],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "break_ties": ["boolean"],
        "multiclass": [StrOptions({"ovo", "ovr"})],
    }

    def _problem(self, gram: GramOperator, y: Vector, weights: Vector | None, basis: Matrix | None = None) -> Problem:
        raise NotImplementedError

    def _scale(self, problem: Problem, solution: Solution) -> float:
        """What coefficients and bias are divided by so that the margin is one."""
        if not isinstance(problem, (NuClassification, HardMargin)):
            return 1.0
        rho, noise = margin_of(problem, solution)
        # A negative rho, which nu-SVC has for indefinite kernels only, is kept as it is.
        if solution.stopped in SETTLED and (rho <= noise if isinstance(problem, HardMargin) else abs(rho) <= noise):
            if isinstance(problem, HardMargin):
                raise self._no_margin()
            # f / rho would be noise over noise: f is kept as it is, whose sign is all there is.
            warnings.warn(str(self._no_margin()), NoMargin, stacklevel=4)
            return 1.0
        return rho if rho > 0.0 else 1.0

    def _no_margin(self) -> Infeasible:
        """What to say where the margin cannot be told from zero."""
        raise NotImplementedError

    def _one_class_left(self) -> InvalidInput:
        return InvalidInput("Invalid input - all samples with positive weights belong to the same class")

    # Training --------------------------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Classifier":
        """Train on points X (n, d) and labels y (n,); `sample_weight` (n,) counts repetitions of the points.

        X may be dense or CSR, a list of objects for kernels on objects, or the kernel matrix (n, n) when the kernel is
        "precomputed".
        """
        kind = kind_of(self.kernel, X)
        X, y = arguments.training_data(self, kind, X, y)
        if y.dtype.kind not in "biuUS":  # such labels need no second look
            check_classification_targets(y)
        weights = sample_weights(sample_weight, X)
        codes = self._encode(y, weights)
        with self._watched(X, y) as monitor:
            coded = None if self.approximation is None else self._coded(codes)
            C = float(getattr(self, "C", 1.0))
            training, weights = self._training_set(kind, X, weights, codes, coded, largest=C, size=self._machine_size)
            if training.kept is not None:
                codes, y = codes[training.kept], y[training.kept]
            self.class_weight_, weights = with_class_weights(self.class_weight, self.classes_, y, codes, weights)
            refuse_huge(C, weights)
            if self.from_factor and isinstance(self.kernel_, Linear):
                sizes = np.sort(np.bincount(codes, minlength=len(self.classes_)))
                self._take_factor(training, int(sizes[-2:].sum()) if self._paired else len(codes), C)
            trained = self._train(training, codes, weights, None, monitor)
            self._keep(training, X, trained.support, trained.dual, trained.intercept, trained.counts)
            self._basis_coefficients = trained.basis
            self._finish(training, trained.machines)
            self.n_iter_ = np.atleast_1d(np.asarray(self.n_iter_, dtype=np.int32))
            self._probA = self._probB = np.empty(0)
            if self.probability:
                self._calibrate(training, codes, weights, monitor)
        self._advise(training, trained)
        return self

    def _coded(self, codes: Index) -> Matrix:
        """Targets of +-1, (n, 1) for two classes and (n, k) for more."""
        k = len(self.classes_)
        return np.where(codes[:, None] == np.arange(1 if k == 2 else k), 1.0, -1.0)

    def _encode(self, y: NDArray[Any], weights: Vector | None) -> Index:
        """Classes 0..k-1 (n,); classes whose points all have weight zero do not exist."""
        self.classes_, codes = classes_of(y, weights)
        if len(self.classes_) < 2:
            raise self._one_class_left()
        return codes

    def _tasks(self, codes: Index) -> list[BinaryTask]:
        """Every binary machine: its points and whether both its classes are there."""
        k = len(self.classes_)
        sizes = np.bincount(codes, minlength=k).tolist()
        if not self._paired:
            return [BinaryTask(c, None, 0 < sizes[c] < len(codes)) for c in (range(1) if k == 2 else range(k))]
        order = np.argsort(codes, kind="stable")
        of_class = [order[block] for block in pairwise.blocks_of(np.asarray(sizes))]
        return [
            BinaryTask(i, np.concatenate([of_class[i], of_class[j]]), sizes[i] > 0 and sizes[j] > 0)
            for i, j in zip(*(side.tolist() for side in pairwise.pairs_of(k)))
        ]

    def _train(
        self, training: TrainingSet, codes: Index, weights: Vector | None, index: Index | None, monitor: Monitor
    ) -> Trained:
        """Train all machines on the training points at `index` (None: all); codes and weights belong to those."""
        trained = self._train_from_points(training, codes, weights, index, monitor)
        count, tasks = self._machines, []
        if len(trained) < count:
            tasks = self._tasks(codes)
            rest = [number for number, task in enumerate(tasks) if task.contested and number not in trained]
            if rest:
                trained |= self._train_from_matrix(training, codes, weights, index, monitor, tasks, rest)
        coefficients: list[Vector] = []
        intercept = np.zeros(count)
        basis = np.zeros((0 if training.basis is None else training.basis.shape[1], count))
        for number in range(count):
            if number not in trained:
                members = tasks[number].members
                coefficients.append(np.zeros(len(codes if members is None else members)))
                intercept[number] = tasks[number].without_rival(codes)
                continue
            problem, solution, _ = trained[number]
            scale = 1.0 if problem is None else self._scale(problem, solution)
            coefficients.append(solution.coefficients / scale if scale != 1.0 else solution.coefficients)
            intercept[number] = float(solution.bias) / scale
            if training.basis is not None:
                basis[:, number] = np.asarray(solution.multipliers["basis"]) / scale
        support, counts, dual = self._expansion(codes, coefficients)
        return Trained(support, counts, dual, intercept, list(map(trained.__getitem__, sorted(trained))), basis)

    def _train_from_matrix(
        self,
        training: TrainingSet,
        codes: Index,
        weights: Vector | None,
        index: Index | None,
        monitor: Monitor,
        tasks: list[BinaryTask],
        chosen: list[int],
    ) -> dict[int, BinaryMachine]:
        """The machines of the `chosen` numbers, each from a problem on its part of the kernel matrix."""
        starts = self._starts(len(tasks)) if index is None else [None] * len(tasks)
        # Coordinate descent reads the points themselves, never the kernel matrix.
        if (len(tasks) > 1 or self.probability) and self.solver != "linear_dual":
            training.share(codes if index is None and self._paired else None)
        _ = training.whole  # computed before the threads part
        share = training.side_by_side(len(chosen))

        def train(number: int) -> BinaryMachine:
            members = tasks[number].members
            signs = tasks[number].signs(codes)
            where = members if index is None else (index if members is None else index[members])
            own = weights if members is None or weights is None else weights[members]
            psi = training.basis if training.basis is None or where is None else training.basis[where]
            problem = self._problem(training.gram(where, share), signs, own, psi)
            return BinaryMachine(
                problem, self._solve(problem, training.resources, monitor, starts[number]), problem.box
            )

        # Of the values of a problem, most are in products of its support vectors with all its points.
        sizes = [len(codes) if (own := tasks[number].members) is None else len(own) for number in chosen]
        work = [float(size) ** 2 for size in sizes]
        return dict(zip(chosen, threads.run_by_work(train, [(number,) for number in chosen], work, share)))

    def _train_from_points(
        self, training: TrainingSet, codes: Index, weights: Vector | None, index: Index | None, monitor: Monitor
    ) -> dict[int, BinaryMachine]:
        """The machines small enough for one compiled call each, by their number; none unless overridden."""
        return {}

    def _expansion(self, codes: Index, coefficients: list[Vector]) -> tuple[Index, Counts, Matrix]:
        """Support vectors by class and index, their number in each class, and the dual coefficients."""
        k = len(self.classes_)
        if self._paired:
            return pairwise.lay_out(codes, coefficients, k)
        rows = np.stack(coefficients)
        support = np.flatnonzero(rows.any(axis=0))
        support = support[np.argsort(codes[support], kind="stable")]
        return (
            support,
            np.bincount(codes[support], minlength=k).astype(np.int32),
            np.ascontiguousarray(rows[:, support]),
        )

    def _machine_size(self, n: int) -> int | None:
        """Points of each machine where there are several small ones, else None."""
        return None

    def _advise(self, training: TrainingSet, trained: Trained) -> None:
        """Look at the dual variables of the machine with most points."""
        if np.isfinite(getattr(self, "C", np.inf)) and getattr(self, "loss", "hinge") == "hinge":
            _, solution, box = max(trained.machines, key=attrgetter("box.size"))
            advice.on_width(
                training.kernel, np.abs(solution.coefficients), box, getattr(self, "bias", "free") == "free"
            )

    # Probabilities ---------------------------------------------------------------------------------------------

    def _calibrate(self, training: TrainingSet, codes: Index, weights: Vector | None, monitor: Monitor) -> None:
        """Platt's sigmoid of every machine, on decision values of points it was not trained on."""

        def train(inside: Index, outside: Index) -> Matrix:
            part = self._train(training, codes[inside], None if weights is None else weights[inside], inside, monitor)
            values = self._held_out(training, part, inside[part.support], outside)
            return values if training.basis is None else values + training.basis[outside] @ part.basis

        training.forget()
        machines = len(self._intercept_)
        fold = probability.folds(codes, min(FOLDS, len(codes)), check_random_state(self.random_state))
        values = probability.held_out_values(fold, machines, train)
        self._probA, self._probB = np.empty(machines), np.empty(machines)
        for number, task in enumerate(self._tasks(codes)):
            own = np.arange(len(codes)) if task.members is None else task.members
            self._probA[number], self._probB[number] = probability.fit_sigmoid(
                values[own, number], codes[own] == task.positive, None if weights is None else weights[own]
            )

    def _held_out(self, training: TrainingSet, part: Trained, support: Index, outside: Index) -> Matrix:
        """Decision values of machines trained on a fold at the points left out."""
        blocks, coefficients = self._split(part.dual, part.counts)
        if training.held(outside[:0], support) is None:
            points, vectors = (arguments.take(training.points, where) for where in (outside, support))
            resources = self._prediction_resources()
            products = prediction.expand(training.kernel, points, vectors, blocks, coefficients, resources)
            return self._combine(products, part.intercept)
        values = np.empty((len(outside), len(part.intercept)))
        step = max(1, HELD_VALUES // max(1, len(support)))
        for start in range(0, len(outside), step):
            rows = slice(start, start + step)
            held = training.held(outside[rows], support)
            assert held is not None
            values[rows] = self._combine(prediction.contract(held, blocks, coefficients), part.intercept)
        return values


@dataclass(kw_only=True, eq=False, repr=False)
class SVC(Classifier):
    """C-support vector classification.

    Parameters
    ----------
    C : cost of an error relative to the norm; sample and class weights multiply it.  inf is the hard margin.
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
    loss : "hinge", or "squared_hinge", whose dual has no upper bound: more support vectors, and a smooth objective.
    bias : "free", "none" or "penalised" (by 1/2 b^2).
    basis : function of X (n, d) that returns (n, q) columns outside the norm: f(x) = sum_v c_v k(x, v) + b + g(x)'beta,
        the semiparametric model.  Needs the interior point method: n^2 memory, or an approximation.
    multiclass : "ovo", one machine for each pair of classes, or "ovr", one for each class.
    approximation : None for the exact machine, a low-rank kernel such as Nystrom(2000) from `mercer.lowrank`, or "auto"
        to let size and memory decide.
    solver : "auto", "decomposition", "interior_point" (small problems, or an approximation; high accuracy),
        "linear_dual" (an approximation of many points, or a linear kernel, dense or CSR points), or any other name of
        `mercer.solvers.available()` that accepts the problem.
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
    kernel_ : the kernel that was used, its parameters resolved; Precomputed() for a given matrix or a function.
    objective_, dual_objective_, gap_ : primal and dual value and their difference, summed over the machines.
    solver_ : which solver ran, and why; plan_ how kernel values were held, in which memory and precision.
    stopped_ : "converged", or what ended the training before.
    approximation_, approximation_reason_, feature_map_ : the approximation used, None for the exact machine, why, and
        its features; with one, `dual_coef_` has a row for each machine on the landmarks `support_vectors_` (rows
        `support_` of X where they are points of it), or on the features where there are no landmarks.
    basis_coef_ : coefficients beta (q,) of the basis, (q, machines) for several machines.
    solution_ : the Solution, or the list of them for several machines; `history_` likewise.

    """

    C: float = 1.0
    loss: str = "hinge"
    bias: str = "free"
    basis: Any = None

    from_factor: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Classifier._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "loss": [StrOptions(set(LOSSES))],
        "bias": [StrOptions({"free", "none", "penalised"})],
        "basis": [callable, None],
    }

    def _problem(self, gram: GramOperator, y: Vector, weights: Vector | None, basis: Matrix | None = None) -> Problem:
        bias: Any = self.bias
        if np.isfinite(self.C):
            return RegularisedRisk(gram, y, LOSSES[self.loss], self.C, weights, bias, basis)
        if bias != "free":
            raise InvalidInput(f"C=inf, the hard margin, is solved with bias='free' only; give a finite C for {bias=}")
        if basis is not None:
            raise InvalidInput("C=inf, the hard margin, is solved without basis only; give a finite C")
        return HardMargin(gram, y, weights)

    def _no_margin(self) -> Infeasible:
        return Infeasible(
            "C=inf asks for a machine without any error, and the classes cannot be separated with this kernel: give a "
            "finite C, or a kernel of smaller width"
        )

    def _machine_size(self, n: int) -> int | None:
        size = n if len(self.classes_) == 2 else 2 * n // len(self.classes_)
        return size if size <= STORED_POINTS and (len(self.classes_) == 2 or self._paired) else None

    def _train_from_points(
        self, training: TrainingSet, codes: Index, weights: Vector | None, index: Index | None, monitor: Monitor
    ) -> dict[int, BinaryMachine]:
        if self.loss != "hinge" or self.bias != "free" or self.basis is not None:
            return {}
        if self.warm_start or self.gap_tol is not None or self.C > LONG_RUNS:
            return {}
        if self.solver not in ("auto", "decomposition") or training.reduction is not None:
            return {}
        if monitor.has_callbacks or not (len(self.classes_) == 2 or self._paired):
            return {}
        if self.memory is not None:
            # A pair may come to hold all its values; where a stated budget does not, the general solver asks for less.
            largest = min(STORED_POINTS, int(np.sort(np.bincount(codes))[-2:].sum()))
            if np.dtype(training.resources.precision).itemsize * largest**2 > training.resources.budget:
                return {}
        box = np.full(len(codes), float(self.C))
        if weights is not None:
            box *= weights
        return train_pairs(training, codes, len(self.classes_), box, index, self.tol, self.max_iter, monitor)
