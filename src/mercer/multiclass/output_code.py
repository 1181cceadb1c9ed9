"""OutputCode: several classes from any binary classifier, by a code matrix and a decoder."""

from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, _fit_context
from sklearn.utils import _safe_indexing, check_random_state, get_tags, indexable
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from mercer import threads
from mercer.errors import InvalidInput
from mercer.least_squares import LSSVC
from mercer.losses import Loss
from mercer.machine import arguments, probability, repeated_rows
from mercer.machine.arguments import HoldsValues, kind_of
from mercer.machine.fitted_state import Labels, State, Values
from mercer.machine.outcome import MadeOfMachines, common_kernel, common_outcome
from mercer.multiclass import coupling, decoders, learnt_decoders, least_squares_bank, support_vector_bank
from mercer.multiclass.banks import Bank, CloneBank, weights_for
from mercer.multiclass.codes import NAMES, audit, make_code
from mercer.svm import SVC

Array = NDArray[np.float64]
Index = NDArray[np.intp]

DECODERS = ("hamming", "loss", "bradley-terry", "stacking", "continuous")


def _gives_probabilities(estimator: "OutputCode") -> bool:
    if estimator.decoder != "bradley-terry":
        raise AttributeError("predict_proba needs decoder='bradley-terry'")
    return True


