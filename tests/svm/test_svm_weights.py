"""Weights are honest: m is m copies of the point, zero is leaving it out, for all five machines."""

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_regression

from mercer.errors import InvalidInput
from mercer.kernels import Gaussian
from mercer.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

TIGHT = {"tol": 1e-10}


def classes(n, k=2, seed=0):
    return make_classification(
        n, 4, n_informative=3, n_redundant=0, n_classes=k, class_sep=0.7, flip_y=0.1, random_state=seed
    )


def targets(n, seed=0):
    X, y = make_regression(n, 4, noise=5.0, random_state=seed)
    return X, y / y.std()


CASES = {
    "SVC": (SVC(C=2.0, **TIGHT), classes(40)),
    "SVC of 3 classes": (SVC(C=0.7, **TIGHT), classes(45, 3)),
    "SVC balanced": (SVC(class_weight="balanced", **TIGHT), classes(40)),
    "SVC one against the rest": (SVC(multiclass="ovr", **TIGHT), classes(45, 3)),
    "SVC without bias": (SVC(bias="none", **TIGHT), classes(40)),
    "SVC with penalised bias": (SVC(bias="penalised", **TIGHT), classes(40)),
    "NuSVC": (NuSVC(nu=0.3, **TIGHT), classes(40)),
    "NuSVC of 3 classes": (NuSVC(nu=0.25, **TIGHT), classes(45, 3)),
    "SVR": (SVR(C=3.0, epsilon=0.2, **TIGHT), targets(40)),
    "NuSVR": (NuSVR(C=3.0, nu=0.4, **TIGHT), targets(40)),
    "OneClassSVM": (OneClassSVM(nu=0.3, **TIGHT), targets(40)),
}


@pytest.mark.parametrize("name", CASES)
def test_whole_weights_equal_repeated_points_and_zero_equals_leaving_out(name):
    machine, (X, y) = CASES[name]
    weights = np.random.default_rng(1).integers(0, 4, len(X))
    weighted = machine.fit(X, y, sample_weight=weights)
    objective, values = weighted.objective_, weighted._values(X)
    repeated = machine.fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert objective == pytest.approx(repeated.objective_, rel=1e-8)
    np.testing.assert_allclose(values, repeated._values(X), atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_equal_weights_scale_the_problem_only(name):
    machine, (X, y) = CASES[name]
    plain = machine.fit(X, y).objective_
    assert machine.fit(X, y, sample_weight=np.ones(len(X))).objective_ == pytest.approx(plain, rel=1e-8)


def test_class_weights_multiply_sample_weights():
    X, y = classes(40)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, 40)
    kernel = Gaussian(sigma=1.5)
    both = SVC(kernel=kernel, class_weight={0: 2.0, 1: 0.5}, **TIGHT).fit(X, y, weights)
    product = SVC(kernel=kernel, **TIGHT).fit(X, y, weights * np.where(y == 0, 2.0, 0.5))
    assert both.objective_ == pytest.approx(product.objective_, rel=1e-9)
    np.testing.assert_array_equal(both.class_weight_, [2.0, 0.5])


def test_support_refers_to_the_rows_handed_in():
    X, y = classes(40)
    weights = np.ones(40)
    weights[::3] = 0.0
    machine = SVC().fit(X, y, weights)
    assert not set(machine.support_) & set(range(0, 40, 3))
    np.testing.assert_array_equal(machine.support_vectors_, X[machine.support_])
    assert machine.shape_fit_ == (40, 4)


def test_a_class_whose_points_all_weigh_nothing_does_not_exist():
    X, y = classes(45, 3)
    machine = SVC().fit(X, y, sample_weight=(y != 1).astype(float))
    np.testing.assert_array_equal(machine.classes_, [0, 2])
    left_out = SVC().fit(X[y != 1], y[y != 1])
    np.testing.assert_array_equal(machine.predict(X), left_out.predict(X))


@pytest.mark.parametrize("machine", [SVC(), NuSVC(), SVR(), NuSVR(), OneClassSVM()])
def test_negative_weights_are_refused_by_name(machine):
    X, y = classes(20)
    weights = np.ones(20)
    weights[7] = -0.5
    with pytest.raises(InvalidInput, match=r"sample_weight\[7\] = -0\.5 is negative"):
        machine.fit(X, y, sample_weight=weights)
