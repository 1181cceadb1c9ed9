"""Several labels at once: k unlinked yes-or-no questions, not one choice among k classes.

A point of a multiclass problem has one class, and machines compete for it; a point of a multilabel problem may have any
number of labels, none included, and each label is decided by its own machine and its own threshold (Rifkin 2002,
section 4.1).  Nothing is shared but the work: least-squares machines use one factorisation for all labels, support
vector machines one kernel matrix.

Where each point is known to have exactly one label, y is the vector of these labels: the machines are those of
one-versus-all, and the label with the largest output is the answer.
"""

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, _fit_context
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_consistent_length, check_is_fitted, validate_data

from mercer import threads
from mercer.errors import InvalidInput
from mercer.kernels import Kernel
from mercer.least_squares import LSSVC, LSSVR
from mercer.machine.arguments import classes_of, refuse_flat
from mercer.machine.fitted_state import Flag, Labels, State
from mercer.machine.outcome import MadeOfMachines, common_kernel, common_outcome
from mercer.multiclass.banks import CloneBank, weights_for
from mercer.multiclass.support_vector_bank import CodedSVC, shares_matrix
from mercer.svm import SVC

Array = NDArray[np.float64]


class Multilabel(MadeOfMachines, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # untyped
    """One binary machine for each label.

    Parameters
    ----------
    base : a classifier with decision_function or predict_proba; None is `mercer.SVC()`.  Where it chooses parameters
        itself, as LSSVC(C="loo") does, it does so for each label.
    n_jobs : threads or processes, as the base has them.

    Attributes
    ----------
    machines_ : the machines, one for each label; a number where a label is always (+1) or never (-1) there; None where
        labels share their work.
    n_labels_ : the number of columns that are learnt: of y, where it was a matrix; else one for each class, or one for
        two classes.
    multilabel_ : whether y was a matrix of 0 and 1; answers have the shape of y.
    classes_ : the labels: 0, 1, ... for the columns of a matrix, [0, 1] for a single one; else those in y.
    n_features_in_ : number of features, where points have some.
    objective_, dual_objective_, gap_ : the certificate where the base has one, summed over the labels.
    kernel_, solver_, solution_, history_, n_iter_, stopped_, plan_ : as in `OutputCode`.

    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "base": "no_validation",  # type: ignore[dict-item]  # scikit-learn takes the word
        "n_jobs": [Integral, None],
    }

    machines_: list[Any] | None
    _shared: Any

    def __init__(self, base: Any = None, *, n_jobs: int | None = None) -> None:
        self.base = base
        self.n_jobs = n_jobs

    @property
    def _base(self) -> Any:
        return SVC() if self.base is None else self.base

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self._base).input_tags.sparse
        tags.input_tags.pairwise = get_tags(self._base).input_tags.pairwise
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        return tags

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Multilabel":
        """Train on points X and labels y: (n, k) of 1 where the point has the label and 0 where it has not, or (n,)."""
        validate_data(self, X, y, skip_check_array=True)
        check_consistent_length(X, y)
        weights = weights_for(self._base, sample_weight, X)
        signs = self._signs(y, weights)
        self.n_labels_ = signs.shape[1]
        with threads.limit(self.n_jobs):
            self._train(X, signs, weights)
        self.kernel_, self.stopped_ = common_kernel(self._parts()), common_outcome(self._parts())
        return self

    def _signs(self, y: Any, weights: Array | None) -> NDArray[np.int64]:
        """+1 where a point has the label of a column and -1 where not, (n, columns); sets what is known of labels."""
        found = indicators(y)
        self.multilabel_ = found is not None
        if found is not None:
            self.classes_: NDArray[Any] = np.arange(max(2, found.shape[1]))
            return 2 * found - 1
        y = validate_data(self, y=y)
        check_classification_targets(y)
        self.classes_, codes = classes_of(y, weights)
        k = len(self.classes_)
        return np.where(codes[:, None] == (np.arange(k) if k > 2 else 1), 1, -1)

    def _state(self) -> State:
        return {"classes_": Labels(), "multilabel_": Flag()}

    def _parts(self) -> list[Any]:
        check_is_fitted(self)
        if self._shared is not None:
            return [self._shared]
        return [machine for machine in self.machines_ or [] if not isinstance(machine, float)]

    def _train(self, X: Any, signs: NDArray[np.int64], weights: Array | None) -> None:
        """One machine for all labels where they share their work, else one for each."""
        base = self._base
        self.machines_, self._shared = None, None
        if _one_system(base):
            self._shared = _regression(base).fit(X, signs.astype(np.float64), sample_weight=weights)
            return
        # Points with the same labels are a class, and a label is a column of the code of these classes; a point of
        # weight zero may have any.
        seen = np.ones(len(signs), dtype=bool) if weights is None else weights > 0.0
        classes = np.zeros(len(signs), dtype=np.intp)
        rows, found = np.unique(signs[seen], axis=0, return_inverse=True)
        code, classes[seen] = rows.astype(np.int8), found.ravel()
        if _one_matrix(base, rows):
            self._shared = CodedSVC.like(base, code).fit(X, classes, sample_weight=weights)
        else:
            self.machines_ = CloneBank.train(base, code, X, classes, weights, self.n_jobs).machines

    def decision_function(self, X: Any) -> Array:
        """Outputs (n, n_labels_), positive where the label is given; (n,) for two classes, positive for classes_[1]."""
        values = self._outputs(X)
        return values if self.multilabel_ or values.shape[1] > 1 else values[:, 0]

    def predict(self, X: Any) -> NDArray[Any]:
        """Indicators (n, k), or labels (n,)."""
        values = self._outputs(X)
        if self.multilabel_:
            return (values > 0).astype(np.int64)
        winners = (values[:, 0] > 0).astype(np.intp) if values.shape[1] == 1 else np.argmax(values, axis=1)
        return np.asarray(self.classes_[winners])

    def _outputs(self, X: Any) -> Array:
        """Outputs (n, n_labels_) of the machines."""
        check_is_fitted(self)
        if hasattr(self, "n_features_in_"):
            refuse_flat(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        if self._shared is not None:
            answer = self._shared.outputs if isinstance(self._shared, CodedSVC) else self._shared.predict
            return np.asarray(answer(X), dtype=np.float64).reshape(_num_samples(X), -1)
        return CloneBank(self.machines_ or [], [None] * self.n_labels_, False).outputs(X)


def indicators(Y: Any) -> NDArray[np.int64] | None:
    """Y (n, k) of 0 and 1, dense or sparse; None for one label of any kind for each point, (n,) or a column."""
    dense = Y.toarray() if sp.issparse(Y) else np.asarray(Y)
    if np.iscomplexobj(dense):
        raise InvalidInput("Complex data not supported: y must hold labels, or 0 and 1 in several columns")
    if dense.ndim == 2 and dense.dtype.kind in "biuf" and np.isin(dense, (0, 1)).all():
        return dense.astype(np.int64)
    if dense.ndim < 2 or (dense.shape[1] == 1 and not sp.issparse(Y)):
        return None
    raise InvalidInput(
        "Unknown label type: several columns of y must hold 0 and 1 only, 1 where the point has the label of the "
        "column; where each column has classes of its own, train a classifier for each of them"
    )


def _one_system(base: Any) -> bool:
    """Whether the labels are targets of one system of least squares: with nothing to weigh or choose for each."""
    if type(base) is not LSSVC or base.class_weight is not None:
        return False
    chosen = isinstance(base.C, str) or np.ndim(base.C) > 0
    return not chosen and not (isinstance(base.kernel, Kernel) and base.kernel.placeholders)


def _one_matrix(base: Any, signs: NDArray[np.int64]) -> bool:
    """Whether the labels are columns of one SVC: in the rows of the code every label is there and missing."""
    return shares_matrix(base) and bool(np.all(signs.min(axis=0) < signs.max(axis=0)))


def _regression(base: LSSVC) -> LSSVR:
    """Least squares on targets +-1 of all labels: the same systems, one factorisation."""
    names = LSSVR._get_param_names()
    return LSSVR(**{name: value for name, value in base.get_params(deep=False).items() if name in names})
