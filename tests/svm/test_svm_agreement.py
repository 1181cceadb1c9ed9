"""The machines against independent references: LIBSVM through scikit-learn, and the interior point."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine, make_blobs
from sklearn.preprocessing import StandardScaler

from mercer.gram import Gram
from mercer.losses import EpsilonInsensitive, Hinge
from mercer.problems import (
    NuClassification,
    NuRegression,
    OneClass,
    RegularisedRisk,
)
from mercer.solvers.quadratic import interior_point
from mercer.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

KERNELS = [
    {"kernel": "rbf"},
    {"kernel": "linear"},
    {"kernel": "poly", "degree": 2, "coef0": 1.0},
    {"kernel": "rbf", "gamma": "auto", "C": 10.0},
]


def scaled(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def assert_same_decisions(ours, theirs, X, visible=1e-3):
    """Labels agree wherever no decision value of LIBSVM is closer to zero than `visible`."""
    values = theirs.decision_function(X)
    clear = (np.abs(values) > visible) if values.ndim == 1 else (np.abs(values) > visible).all(axis=1)
    np.testing.assert_array_equal(ours.predict(X)[clear], theirs.predict(X)[clear])
    np.testing.assert_allclose(ours.decision_function(X), values, atol=2e-2 * max(1.0, np.abs(values).max()))


@pytest.mark.parametrize("parameters", KERNELS)
@pytest.mark.parametrize("load", [load_breast_cancer, load_iris, load_wine])
def test_svc_decides_as_libsvm(load, parameters):
    X, y = scaled(load)
    shape = {"decision_function_shape": "ovo", "tol": 1e-4}
    ours = SVC(**parameters, **shape).fit(X, y)
    theirs = sklearn.svm.SVC(**parameters, **shape).fit(X, y)
    assert_same_decisions(ours, theirs, X)
    assert abs(len(ours.support_) - len(theirs.support_)) <= 0.03 * len(theirs.support_) + 1
    assert ours.n_support_.sum() == len(ours.support_)


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_nusvc_decides_as_libsvm(load):
    X, y = scaled(load)
    ours = NuSVC(nu=0.2, decision_function_shape="ovo", tol=1e-5).fit(X, y)
    theirs = sklearn.svm.NuSVC(nu=0.2, decision_function_shape="ovo", tol=1e-5).fit(X, y)
    assert_same_decisions(ours, theirs, X)


@pytest.mark.parametrize("name, parameters", [("SVR", {"C": 5.0, "epsilon": 0.1}), ("NuSVR", {"C": 5.0, "nu": 0.4})])
def test_regression_predicts_as_libsvm(name, parameters):
    X, y = scaled(load_diabetes)
    y = (y - y.mean()) / y.std()
    ours = getattr(__import__("mercer.svm").svm, name)(tol=1e-5, **parameters).fit(X, y)
    theirs = getattr(sklearn.svm, name)(tol=1e-5, **parameters).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=2e-3)


def test_one_class_decides_as_libsvm():
    X, _ = scaled(load_wine)
    ours = OneClassSVM(nu=0.2, tol=1e-6).fit(X)
    theirs = sklearn.svm.OneClassSVM(nu=0.2, tol=1e-6).fit(X)
    clear = np.abs(theirs.decision_function(X)) > 1e-3
    np.testing.assert_array_equal(ours.predict(X)[clear], theirs.predict(X)[clear])
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), atol=1e-2)
    np.testing.assert_allclose(ours.offset_, theirs.offset_, atol=1e-3)


def problems(gram, X, y):
    signs = np.where(y == 0, 1.0, -1.0)
    t = X[:, 0] + 0.3 * np.sin(7 * X[:, 1])
    yield SVC(C=2.0), y, RegularisedRisk(gram, signs, Hinge(), 2.0)
    yield SVC(bias="none"), y, RegularisedRisk(gram, signs, Hinge(), 1.0, bias="none")
    yield SVC(bias="penalised"), y, RegularisedRisk(gram, signs, Hinge(), 1.0, bias="penalised")
    yield NuSVC(nu=0.3), y, NuClassification(gram, signs, 0.3)
    yield SVR(C=2.0, epsilon=0.05), t, RegularisedRisk(gram, t, EpsilonInsensitive(0.05), 2.0)
    yield SVR(bias="none"), t, RegularisedRisk(gram, t, EpsilonInsensitive(0.1), 1.0, bias="none")
    yield NuSVR(nu=0.3), t, NuRegression(gram, t, 1.0, 0.3)
    yield OneClassSVM(nu=0.3), t, OneClass(gram, 0.3)


def test_objective_is_that_of_the_interior_point():
    X, y = scaled(load_breast_cancer)
    X, y = X[:150], y[:150]
    gram = Gram(SVC().fit(X, y).kernel_, X)
    for machine, target, problem in problems(gram, X, y):
        machine.set_params(tol=1e-6).fit(X, target)
        best = interior_point.solve(problem, tol=1e-9)
        assert machine.objective_ == pytest.approx(best.primal, rel=1e-5)
        assert machine.dual_objective_ == pytest.approx(best.dual, rel=1e-5)
        assert 0.0 <= machine.gap_ <= 1e-4 * abs(machine.objective_)
        assert machine.stopped_ == "converged"
        assert machine.fit_status_ == 0


def test_expansion_of_many_classes_is_libsvms():
    X, y = make_blobs(120, centers=6, n_features=3, cluster_std=2.5, random_state=3)
    ours = SVC(tol=1e-9, decision_function_shape="ovo").fit(X, y)
    theirs = sklearn.svm.SVC(tol=1e-9, decision_function_shape="ovo").fit(X, y)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)
    for shape in ("ovo", "ovr"):
        ours.decision_function_shape = theirs.decision_function_shape = shape
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_one_against_the_rest_is_k_binary_machines():
    X, y = scaled(load_wine)
    ours = SVC(multiclass="ovr", tol=1e-6).fit(X, y)
    for c in range(3):
        binary = sklearn.svm.SVC(tol=1e-6).fit(X, y == c)
        np.testing.assert_allclose(ours.decision_function(X)[:, c], binary.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(ours.predict(X), ours.decision_function(X).argmax(axis=1))


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("size", [60, 1200])
def test_sparse_data_of_either_index_type_give_the_dense_machine(index, size):
    random = np.random.default_rng(0)
    dense = random.normal(size=(size, 2000 if size > 1000 else 30)) * (random.random((size, 1)) < 0.9)
    dense *= random.random(dense.shape) < 0.02 if size > 1000 else 1.0
    y = (dense[:, :5].sum(axis=1) > 0).astype(int)
    X = sp.csr_array(dense)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    ours = SVC(gamma=0.02, tol=1e-5).fit(X, y)
    reference = SVC(gamma=0.02, tol=1e-5).fit(dense, y)
    assert sp.issparse(ours.support_vectors_)
    np.testing.assert_allclose(ours.decision_function(X), reference.decision_function(dense), atol=1e-4)
    np.testing.assert_allclose(ours.decision_function(dense), ours.decision_function(X), atol=2e-5)


def test_predictions_in_single_precision_are_those_in_double():
    random = np.random.default_rng(1)
    X = random.normal(size=(1500, 10))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] > 0).astype(int)
    machine = SVC(C=10.0).fit(X, y)
    points = random.normal(size=(4000, 10))
    assert len(points) * len(machine.support_) > 1 << 20
    fast = machine.decision_function(points)
    exact = machine.set_params(precision="float64").decision_function(points)
    np.testing.assert_allclose(fast, exact, atol=1e-4)


@pytest.mark.parametrize(("rows", "cost"), [(400, 100.0), (2500, 1.0), (2500, 100.0), (7000, 1.0)])
def test_a_linear_kernel_on_many_points_is_trained_from_the_points(rows, cost) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 6))
    y = X @ rng.normal(size=6) + 2.0 * rng.normal(size=rows) > 0.3
    signs = np.where(y, 1.0, -1.0)
    ours = SVC(kernel="linear", C=cost).fit(X, y)
    assert ours.stopped_ == "converged"
    assert ours.gap_ <= 1e-4 * ours.objective_
    if cost > 1.0 or rows > 2500:
        assert ours.solver_.startswith("interior point")
        # Few points are strictly inside their bounds: no more than features and the bias, where none tie.
        sizes = np.abs(ours.dual_coef_[0])
        assert np.count_nonzero((sizes > 0.0) & (sizes < cost)) <= 7
    primal = 0.5 * ours.coef_[0] @ ours.coef_[0]
    primal += cost * np.maximum(0.0, 1.0 - signs * ours.decision_function(X)).sum()
    assert primal == pytest.approx(ours.objective_, rel=1e-5)
    linear = sklearn.svm.LinearSVC(C=cost, loss="hinge", intercept_scaling=100.0, max_iter=2000, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        linear.fit(X, y)
    w, losses = linear.coef_[0], np.maximum(0.0, 1.0 - signs * linear.decision_function(X)).sum()
    assert ours.dual_objective_ <= 0.5 * w @ w + cost * losses
    assert ours.objective_ <= (0.5 * w @ w + cost * losses) * (1.0 + 1e-4)


@pytest.mark.parametrize("cost", [1.0, 100.0])
def test_a_linear_machine_trained_from_its_points_meets_the_tolerance_it_was_given(cost) -> None:
    # Variables far from their bounds once were put on them where the gap hardly showed it: violations of 0.07.
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=(9000, 4)), rng.random((9000, 12)) < 0.01])
    X[:, 4:] /= X[:, 4:].std(axis=0)
    y = X[:, 0] + 0.3 * X[:, 5] + rng.normal(size=9000) > 0.0
    machine = SVC(kernel="linear", C=cost).fit(X, y)
    assert machine.solver_.startswith("interior point")
    signs, alpha = np.where(y, 1.0, -1.0), np.zeros(9000)
    alpha[machine.support_] = np.abs(machine.dual_coef_[0])
    slope = signs * (signs * (X @ machine.coef_[0]) - 1.0)
    rises = np.where(signs > 0.0, alpha < cost, alpha > 0.0)
    falls = np.where(signs > 0.0, alpha > 0.0, alpha < cost)
    assert slope[falls].max() - slope[rises].min() <= 1.1e-3


@pytest.mark.parametrize("cost", [1.0, 100.0])
def test_regression_with_a_linear_kernel_has_the_objective_of_the_general_program(cost) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1600, 5))
    y = X @ rng.normal(size=5) + rng.normal(size=1600)
    ours = SVR(kernel="linear", C=cost).fit(X, y)
    exact = interior_point.solve(RegularisedRisk(Gram(ours.kernel_, X), y, EpsilonInsensitive(0.1), cost))
    assert ours.dual_objective_ <= exact.primal * (1.0 + 1e-9)
    assert ours.objective_ == pytest.approx(exact.primal, rel=1e-4)
    assert ours.support_.size == pytest.approx(np.count_nonzero(np.abs(exact.coefficients) > 1e-6 * cost), abs=8)
