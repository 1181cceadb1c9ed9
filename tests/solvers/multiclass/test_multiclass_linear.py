"""Linear machines with one problem for all classes, against the kernel solvers and LIBLINEAR."""

import numpy as np
import pytest
import scipy.sparse as sp
from problems.multiclass_reference import points
from sklearn.svm import LinearSVC

from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.kernels import Gaussian, Linear
from mercer.problems.multiclass import BredensteinerBennett, CrammerSinger, LeeLinWahba, WestonWatkins
from mercer.problems.multinomial import MultinomialLogistic
from mercer.solvers import Monitor
from mercer.solvers.multiclass import decomposition
from mercer.solvers.multiclass import linear as multiclass_linear

MACHINES = {
    "ww": WestonWatkins,
    "cs": CrammerSinger,
    "llw": LeeLinWahba,
    "bb": BredensteinerBennett,
}


def linear(X):
    return Gram(Linear(), X, storage="streamed")


def text(n=300, d=400, k=12, seed=0):
    """Sparse points with k classes, rows of length one."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    X = sp.random(n, d, 0.02, random_state=1, format="lil")
    X[np.arange(n), y] = 0.5
    X = sp.csr_matrix(X)
    return sp.csr_matrix(X.multiply(1 / np.sqrt(X.multiply(X).sum(axis=1)))), y


@pytest.mark.parametrize("kind", list(MACHINES))
@pytest.mark.parametrize("bias", ["none", "penalised", "free"])
def test_it_is_the_machine_of_the_linear_kernel(kind, bias):
    problem = MACHINES[kind]
    if kind == "bb" and bias == "penalised":
        return
    X, y = points(120, 4, d=5, seed=1, noise=1.5)
    expected = decomposition.solve(problem(linear(X), y, 0.3, bias=bias), tol=1e-8)
    for form in (X, sp.csr_array(X)):
        found = multiclass_linear.solve(problem(linear(form), y, 0.3, bias=bias), tol=1e-8)
        assert found.converged
        assert found.primal == pytest.approx(expected.primal, rel=1e-7)
        np.testing.assert_allclose(found.details["weights"], found.coefficients.T @ X, atol=1e-9)
        np.testing.assert_allclose(found.details["weights"], expected.coefficients.T @ X, atol=1e-3)


def test_objective_is_no_worse_than_liblinears():
    X, y = text()
    found = multiclass_linear.solve(CrammerSinger(linear(X), y, 2.0), tol=1e-4)
    peer = LinearSVC(C=2.0, multi_class="crammer_singer", fit_intercept=False, tol=1e-5, max_iter=100_000).fit(X, y)
    W = peer.coef_
    losses = CrammerSinger(linear(X), y, 2.0).losses(np.asarray(X @ W.T))
    theirs = 0.5 * np.sum(W * W) + 2.0 * losses.sum()
    assert found.primal <= theirs * (1 + 1e-4)
    assert found.dual <= theirs
    np.testing.assert_allclose(found.details["weights"], W, atol=0.02)


def test_large_weights_in_single_precision_give_the_same_machine(monkeypatch):
    X, y = text(seed=2)
    stated = CrammerSinger(linear(X), y, 3.0)
    double = multiclass_linear.solve(stated, tol=1e-5)
    monkeypatch.setattr(multiclass_linear, "LARGE_WEIGHTS", 0)
    single = multiclass_linear.solve(stated, tol=1e-5)
    assert single.relative_gap <= 1e-5
    assert single.primal == pytest.approx(double.primal, rel=1e-5)
    np.testing.assert_allclose(single.details["weights"], single.coefficients.T @ X, atol=1e-12)


def test_same_seed_gives_the_same_bits_and_another_the_same_value():
    X, y = text(seed=3)
    stated = CrammerSinger(linear(X), y, 1.0)
    first, second = (multiclass_linear.solve(stated, tol=1e-5, seed=5) for _ in range(2))
    assert np.array_equal(first.variables, second.variables)
    other = multiclass_linear.solve(stated, tol=1e-5, seed=6)
    assert other.primal == pytest.approx(first.primal, rel=2e-5)


def test_warm_start_and_limits():
    X, y = text(seed=4)
    before = multiclass_linear.solve(CrammerSinger(linear(X), y, 1.0), tol=1e-6)
    stated = CrammerSinger(linear(X), y, 1.05)
    cold = multiclass_linear.solve(stated, tol=1e-6)
    warm = multiclass_linear.solve(stated, tol=1e-6, start=before)
    assert warm.primal == pytest.approx(cold.primal, rel=1e-5)
    assert warm.iterations < cold.iterations
    short = multiclass_linear.solve(stated, tol=1e-9, max_iter=2)
    assert short.stopped == "iterations"
    assert short.dual <= cold.primal <= short.primal * (1 + 1e-6)
    with Monitor(callback=lambda record: True) as monitor:
        stopped = multiclass_linear.solve(stated, tol=1e-12, monitor=monitor)
    assert stopped.stopped == "interrupted"
    assert stopped.dual <= cold.primal


def test_with_a_free_bias_the_origin_does_not_matter():
    X, y = points(120, 3, d=4, seed=16)
    near, far = (
        multiclass_linear.solve(CrammerSinger(linear(X + shift), y, 0.5, bias="free"), tol=1e-6) for shift in (0, 100)
    )
    assert far.converged
    assert far.primal == pytest.approx(near.primal, rel=1e-6)
    there = (X + 100) @ far.details["weights"].T + far.bias
    np.testing.assert_allclose(there, X @ near.details["weights"].T + near.bias, atol=2e-3)


def test_a_point_of_zeros_costs_its_whole_loss():
    X = np.vstack([np.eye(3), np.zeros((1, 3))])
    y = np.array([0, 1, 2, 1])
    for kind, loss in (("cs", 1.0), ("ww", 4.0), ("llw", 1.0)):
        stated = MACHINES[kind](linear(X), y, 5.0)
        found = multiclass_linear.solve(stated, tol=1e-8)
        assert found.converged
        f = X @ found.details["weights"].T
        assert stated.losses(f)[3] == pytest.approx(loss)


def test_a_kernel_that_is_not_linear_is_refused():
    X, y = points(20, 3)
    with pytest.raises(InvalidInput, match="the kernel is not linear"):
        multiclass_linear.solve(CrammerSinger(Gram(Gaussian(sigma=1.0), X), y))
    assert not multiclass_linear.accepts(MultinomialLogistic(linear(X), y))
