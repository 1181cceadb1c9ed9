"""Targets and points of the wrong shape get scikit-learn's errors and warnings, whichever the machine."""

import re

import numpy as np
import pytest
from sklearn import svm as libsvm
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import LogisticRegression

import mercer
from mercer.errors import InvalidInput

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = (X[:, 0] > 0).astype(int)
BOTH = np.column_stack([Y, 1 - Y])

SMALL = {"n_C": 2, "n_sigma": 2, "folds": 2}
CLASSIFIERS = [
    mercer.SVC(),
    mercer.NuSVC(),
    mercer.LSSVC(),
    mercer.CrammerSingerSVC(),
    mercer.WestonWatkinsSVC(),
    mercer.LeeLinWahbaSVC(),
    mercer.BredensteinerBennettSVC(),
    mercer.KernelLogistic(),
    mercer.OutputCode(),
    mercer.OutputCode(mercer.LSSVC()),
    mercer.OutputCode(LogisticRegression()),
    mercer.TunedSVC(**SMALL),
]
REGRESSORS = [mercer.SVR(), mercer.NuSVR(), mercer.TunedSVR(**SMALL)]
MULTIPLE = [mercer.LSSVR(), *(mercer.Multilabel(base) for base in (None, mercer.LSSVC(), LogisticRegression()))]
ON_FUNCTIONS = [
    kind(kernel=lambda a, b: np.asarray(a) @ np.asarray(b).T)
    for kind in (mercer.SVC, mercer.SVR, mercer.LSSVC, mercer.LSSVR, mercer.CrammerSingerSVC, mercer.KernelLogistic)
]
pytestmark = pytest.mark.filterwarnings("ignore::mercer.errors.Advice")


def reference(points, targets, new=None) -> str:
    """What scikit-learn's own machine says, as a pattern for any class."""
    machine = libsvm.SVC()
    with pytest.raises(ValueError) as caught:  # noqa: PT012 - the error comes from fit or from predict
        machine.fit(points, targets)
        machine.predict(new)
    return re.escape(str(caught.value)).replace("SVC", r"\w+")


def named(estimator) -> str:
    # The text of a function holds its address, which differs between the processes that collect the tests.
    on_function = callable(getattr(estimator, "kernel", None))
    return f"{type(estimator).__name__} on a function" if on_function else f"{estimator!r:.60}"


@pytest.mark.parametrize("estimator", CLASSIFIERS + REGRESSORS, ids=named)
def test_a_column_of_targets_is_taken_with_a_warning(estimator) -> None:
    with pytest.warns(DataConversionWarning, match="column-vector y was passed when a 1d array was expected"):
        column = estimator.fit(X, Y[:, None]).predict(X)
    assert column.shape == (30,)
    np.testing.assert_array_equal(column, estimator.fit(X, Y).predict(X))


@pytest.mark.parametrize("estimator", CLASSIFIERS + REGRESSORS + ON_FUNCTIONS[:3], ids=named)
def test_several_columns_of_targets_are_refused(estimator) -> None:
    with pytest.raises(ValueError, match=reference(X, BOTH)):
        estimator.fit(X, BOTH)


@pytest.mark.parametrize("estimator", CLASSIFIERS + REGRESSORS + MULTIPLE + ON_FUNCTIONS, ids=named)
def test_missing_targets_are_named(estimator) -> None:
    with pytest.raises(ValueError, match=reference(X, None)):
        estimator.fit(X, None)


@pytest.mark.parametrize("estimator", CLASSIFIERS + ON_FUNCTIONS[:1], ids=named)
def test_real_targets_are_no_labels(estimator) -> None:
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        estimator.fit(X, X[:, 0])


@pytest.mark.parametrize("estimator", CLASSIFIERS + REGRESSORS + MULTIPLE + ON_FUNCTIONS, ids=named)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_targets_that_are_not_numbers_are_refused_without_a_warning(estimator) -> None:
    missing = np.where(np.arange(30) == 0, np.nan, Y)
    missing = np.column_stack([missing, missing]) if isinstance(estimator, mercer.Multilabel) else missing
    with pytest.raises(ValueError, match=r"Input y contains NaN|0 and 1 only"):
        estimator.fit(X, missing)


@pytest.mark.parametrize(
    "estimator", [*CLASSIFIERS, *REGRESSORS, *MULTIPLE, mercer.OneClassSVM(), mercer.Standardise()], ids=named
)
def test_flat_points_are_refused_in_training_and_prediction(estimator) -> None:
    targets = BOTH if isinstance(estimator, mercer.Multilabel) else Y
    with pytest.raises(ValueError, match=r"Expected 2D array, got 1D array instead(.|\n)*[Rr]eshape your data"):
        estimator.fit(X[:, 0], targets)
    estimator.fit(X, targets)
    answer = getattr(estimator, "predict", None) or estimator.transform
    with pytest.raises(ValueError, match=r"Expected 2D array, got 1D array instead(.|\n)*[Rr]eshape your data"):
        answer(X[0])


def test_targets_that_are_no_labels_are_refused_by_the_multilabel_machine() -> None:
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        mercer.Multilabel().fit(X, X[:, 0])
    with pytest.raises(InvalidInput, match="Unknown label type: several columns of y must hold 0 and 1 only"):
        mercer.Multilabel().fit(X, X[:, :2])
    with pytest.raises(InvalidInput, match="Complex data not supported"):
        mercer.Multilabel().fit(X, BOTH + 1j)
