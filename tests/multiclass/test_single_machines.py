"""The machines with one problem for all classes as estimators: what they say, and what they do with awkward data."""

import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer.data import sample
from mercer.errors import NotConverged
from mercer.kernels import Gaussian, Linear
from mercer.multiclass.single_problem import (
    BredensteinerBennettSVC,
    CrammerSingerSVC,
    KernelLogistic,
    LeeLinWahbaSVC,
    WestonWatkinsSVC,
)
from mercer.svm import SVC

MACHINES = [CrammerSingerSVC, WestonWatkinsSVC, LeeLinWahbaSVC, BredensteinerBennettSVC, KernelLogistic]


@pytest.fixture(scope="module")
def satimage():
    data = sample("satimage", "test")
    X = StandardScaler().fit_transform(np.asarray(data.X.toarray() if sp.issparse(data.X) else data.X))
    return X[:500], data.y[:500], X[500:900], data.y[500:900]


@pytest.mark.parametrize("machine", MACHINES)
def test_it_learns_says_how_well_and_carries_its_certificate(machine, satimage):
    X, y, Z, t = satimage
    fit = machine(C=10.0).fit(X, y)
    k = len(np.unique(y))
    assert fit.score(Z, t) > SVC(C=10.0).fit(X, y).score(Z, t) - 0.05
    assert fit.decision_function(Z).shape == (400, k)
    assert fit.gap_ == pytest.approx(fit.objective_ - fit.dual_objective_)
    assert 0 <= fit.gap_ <= fit.tol * fit.objective_ * 1.001
    assert fit.stopped_ == "converged"
    assert fit.n_iter_ == fit.solution_.iterations > 0
    assert fit.dual_coef_.shape == (k, len(fit.support_))
    assert fit.n_support_.sum() == len(fit.support_)
    assert np.abs(fit.dual_coef_.sum(axis=0)).max() < 1e-9
    with pytest.raises(AttributeError, match="linear kernel"):
        _ = fit.coef_


@pytest.mark.parametrize("machine", MACHINES)
def test_kernel_names_objects_functions_and_matrices_are_one_machine(machine, satimage):
    X, y, Z, _ = satimage
    X, y, Z = X[:150], y[:150], Z[:50]
    kernel = Gaussian(sigma=np.sqrt(1 / (2 * 0.05)))
    expected = machine(gamma=0.05, tol=1e-8).fit(X, y).decision_function(Z)
    for other, points, places in (
        (kernel, X, Z),
        (lambda A, B: kernel(A, B), X, Z),
        ("precomputed", kernel(X), kernel(Z, X)),
        (kernel, sp.csr_array(X), sp.csr_array(Z)),
    ):
        fit = machine(kernel=other, tol=1e-8).fit(points, y)
        np.testing.assert_allclose(fit.decision_function(places), expected, atol=2e-3)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("bias", ["none", "free"])
def test_a_linear_kernel_has_weight_vectors(machine, bias, satimage):
    X, y, Z, _ = satimage
    fit = machine(kernel="linear", C=0.01, bias=bias, tol=1e-5).fit(X, y)
    np.testing.assert_allclose(Z @ fit.coef_.T + fit.intercept_, fit.decision_function(Z), atol=1e-9)
    sparse = clone(fit).fit(sp.csr_matrix(X), y)
    assert sparse.objective_ == pytest.approx(fit.objective_, rel=2e-5)
    wide = machine(kernel=Linear(), C=0.01, bias=bias, tol=1e-5).fit(X[:20], y[:20])
    np.testing.assert_allclose(wide.coef_, wide.dual_coef_ @ wide.support_vectors_, atol=1e-9)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_weights_count_as_copies_and_zero_leaves_out(machine, kernel, satimage):
    X, y, Z, _ = satimage
    X, y, Z = X[:120], y[:120], Z[:40]
    counts = np.random.default_rng(0).integers(0, 3, 120)
    tol = 1e-9 if kernel == "rbf" else 1e-5
    options = {"kernel": kernel, "gamma": 0.05, "C": 0.1 if kernel == "linear" else 1.0, "tol": tol}
    weighted = machine(**options).fit(X, y, sample_weight=counts)
    copied = machine(**options).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert weighted.stopped_ == copied.stopped_ == "converged"
    assert weighted.objective_ == pytest.approx(copied.objective_, rel=2 * tol)
    if kernel == "rbf":
        np.testing.assert_allclose(weighted.decision_function(Z), copied.decision_function(Z), atol=5e-3)
    balanced = machine(**options, class_weight="balanced").fit(X, y)
    by_hand = 120 / (len(np.unique(y)) * np.bincount(np.searchsorted(np.unique(y), y)))
    same = machine(**options).fit(X, y, by_hand[np.searchsorted(np.unique(y), y)])
    assert balanced.objective_ == pytest.approx(same.objective_, rel=2 * tol)


