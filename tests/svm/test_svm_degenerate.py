"""Data at the edge: the right answer or a clear error (Schoelkopf and Smola 2002, section 10.1)."""

import numpy as np
import pytest

from mercer.errors import Advice, InvalidInput
from mercer.kernels import Gaussian, Linear
from mercer.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

random = np.random.default_rng(0)
X = random.normal(size=(30, 3))
labels = (X[:, 0] > 0).astype(int)
targets = np.sin(X[:, 0])


def test_duplicate_points_are_weights():
    once = SVC(kernel=Linear(), C=4.0, tol=1e-9).fit(X, labels)
    twice = SVC(kernel=Linear(), C=2.0, tol=1e-9).fit(np.vstack([X, X]), np.concatenate([labels, labels]))
    assert once.objective_ == pytest.approx(twice.objective_, rel=1e-7)
    np.testing.assert_allclose(once.coef_, twice.coef_, atol=1e-4)


def test_duplicates_with_opposite_labels_end_at_the_bound():
    both = np.vstack([X, X])
    machine = SVC(C=1.5).fit(both, np.repeat([0, 1], 30))
    np.testing.assert_allclose(machine.decision_function(X), 0.0, atol=1e-6)
    assert machine.objective_ == pytest.approx(60 * 1.5, rel=1e-6)


@pytest.mark.parametrize("machine", [SVC(), NuSVC()])
def test_one_class_is_refused(machine):
    with pytest.raises(InvalidInput, match="number of classes has to be greater than one; got 1 class"):
        machine.fit(X, np.zeros(30))


def test_two_points_are_separated_halfway():
    machine = SVC(kernel="linear", C=100.0, tol=1e-8).fit([[0.0], [4.0]], ["low", "high"])
    np.testing.assert_allclose(machine.decision_function([[2.0]]), 0.0, atol=1e-8)
    np.testing.assert_array_equal(machine.predict([[1.0], [3.0]]), ["low", "high"])
    np.testing.assert_allclose(np.abs(machine.coef_), [[0.5]], atol=1e-8)


def test_one_point():
    with pytest.raises(InvalidInput, match="greater than one"):
        SVC().fit([[1.0, 2.0]], [1])
    assert SVR().fit([[1.0, 2.0]], [3.0]).predict([[5.0, 5.0]])[0] == pytest.approx(3.0, abs=0.1 + 1e-9)
    one = OneClassSVM().fit([[1.0, 2.0]])
    assert one.predict([[9.0, 9.0]])[0] == -1
    assert one.decision_function([[1.0, 2.0]])[0] == pytest.approx(0.0, abs=1e-8)


def test_constant_kernel_gives_the_majority():
    y = np.repeat([0, 1], [20, 10])
    machine = SVC(kernel="precomputed").fit(np.ones((30, 30)), y)
    np.testing.assert_array_equal(machine.predict(np.ones((4, 30))), 0)


def test_constant_features():
    y = np.repeat([0, 1], [20, 10])
    machine = SVC().fit(np.ones((30, 2)), y)
    np.testing.assert_array_equal(machine.predict(np.ones((3, 2))), 0)
    assert SVR().fit(np.ones((30, 2)), targets).predict(np.ones((1, 2))).shape == (1,)


def test_tiny_price_puts_every_point_of_the_smaller_class_at_its_bound():
    y = np.repeat([0, 1], [18, 12])
    machine = SVC(C=1e-8).fit(X, y)
    assert machine.n_support_[1] == 12
    np.testing.assert_allclose(np.abs(machine.dual_coef_[0, -12:]), 1e-8, rtol=1e-6)
    np.testing.assert_array_equal(machine.predict(X), 0)


@pytest.mark.parametrize("C", [1e8, np.inf])
def test_huge_price_is_the_hard_margin(C):
    Z = X[np.abs(X[:, 0]) > 0.2]
    y = (Z[:, 0] > 0).astype(int)
    machine = SVC(kernel="linear", C=C, tol=1e-6).fit(Z, y)
    margins = machine.decision_function(Z) * np.where(y == 1, 1, -1)
    assert margins.min() == pytest.approx(1.0, abs=1e-4)


def test_everything_inside_the_tube_needs_no_support_vector():
    machine = SVR(epsilon=10.0).fit(X, targets)
    assert len(machine.support_) == 0
    assert machine.dual_coef_.shape == (1, 0)
    assert machine.objective_ == 0.0
    predicted = machine.predict(X)
    assert np.ptp(predicted) == 0.0
    assert np.abs(targets - predicted).max() <= 10.0


def test_tube_of_width_zero():
    machine = SVR(epsilon=0.0, C=1e4, kernel=Gaussian(sigma=1.0), tol=1e-8).fit(X, targets)
    np.testing.assert_allclose(machine.predict(X), targets, atol=1e-5)


def test_constant_targets():
    for machine in (SVR(), NuSVR()):
        np.testing.assert_allclose(machine.fit(X, np.full(30, 7.0)).predict(X), 7.0, atol=0.1 + 1e-6)


def test_singular_matrix_of_rank_one():
    v = X[:, :1]
    machine = SVC(kernel="precomputed", C=1.0, tol=1e-9).fit(v @ v.T, labels)
    linear = SVC(kernel="linear", C=1.0, tol=1e-9).fit(v, labels)
    assert machine.objective_ == pytest.approx(linear.objective_, rel=1e-8)


def test_nu_beyond_the_smaller_class_is_lowered_to_the_largest_feasible_one():
    y = np.repeat([0, 1], [27, 3])
    with pytest.warns(Advice, match=r"nu=0\.5 is infeasible.*\(0, 0\.2\]"):
        lowered = NuSVC(nu=0.5).fit(X, y)
    np.testing.assert_array_equal(NuSVC(nu=0.2).fit(X, y).dual_coef_, lowered.dual_coef_)


@pytest.mark.parametrize("nu", [1e-3, 1.0])
def test_nu_at_its_ends(nu):
    assert np.isfinite(NuSVR(nu=nu).fit(X, targets).predict(X)).all()
    machine = OneClassSVM(nu=nu).fit(X)
    assert (machine.decision_function(X) < -1e-3).mean() <= nu
    assert len(machine.support_) >= nu * 30 - 1e-9


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("machine", [SVC(), SVR(), OneClassSVM()])
def test_values_that_are_no_numbers_are_refused(machine, bad):
    Z = X.copy()
    Z[3, 1] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        machine.fit(Z, labels)


def test_kernel_function_with_a_wrong_shape_is_refused():
    with pytest.raises(InvalidInput, match=r"returned an array of shape \(1, 1\) for 30 and 30 points"):
        SVC(kernel=lambda a, b: np.ones((1, 1))).fit(X, labels)


def test_indefinite_kernel_trains_and_predicts():
    machine = SVC(kernel="sigmoid", gamma=2.0, coef0=-1.0).fit(X, labels)
    assert np.isfinite(machine.decision_function(X)).all()
