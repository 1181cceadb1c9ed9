"""Multinomial kernel logistic regression against scikit-learn and its own optimality conditions."""

import numpy as np
import pytest
from problems.multiclass_reference import gaussian, given, points
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.kernels import Gaussian, Linear
from mercer.problems.multinomial import MultinomialLogistic, softmax
from mercer.solvers import Monitor
from mercer.solvers.multiclass import multinomial

BIASES = ["none", "penalised", "free"]


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_coefficients_are_those_that_the_probabilities_ask_for(bias, C):
    X, y = points(60, 4, seed=1)
    K = gaussian(X)
    weights = np.random.default_rng(0).uniform(0.5, 2, 60)
    problem = MultinomialLogistic(given(K), y, C, weights, bias)
    found = multinomial.solve(problem, tol=1e-13)
    assert found.converged
    p = softmax(K @ found.coefficients + found.bias)
    expected = C * weights[:, None] * ((np.arange(4) == y[:, None]) - p)
    np.testing.assert_allclose(found.coefficients, expected, atol=2e-5 * C)
    assert np.abs(found.coefficients.sum(axis=1)).max() < 1e-9 * C
    if bias == "free":
        assert np.abs(expected.sum(axis=0)).max() < 1e-9 * C


@pytest.mark.parametrize("bias", BIASES)
def test_the_gap_is_the_difference_of_primal_and_dual_and_brackets_the_optimum(bias):
    X, y = points(50, 3, seed=2)
    problem = MultinomialLogistic(given(gaussian(X)), y, 2.0, bias=bias)
    optimum = multinomial.solve(problem, tol=1e-12).primal
    for steps in range(4):
        found = multinomial.solve(problem, tol=1e-12, max_iter=steps)
        assert found.dual <= optimum + 1e-9 <= found.primal + 2e-9
        f = problem.values(found.coefficients) + (found.bias if bias == "free" else 0.0)
        asked = problem.stationary(f)
        assert problem.dual(asked) == pytest.approx(found.dual, rel=1e-9)
        assert problem.primal(found.coefficients, found.bias) == pytest.approx(found.primal, rel=1e-12)
        certificate = problem.certificate(found.coefficients, bias=found.bias)
        assert certificate.gap == pytest.approx(found.gap, rel=1e-6, abs=1e-10)


def test_a_linear_kernel_is_scikit_learns_logistic_regression():
    X, y = points(150, 4, d=3, seed=3, noise=1.5)
    found = multinomial.solve(MultinomialLogistic(Gram(Linear(), X), y, 0.7), tol=1e-12)
    peer = LogisticRegression(C=0.7, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(found.coefficients.T @ X, peer.coef_, atol=1e-4)
    np.testing.assert_allclose(found.bias - found.bias.mean(), peer.intercept_ - peer.intercept_.mean(), atol=1e-4)


def test_two_classes_are_binary_logistic_regression_at_twice_the_C():
    X, y = points(60, 2, seed=4)
    K = gaussian(X)
    found = multinomial.solve(MultinomialLogistic(given(K), y, 1.5, bias="none"), tol=1e-13)
    g = K @ (found.coefficients[:, 1] - found.coefficients[:, 0])
    sign = 2.0 * y - 1

    def binary(c):
        f = K @ c
        slope = -3.0 * sign / (1 + np.exp(sign * f))
        return 0.5 * c @ f + 3.0 * np.logaddexp(0, -sign * f).sum(), K @ (c + slope)

    best = minimize(binary, np.zeros(60), jac=True, method="BFGS", options={"gtol": 1e-8})
    np.testing.assert_allclose(K @ best.x, g, atol=1e-4)


def test_precision_storage_and_start_change_the_way_but_not_the_machine():
    X, y = points(400, 5, seed=5, noise=1.0)
    exact = multinomial.solve(MultinomialLogistic(Gram(Gaussian(sigma=1.0), X), y, 3.0), tol=1e-10)
    for storage in ("dense", "streamed"):
        gram = Gram(Gaussian(sigma=1.0), X, precision="float32", storage=storage)
        found = multinomial.solve(MultinomialLogistic(gram, y, 3.0), tol=1e-6)
        assert found.converged
        assert found.primal == pytest.approx(exact.primal, rel=1e-5)
    again = multinomial.solve(MultinomialLogistic(Gram(Gaussian(sigma=1.0), X), y, 3.0), tol=1e-9, start=exact)
    assert again.iterations == 0


def test_interruption_keeps_the_best_so_far():
    X, y = points(200, 3, seed=6)
    problem = MultinomialLogistic(given(gaussian(X)), y, 100.0)
    optimum = multinomial.solve(problem, tol=1e-9).primal
    with Monitor(callback=lambda record: record.iteration == 2) as monitor:
        found = multinomial.solve(problem, tol=1e-12, monitor=monitor)
    assert found.stopped == "interrupted"
    assert found.dual <= optimum <= found.primal


def test_a_class_without_weight_has_no_free_bias():
    X, y = points(20, 3)
    with pytest.raises(InvalidInput, match="no finite free bias"):
        MultinomialLogistic(given(gaussian(X)), y, 1.0, (y != 2).astype(float))
    with pytest.raises(InvalidInput, match="finite coefficients"):
        multinomial.solve(MultinomialLogistic(given(gaussian(X)), y), start=np.zeros((3, 3)))


@pytest.mark.parametrize("bias", ["none", "free", "penalised"])
def test_the_values_beside_a_solution_are_those_of_the_kernel_alone(bias):
    X, y = points(60, 3, seed=4)
    K = gaussian(X)
    found = multinomial.solve(MultinomialLogistic(given(K), y, 2.0, bias=bias), tol=1e-8)
    assert np.abs(np.asarray(found.bias)).max() > 1e-3 or bias == "none"
    np.testing.assert_allclose(found.details["f0"], K @ found.coefficients, atol=1e-9)