@pytest.mark.parametrize("machine", MACHINES)
def test_labels_may_be_anything_and_in_any_order(machine, satimage):
    X, y, Z, _ = satimage
    X, y = X[:150], y[:150]
    names = np.array(["zinc", "iron", "lead", "tin", "gold", "copper", "nickel", "silver"])[
        np.unique(y, return_inverse=True)[1]
    ]
    by_name, by_number = machine(tol=1e-8).fit(X, names), machine(tol=1e-8).fit(X, y)
    order = [list(by_name.classes_).index(names[np.flatnonzero(y == label)[0]]) for label in by_number.classes_]
    np.testing.assert_allclose(by_name.decision_function(Z)[:, order], by_number.decision_function(Z), atol=2e-3)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_class_with_one_point_is_learned(machine, kernel):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 4, [[-6.0, 6.0]]])
    y = np.array([0] * 20 + [1] * 20 + [2])
    fit = machine(kernel=kernel, C=100.0, bias="free").fit(X, y)
    assert fit.predict([[-6.0, 6.0]]) == [2]
    assert fit.score(X, y) > 0.9


@pytest.mark.parametrize("machine", MACHINES)
def test_one_class_is_refused(machine):
    with pytest.raises(ValueError, match="greater than one; got 1 class"):
        machine().fit(np.eye(3), np.zeros(3))
    with pytest.raises(ValueError, match="greater than one"):
        machine().fit(np.eye(4), [0, 1, 1, 1], sample_weight=[0, 1, 1, 1])


def test_two_classes_give_one_decision_value():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=60) > 0, "yes", "no")
    for machine in MACHINES:
        fit = machine().fit(X, y)
        values = fit.decision_function(X)
        assert values.shape == (60,)
        assert (fit.predict(X) == np.where(values > 0, "yes", "no")).all()


def test_of_classes_that_tie_up_to_rounding_the_first_wins_whatever_is_predicted_beside_it():
    """The matrix is the identity: each point scores its own class, and a row of zeros none of them."""
    machine = CrammerSingerSVC(kernel="precomputed", bias="none").fit(np.eye(6), [0, 1, 2, 0, 1, 2])
    scores = machine.decision_function(np.eye(6))
    rows = np.zeros((3, 6))
    rows[0, [0, 1]] = 1.0  # classes 0 and 1 alike
    rows[1, [1, 2]] = 1.0  # classes 1 and 2 alike, and a hair more of 2
    rows[1, 2] += 1e-15
    rows[2, [1, 2]] = 1.0, 1.001  # this is a difference
    assert np.all(np.argmax(scores, axis=1) == [0, 1, 2, 0, 1, 2])
    np.testing.assert_array_equal(machine.predict(rows), [0, 1, 2])
    np.testing.assert_array_equal([machine.predict(row[None])[0] for row in rows], [0, 1, 2])


def test_a_thousand_classes_on_the_linear_kernel():
    k = 1000
    y = np.repeat(np.arange(k), 2)
    X = sp.csr_matrix((np.ones(2 * k), (np.arange(2 * k), y)), shape=(2 * k, k))
    fit = CrammerSingerSVC(10.0, kernel="linear", tol=1e-2).fit(X, y)
    assert fit.score(X, y) == 1.0
    assert fit.coef_.shape == (k, k)


def test_probabilities_of_logistic_regression_sum_to_one_and_agree(satimage):
    X, y, Z, t = satimage
    fit = KernelLogistic(C=10.0).fit(X, y)
    p = fit.predict_proba(Z)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.log(p), fit.predict_log_proba(Z), atol=1e-9)
    assert (fit.classes_[p.argmax(axis=1)] == fit.predict(Z)).all()
    loss = -np.log(p[np.arange(len(t)), np.searchsorted(fit.classes_, t)]).mean()
    assert loss < 0.6


@pytest.mark.parametrize("machine", MACHINES)
def test_a_time_limit_keeps_the_best_so_far_and_says_so(machine, satimage):
    X, y, Z, _ = satimage
    began = time.perf_counter()
    with pytest.warns(NotConverged, match="time limit"):
        fit = machine(C=1e4, tol=1e-15, max_time=0.05).fit(X, y)
    assert time.perf_counter() - began < 5
    assert fit.stopped_ == "time"
    assert fit.predict(Z).shape == (400,)
    assert fit.gap_ > 0


@pytest.mark.parametrize("machine", MACHINES)
def test_too_few_iterations_warn(machine, satimage):
    X, y, _, _ = satimage
    with pytest.warns(NotConverged, match="max_iter=1"):
        fit = machine(max_iter=1, tol=1e-9).fit(X, y)
    assert fit.n_iter_ == 1


@pytest.mark.parametrize("machine", MACHINES)
def test_it_works_in_pipelines_and_cross_validation(machine, satimage):
    X, y, _, _ = satimage
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotConverged)
        scores = cross_val_score(make_pipeline(StandardScaler(), machine(C=5.0)), X, y, cv=3)
    assert scores.mean() > 0.75
