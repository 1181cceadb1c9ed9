"""scikit-learn's common checks of support vector machines at parameters other than the default ones."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

# The checks of sample weights compare predictions to nine digits, so that the machines have to be solved that far.
MACHINES = [SVC(tol=1e-10), NuSVC(nu=0.2, tol=1e-8), SVR(tol=1e-8), NuSVR(tol=1e-10), OneClassSVM(tol=1e-10)]
VARIANTS = [
    SVC(kernel="precomputed"),
    SVR(kernel="precomputed"),
    SVC(multiclass="ovr", tol=1e-9),
    SVC(bias="penalised", tol=1e-9),
]


@pytest.mark.filterwarnings("ignore::mercer.errors.Advice")
@parametrize_with_checks(MACHINES + VARIANTS)
def test_scikit_learn_estimator_check(estimator, check):
    check(estimator)
