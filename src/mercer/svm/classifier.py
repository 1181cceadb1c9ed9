"""Binary machines for k classes: what SVC and NuSVC share.

k > 2 classes are k(k-1)/2 machines, one for each pair ("ovo", as in scikit-learn), or k machines, one class against the
rest ("ovr").  Inside, the first class of a pair is the positive one, as in LIBSVM; what a user sees of two classes has
the opposite sign, so that a positive decision value means classes_[1], as in scikit-learn.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _ovr_decision_function, check_classification_targets
from sklearn.utils.validation import check_is_fitted

from mercer import threads
from mercer.errors import InvalidInput
from mercer.estimation import advice, pairwise, prediction, probability, validation
from mercer.estimation.similarity import kind_of
from mercer.estimation.training import TrainingSet
from mercer.estimation.weights import class_weights, point_weights, sample_weights
from mercer.gram import GramOperator
from mercer.problems import Problem
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution
from mercer.svm.base import SupportVectorMachine

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Index = NDArray[np.intp]
Counts = NDArray[np.int32]

FOLDS = 5


def _offers_probability(estimator: "Classifier") -> bool:
    if not estimator.probability:
        raise AttributeError("predict_proba is not available when probability=False")
    return True


@dataclass(frozen=True)
class Task:
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
    problems: list[Problem | None]
    solutions: list[Solution]
    boxes: list[Vector]


class Classifier(ClassifierMixin, SupportVectorMachine):  # type: ignore[misc]
    """Binary machines for k classes."""

    class_weight: Any
    probability: bool
    decision_function_shape: str
    break_ties: bool
    multiclass: str
    random_state: Any
    classes_: NDArray[Any]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SupportVectorMachine._parameter_constraints,
        "probability": ["boolean"],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "break_ties": ["boolean"],
        "random_state": ["random_state"],
        "multiclass": [StrOptions({"ovo", "ovr"})],
    }

    def _problem(self, gram: GramOperator, y: Vector, weights: Vector | None) -> Problem:
        raise NotImplementedError

    def _scale(self, solution: Solution) -> float:
        """What coefficients and bias are divided by so that the margin is one."""
        return 1.0

    def _one_class_left(self) -> InvalidInput:
        return InvalidInput("Invalid input - all samples with positive weights belong to the same class")

    # Training --------------------------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Classifier":
        """Train on points X (n, d) and labels y (n,); `sample_weight` (n,) counts repetitions of the points.

        X may be dense or CSR, a list of objects for kernels on objects, or the kernel matrix (n, n) when the kernel is
        "precomputed".
        """
        kind = kind_of(self.kernel, X)
        X, y = validation.training_data(self, kind, X, y)
        if y.dtype.kind not in "biuUS":  # such labels need no second look
            check_classification_targets(y)
        weights = sample_weights(sample_weight, X)
        codes = self._encode(y, weights)
        random = check_random_state(self.random_state)
        with self._watched(X, y) as monitor:
            coded = None if getattr(self, "approximation", None) is None else self._coded(codes)
            training, weights = self._training_set(kind, X, weights, coded)
            if training.kept is not None:
                codes, y = codes[training.kept], y[training.kept]
            self.class_weight_ = class_weights(self.class_weight, self.classes_, y, weights)
            weights = point_weights(weights, self.class_weight_, codes)
            trained = self._train(training, codes, weights, None, monitor)
            self._keep(training, X, trained.support, trained.counts, trained.dual, trained.intercept)
            self._certify(trained.problems, trained.solutions, single=False)
            self._calibrate(training, codes, weights, random, monitor)
        self._advise(training, trained)
        return self

    def _coded(self, codes: Index) -> Matrix:
        """Targets of +-1, (n, 1) for two classes and (n, k) for more."""
        k = len(self.classes_)
        return np.where(codes[:, None] == np.arange(1 if k == 2 else k), 1.0, -1.0)

    def _encode(self, y: NDArray[Any], weights: Vector | None) -> Index:
        """Classes 0..k-1 (n,); classes whose points all have weight zero do not exist."""
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise InvalidInput(f"The number of classes has to be greater than one; got {len(classes)} class")
        if weights is not None and weights.min() <= 0.0:
            present = np.bincount(codes[weights > 0.0], minlength=len(classes)) > 0
            if present.sum() < 2:
                raise self._one_class_left()
            codes = (np.cumsum(present) - 1)[codes]
            classes = classes[present]
        self.classes_ = classes
        return np.asarray(codes, dtype=np.intp)

    @property
    def _paired(self) -> bool:
        """Whether there is a machine for each of three or more pairs."""
        return self.multiclass == "ovo" and len(self.classes_) > 2

    def _tasks(self, codes: Index) -> list[Task]:
        """Every binary machine: its points and whether both its classes are there."""
        k = len(self.classes_)
        sizes = np.bincount(codes, minlength=k).tolist()
        if not self._paired:
            return [Task(c, None, 0 < sizes[c] < len(codes)) for c in (range(1) if k == 2 else range(k))]
        order = np.argsort(codes, kind="stable")
        of_class = [order[block] for block in pairwise.blocks_of(np.asarray(sizes))]
        return [
            Task(i, np.concatenate([of_class[i], of_class[j]]), sizes[i] > 0 and sizes[j] > 0)
            for i, j in zip(*(side.tolist() for side in pairwise.pairs_of(k)))
        ]

    def _train(
        self, training: TrainingSet, codes: Index, weights: Vector | None, index: Index | None, monitor: Monitor
    ) -> Trained:
        """Train all machines on the training points at `index` (None: all); codes and weights belong to those."""
        tasks = self._tasks(codes)
        starts = self._starts(len(tasks)) if index is None else [None] * len(tasks)
        results = self._train_from_points(training, codes, weights, index, monitor)
        rest = [number for number, task in enumerate(tasks) if task.contested and number not in results]
        # Coordinate descent reads the points themselves, never the kernel matrix.
        if rest and (len(tasks) > 1 or self.probability) and self.solver != "linear_dual":
            training.share(codes if index is None and self._paired else None)

        def train(number: int) -> tuple[Problem, Solution]:
            members = tasks[number].members
            signs = tasks[number].signs(codes)
            where = members if index is None else (index if members is None else index[members])
            own = weights if members is None or weights is None else weights[members]
            problem = self._problem(training.gram(where), signs, own)
            return problem, self._solve(problem, monitor, starts[number])

        if rest:
            _ = training.whole  # computed before the threads part
            for number, (problem, solution) in zip(rest, threads.run(train, [(number,) for number in rest])):
                results[number] = problem, solution, problem.box
        coefficients: list[Vector] = []
        intercept = np.zeros(len(tasks))
        for number, task in enumerate(tasks):
            if number in results:
                solution = results[number][1]
                scale = self._scale(solution)
                coefficients.append(solution.coefficients / scale if scale != 1.0 else solution.coefficients)
                intercept[number] = float(solution.bias) / scale
            else:
                coefficients.append(np.zeros(len(codes) if task.members is None else len(task.members)))
                intercept[number] = task.without_rival(codes)
        machines = [results[number] for number in sorted(results)]
        problems, solutions, boxes = [m[0] for m in machines], [m[1] for m in machines], [m[2] for m in machines]
        support, counts, dual = self._expansion(codes, coefficients)
        return Trained(support, counts, dual, intercept, problems, solutions, boxes)

    def _train_from_points(
        self, training: TrainingSet, codes: Index, weights: Vector | None, index: Index | None, monitor: Monitor
    ) -> dict[int, tuple[Problem | None, Solution, Vector]]:
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

    def _public(self, dual: Matrix, intercept: Vector) -> tuple[Matrix, Vector]:
        return (-dual, -intercept + 0.0) if len(self.classes_) == 2 else (dual, intercept)

    def _advise(self, training: TrainingSet, trained: Trained) -> None:
        """Look at the dual variables of the machine with most points."""
        largest = max(range(len(trained.boxes)), key=lambda task: len(trained.boxes[task]))
        if hasattr(self, "C"):
            size = np.abs(trained.solutions[largest].coefficients)
            advice.on_width(training.kernel, size, trained.boxes[largest], getattr(self, "bias", "free") == "free")

    # Probabilities ---------------------------------------------------------------------------------------------

    def _calibrate(
        self, training: TrainingSet, codes: Index, weights: Vector | None, random: Any, monitor: Monitor
    ) -> None:
        """Platt's sigmoid of every machine, on decision values of points it was not trained on."""
        if not self.probability:
            self._probA = self._probB = np.empty(0)
            return

        def train(inside: Index, outside: Index) -> Matrix:
            part = self._train(training, codes[inside], None if weights is None else weights[inside], inside, monitor)
            return self._held_out(training, part, inside[part.support], outside)

        machines = len(self._intercept_)
        fold = probability.folds(codes, min(FOLDS, len(codes)), random)
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
        values = training.held(outside, support)
        if values is not None:
            products = prediction.contract(values, blocks, coefficients)
        else:
            points, vectors = (validation.take(training.points, where) for where in (outside, support))
            products = prediction.expand(training.kernel, points, vectors, blocks, coefficients, self.precision)
        return self._add_up(products, part.intercept)

    @available_if(_offers_probability)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Matrix:
        """Class probabilities (n, k), from Platt's sigmoid of each machine, coupled over pairs.

        The class that `predict` returns is the most probable one in every row: where the calibrated probabilities say
        otherwise, it and the classes above it are given equal shares (see `mercer.estimation.probability.agree`).
        """
        check_is_fitted(self)
        if self._probA.size == 0:
            raise NotFittedError("predict_proba is not available when fitted with probability=False")
        values = self._values(X)
        wins = probability.sigmoid(values, self._probA, self._probB)
        k = len(self.classes_)
        if self._paired or k == 2:
            p = probability.couple(wins, k)
        else:
            total = wins.sum(axis=1, keepdims=True)
            p = np.divide(wins, total, out=np.full_like(wins, 1.0 / k), where=total > 0.0)
        return probability.agree(p, self._decide(values))

    @available_if(_offers_probability)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Matrix:
        """Logarithms of the class probabilities (n, k)."""
        return np.asarray(np.log(self.predict_proba(X)))

    @property
    def probA_(self) -> Vector:
        """Slopes A of the sigmoids 1 / (1 + exp(A f + B)), one for each machine; empty without `probability`."""
        return self._probA

    @property
    def probB_(self) -> Vector:
        """Offsets B of the sigmoids, one for each machine; empty without `probability`."""
        return self._probB

    # Prediction ------------------------------------------------------------------------------------------------

    def _split(self, dual: Matrix, counts: Counts) -> tuple[list[slice], list[Matrix]]:
        """Blocks of support vectors with their coefficients: one for each class when there are pairs, else one."""
        blocks = pairwise.blocks_of(counts) if self._paired else [slice(0, dual.shape[1])]
        return blocks, [dual[:, block].T for block in blocks]

    def _operands(self) -> tuple[list[slice], list[Matrix]]:
        if self.approximation_ is not None:
            return super()._operands()
        if self._n_support.sum() != self._dual_coef_.shape[1]:
            raise InvalidInput(f"The internal representation of {type(self).__name__} was altered")
        return self._split(self._dual_coef_, self._n_support)

    def _add_up(self, products: list[Matrix], intercept: Vector) -> Matrix:
        return pairwise.gather(products, intercept) if self._paired else np.asarray(products[0] + intercept)

    def _combine(self, products: list[Matrix]) -> Matrix:
        if self.approximation_ is not None:
            return super()._combine(products)
        return self._add_up(products, self._intercept_)

    def _decide(self, values: Matrix) -> Index:
        """Class 0..k-1 (n,) for decision values (n, machines)."""
        k = len(self.classes_)
        if k == 2:
            return np.asarray(values[:, 0] <= 0.0, dtype=np.intp)
        if not self._paired:
            return np.asarray(values.argmax(axis=1))
        if self.break_ties:
            return np.asarray(_ovr_decision_function(values < 0, -values, k).argmax(axis=1))
        return pairwise.vote(values, k)

    def decision_function(self, X: Any) -> Matrix:
        """Decision values at X.

        (n,) for two classes, positive for classes_[1].  For the pairs of k > 2 classes (n, k(k-1)/2), positive for the
        first class of the pair, when decision_function_shape is "ovo"; (n, k), the votes plus a share of the summed
        values, when it is "ovr".  (n, k) for one machine per class.
        """
        values = self._values(X)
        k = len(self.classes_)
        if k == 2:
            return -values[:, 0]
        if self._paired and self.decision_function_shape == "ovr":
            return np.asarray(_ovr_decision_function(values < 0, -values, k))
        return values

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels (n,): by the sign for two classes, by most votes of the pairs, or by the largest value."""
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise InvalidInput("break_ties must be False when decision_function_shape is 'ovo'")
        return self.classes_[self._decide(self._values(X))]

    def _weights_on(self, vectors: Matrix, dual: Matrix, counts: NDArray[np.integer[Any]]) -> Matrix:
        if not self._paired:
            return super()._weights_on(vectors, dual, counts)
        return pairwise.primal_weights(dual, vectors, counts.astype(np.int32))

    def _weight_vectors(self) -> Any:
        if not self._paired or self.approximation_ is not None:
            return self.dual_coef_ @ self.support_vectors_
        weights = pairwise.primal_weights(self._dual_coef_, self.support_vectors_, self._n_support)
        if sp.issparse(self.support_vectors_):
            kind = sp.csr_array if isinstance(self.support_vectors_, sp.sparray) else sp.csr_matrix
            return kind(weights)
        return weights
