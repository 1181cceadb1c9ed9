"""scikit-learn's common checks of the machines with one problem for all classes."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer.multiclass.single_problem import (
    BredensteinerBennettSVC,
    CrammerSingerSVC,
    KernelLogistic,
    LeeLinWahbaSVC,
    WestonWatkinsSVC,
)

# The checks of sample weights compare predictions to many digits, so that the machines have to be solved that far.
MACHINES = [
    CrammerSingerSVC(tol=1e-9),
    WestonWatkinsSVC(tol=1e-9),
    LeeLinWahbaSVC(tol=1e-9),
    BredensteinerBennettSVC(tol=1e-9),
    KernelLogistic(tol=1e-12),
]
VARIANTS = [CrammerSingerSVC(kernel="precomputed"), KernelLogistic(kernel="precomputed")]


def expected(estimator):
    if isinstance(estimator, KernelLogistic) and estimator.kernel == "precomputed":
        return {
            "check_decision_proba_consistency": "this check hands over 80 points of 2 features where a kernel matrix "
            "belongs; the test below does what it means to"
        }
    if isinstance(estimator, CrammerSingerSVC) and estimator.kernel == "precomputed":
        return {
            "check_class_weight_classifiers": "the kernel of this check is so narrow that most of its values at new "
            "points are below 1e-6: without a bias no class wins there",
        }
    return {}


@pytest.mark.filterwarnings("ignore::mercer.errors.Advice")
@parametrize_with_checks(MACHINES + VARIANTS, expected_failed_checks=expected, xfail_strict=True)
def test_scikit_learn_estimator_check(estimator, check):
    check(estimator)


def test_on_a_given_matrix_probabilities_rise_with_decision_values() -> None:
    X, y = make_blobs(n_samples=100, random_state=0, centers=[(2, 2), (4, 4)], cluster_std=1.0)
    K = rbf_kernel(X)
    machine = KernelLogistic(kernel="precomputed").fit(K[:80, :80], y[:80])
    values, chances = machine.decision_function(K[80:, :80]), machine.predict_proba(K[80:, :80])[:, 1]
    assert np.array_equal(np.argsort(values), np.argsort(chances))


@pytest.mark.filterwarnings("ignore::mercer.errors.Advice")
def test_with_a_bias_the_heavy_class_wins_where_a_narrow_kernel_sees_nothing() -> None:
    """What the check of class weights asks for; without a bias the function is zero there, and no class can win."""
    X, y = make_blobs(centers=3, random_state=0, cluster_std=20)
    K = rbf_kernel(X[50:], X[:50])
    weights = {0: 1000.0, 1: 1e-4, 2: 1e-4}
    machine = CrammerSingerSVC(kernel="precomputed", bias="free", class_weight=weights)
    assert (machine.fit(rbf_kernel(X[:50]), y[:50]).predict(K) == 0).all()
    assert np.median(K.max(axis=1)) < 1e-5