@dataclass(kw_only=True, eq=False, repr=False)
class OutputCode(MadeOfMachines, MetaEstimatorMixin, ClassifierMixin, HoldsValues):  # type: ignore[misc]  # untyped
    """k classes by the binary machines of a code matrix.

    Parameters
    ----------
    base : any scikit-learn classifier of two classes with decision_function or predict_proba; None is `mercer.SVC()`.
        LSSVC and SVC are trained together: all codes without zeros from one factorisation, machines of a code on one
        kernel matrix, with one C and one kernel (gamma, C="loo") for all columns.  Others are cloned for each column.
    code : "ova", "ava", "complete", "dense", "sparse", "bch" (see `mercer.multiclass.codes`) or a matrix (k, F) of +1,
        -1 and 0 whose rows belong to the sorted labels.
    decoder : how the outputs of the machines become a class.
        "hamming", "loss" : the class whose row disagrees least with the outputs, by signs or by the loss below.
        "bradley-terry" : probabilities from Platt's sigmoids of the outputs, coupled over the code.
        "stacking" : a linear map learnt on outputs of machines that did not see the point.
        "continuous" : a real code matrix learnt on such outputs, with a margin (Crammer and Singer).
    loss : of "loss" decoding: "auto" takes the one the base minimises; a name, or an object of `mercer.losses`.
    penalty : on the learnt map or code of "stacking" and "continuous", for outputs scaled to mean square one.
    norm : of the continuous code, "1", "2" or "inf".
    folds : of the cross-validation behind the last three decoders; least-squares machines need none, their exact
        leave-one-out is free.  Copies of a point are left out together, so that a weight of two is two copies.
    random_state : seed of random codes and folds.
    n_jobs : processes for cloned machines (None: one), threads for mercer's (None: all).

    Attributes
    ----------
    classes_ : the labels (k,).
    code_ : the code (k, F); audit_ what it is worth (`mercer.multiclass.Audit`).
    bank_ : the trained machines, `bank_.outputs(X)` their outputs.
    loss_ : the loss of "loss" decoding.
    sigmoids_ : Platt's A and B (F, 2), for "bradley-terry".
    combiner_ : the learnt map (F, k), for "stacking" and "continuous".
    n_features_in_ : number of features, where points have some.
    objective_, dual_objective_, gap_ : the certificate where the base has one, summed over the machines that were
        trained; for LSSVC and a code without zeros these are the machines of one-versus-all.
    kernel_, solver_, solution_, history_, n_iter_, stopped_, plan_ : as in `SVC`; a list of kernels where they differ.

    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "base": "no_validation",  # type: ignore[dict-item]  # scikit-learn takes the word
        "code": [StrOptions(set(NAMES)), "array-like"],
        "decoder": [StrOptions(set(DECODERS))],
        "loss": [StrOptions({"auto", *decoders.LOSSES}), Loss],
        "penalty": [Interval(Real, 0.0, None, closed="neither")],
        "norm": [StrOptions({"1", "2", "inf"})],
        "folds": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    base: Any = field(default=None, kw_only=False)
    code: Any = field(default="ova", kw_only=False)
    decoder: str = field(default="loss", kw_only=False)
    loss: Any = "auto"
    penalty: float = 1.0
    norm: str = "2"
    folds: int = 5
    random_state: Any = None
    n_jobs: int | None = None

    def _parts(self) -> list[Any]:
        check_is_fitted(self)
        return self.bank_.parts()

    @property
    def _base(self) -> Any:
        return SVC() if self.base is None else self.base

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        own = get_tags(self._base)
        tags.input_tags.sparse = own.input_tags.sparse
        tags.input_tags.pairwise = own.input_tags.pairwise
        tags.input_tags.allow_nan = own.input_tags.allow_nan
        return tags

    def _state(self) -> State:
        """What predictions need beside the bank: the code, and what the decoder has learnt."""
        state: dict[str, Any] = {"classes_": Labels(), "code_": Values(("classes", "columns"), "i1")}
        state["_kept"] = Values(("points",), "i8", optional=True)
        if self.decoder == "bradley-terry":
            state |= {"sigmoids_": Values(("columns", 2)), "_sizes": Values(("columns",))}
        elif self.decoder in ("stacking", "continuous"):
            state["combiner_"] = Values(("columns", "classes"))
        return state

    def _decoding_loss(self) -> Loss:
        return decoders.natural_loss(self._base) if self.loss == "auto" else decoders.loss_of(self.loss)

    # Training --------------------------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "OutputCode":
        """Train on points X and labels y (n,); points of weight zero are left out."""
        X, y = self._checked(X, y)
        weights = weights_for(self._base, sample_weight, X)
        self._kept: Index | None = None
        if weights is not None and not weights.all():
            self._kept = kept = np.flatnonzero(weights)
            X, y, weights = self._part(X, kept), y[kept], weights[kept]
        self.classes_, labels = np.unique(y, return_inverse=True)
        k = len(self.classes_)
        if k < 2:
            raise InvalidInput(f"The number of classes has to be greater than one; got {k} class")
        random = check_random_state(self.random_state)
        self.code_ = make_code(self.code, k, int(random.randint(2**31 - 1)))
        self.audit_, self.loss_ = audit(self.code_), self._decoding_loss()
        with threads.limit(self.n_jobs):
            self.bank_: Bank = self._train(X, labels, weights)
            parts = self.bank_.parts()
            self.kernel_, self.stopped_ = common_kernel(parts), common_outcome(parts)
            if self.decoder in ("bradley-terry", "stacking", "continuous"):
                self._learn(self._unseen(X, labels, weights, random), labels, weights)
        return self

    def _checked(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        """The data as the base takes them; mercer's machines get them in their working form at once."""
        base = self._base
        if isinstance(base, (SVC, LSSVC)):
            X, y = arguments.training_data(self, kind_of(base.kernel, X), X, y)
        else:
            y = validate_data(self, y=y)
            validate_data(self, X, skip_check_array=True)
            X, y = indexable(X, y)  # sparse points become CSR, others what folds can be cut from
        check_classification_targets(y)
        return X, np.asarray(y)

    def _part(self, X: Any, index: Index) -> Any:
        part = arguments.take(X, index) if isinstance(X, list) else _safe_indexing(X, index)
        return _safe_indexing(part, index, axis=1) if get_tags(self._base).input_tags.pairwise else part

    def _train(self, X: Any, labels: Index, weights: Array | None) -> Bank:
        """Machines for points of classes 0..k-1, some of which may be missing in a fold."""
        base = self._base
        found: Bank | None = None
        if type(base) is LSSVC:
            found = least_squares_bank.bank(base, self.code_, X, labels, weights)
        elif isinstance(base, SVC):
            found = support_vector_bank.bank(base, self.code_, X, labels, weights)
        return found or CloneBank.train(base, self.code_, X, labels, weights, self.n_jobs)

    def _unseen(self, X: Any, labels: Index, weights: Array | None, random: np.random.RandomState) -> Array:
        """Outputs (n, F) at the training points of machines that saw neither them nor a copy of them.

        Exact leave-one-out where it is free, with the copies of a point as one point of their weight; else folds.
        """
        pairwise = get_tags(self._base).input_tags.pairwise
        rows = repeated_rows.distinct(X, labels, None, given=pairwise, ordered=True)
        own = np.arange(len(labels), dtype=np.intp)
        first, point = (own, own) if rows is None else (rows.first, rows.point(len(labels)))
        exact = self._left_out(X, labels, weights, first, point)
        if exact is not None:
            return exact

        def train(inside: Index, outside: Index) -> Array:
            bank = self._train(self._part(X, inside), labels[inside], None if weights is None else weights[inside])
            points = np.asarray(X)[np.ix_(outside, inside)] if pairwise else self._part(X, outside)
            return bank.outputs(points)

        fold = probability.folds(labels[first], min(self.folds, len(first)), random)[point]
        return probability.held_out_values(fold, self.code_.shape[1], train)

    def _left_out(self, X: Any, labels: Index, weights: Array | None, first: Index, point: Index) -> Array | None:
        """Exact leave-one-out outputs (n, F) of least-squares machines, None of others."""
        if len(first) == len(labels) or not isinstance(self._base, LSSVC):
            return self.bank_.leave_one_out()
        merged = self._train(self._part(X, first), labels[first], np.bincount(point, weights).astype(np.float64))
        exact = merged.leave_one_out()
        return None if exact is None else exact[point]

    def _learn(self, outputs: Array, labels: Index, weights: Array | None) -> None:
        """Fit the decoder to outputs (n, F) at points the machines had not seen."""
        w = np.ones(len(labels)) if weights is None else weights
        if self.decoder == "bradley-terry":
            self._calibrate(outputs, labels, w)
            return
        # The unit of the outputs is that of the base; the penalty is for outputs of mean square one.
        unit = float(np.sqrt(np.mean(w @ outputs**2) / w.sum())) or 1.0
        k, values = len(self.classes_), outputs / unit
        if self.decoder == "stacking":
            learnt = learnt_decoders.stack(values, labels, k, self.penalty, w)
        else:
            norm: Any = self.norm
            learnt = learnt_decoders.continuous_code(values, labels, k, norm=norm, penalty=self.penalty, weights=w).T
        self.combiner_ = np.ascontiguousarray(learnt / unit)

    def _calibrate(self, outputs: Array, labels: Index, weights: Array) -> None:
        """Platt's sigmoid for each machine, on the points of its classes, and the weight of these points."""
        signs = self.code_[labels]
        self.sigmoids_ = np.empty((signs.shape[1], 2))
        for a, column in enumerate(signs.T):
            own = column != 0
            self.sigmoids_[a] = probability.fit_sigmoid(outputs[own, a], column[own] > 0, weights[own])
        self._sizes = weights @ (signs != 0)

    # Prediction ------------------------------------------------------------------------------------------------

    def outputs(self, X: Any) -> Array:
        """Outputs (n, F) of the binary machines, positive for the classes with +1 in the code."""
        check_is_fitted(self)
        base = self._base
        if isinstance(base, (SVC, LSSVC)):
            X = arguments.prediction_data(self, kind_of(base.kernel, X), X, getattr(self, "n_features_in_", 0))
        elif hasattr(self, "n_features_in_"):
            (X,) = indexable(X)
            arguments.refuse_flat(X)
            validate_data(self, X, reset=False, skip_check_array=True)
        if _num_samples(X) == 0:
            raise InvalidInput("Found array with 0 sample(s) while a minimum of 1 is required")
        if self._kept is not None and get_tags(base).input_tags.pairwise:
            X = _safe_indexing(X, self._kept, axis=1)
        return self.bank_.outputs(X)

    def _scores(self, X: Any) -> Array:
        """Scores (n, k), the largest for the predicted class."""
        values = self.outputs(X)
        if self.decoder == "hamming":
            return np.asarray(-decoders.hamming(self.code_, values) / self.code_.shape[1])
        if self.decoder == "loss":
            return np.asarray(-decoders.loss_based(self.code_, values, self.loss_) / self.code_.shape[1])
        if self.decoder == "bradley-terry":
            return np.asarray(np.log(self._couple(values)))
        return np.asarray(values @ self.combiner_)

    def _couple(self, values: Array) -> Array:
        r = probability.sigmoid(values, self.sigmoids_[:, 0], self.sigmoids_[:, 1])
        return coupling.from_code(self.code_, r, self._sizes)

    def decision_function(self, X: Any) -> Array:
        """Scores (n, k), the largest for the predicted class; (n,) for two classes, positive for classes_[1].

        They are minus the mean charge of a machine for "hamming" and "loss", logarithms of probabilities for
        "bradley-terry", and the outputs of the learnt map for the others.
        """
        scores = self._scores(X)
        return np.asarray(scores[:, 1] - scores[:, 0]) if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels (n,)."""
        scores = self._scores(X)
        return np.asarray(self.classes_[np.argmax(scores, axis=1)])

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def predict_proba(self, X: Any) -> Array:
        """Class probabilities (n, k) of the Bradley-Terry model; with decoder="bradley-terry" only."""
        return self._couple(self.outputs(X))

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the class probabilities (n, k)."""
        return np.asarray(np.log(self.predict_proba(X)))
