"""scikit-learn's common checks of the machines with one problem for all classes."""

import pytest
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
            "check_decision_proba_consistency": "the matrix of this check makes log-odds above 25, whose probabilities "
            "are equal to the ten digits that are compared while the log-odds are not"
        }
    if isinstance(estimator, CrammerSingerSVC) and estimator.kernel == "precomputed":
        return {
            "check_class_weight_classifiers": "the matrix of this check is that of a narrow kernel: without a bias the "
            "heavy class cannot win far from its own points",
        }
    return {}


@pytest.mark.filterwarnings("ignore::mercer.errors.Advice")
@parametrize_with_checks(MACHINES + VARIANTS, expected_failed_checks=expected)
def test_scikit_learn_estimator_check(estimator, check):
    check(estimator)
