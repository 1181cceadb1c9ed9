"""Linear-programming machines: the optimum, its certificate at any point, and what the norms do."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from mercer.errors import BudgetTooSmall, InvalidInput
from mercer.gram import Gram
from mercer.kernels import Gaussian, Precomputed
from mercer.losses import EpsilonInsensitive, Hinge, SquaredHinge
from mercer.problems.linear_program import LinearProgram
from mercer.solvers.linear_programming import accepts, solve
from tests.problems.zoo import gaussian


def drawn(seed, norm="l1", labels=True, n=25):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    K = gaussian(X)
    y = np.where(X[:, 0] + 0.4 * rng.normal(size=n) > 0, 1.0, -1.0) if labels else np.sin(2 * X[:, 0])
    if labels:
        y[:2] = 1.0, -1.0
    weights = rng.integers(0, 3, size=n).astype(float)
    weights[:4] = 1.0
    loss = Hinge() if labels else EpsilonInsensitive(0.1)
    return LinearProgram(Gram(Precomputed(), K), y, loss, 2.0, weights, norm), K


def dual_optimum(problem, K):
    """The dual, stated by itself: max y'd - epsilon |d|, ||K d||_* <= 1, sum d = 0, and the box."""
    n = problem.n
    epsilon = getattr(problem.loss, "epsilon", 0.0)
    cost = np.concatenate((-problem.y + epsilon, problem.y + epsilon))  # d = p - m
    both = np.hstack((K, -K))
    box = [(0, high) for high in problem.upper] + [(0, -low) for low in problem.lower]
    equal = np.concatenate((np.ones(n), -np.ones(n)))[None]
    if problem.norm == "l1":
        found = linprog(cost, np.vstack((both, -both)), np.ones(2 * n), equal, [0.0], box)
    else:  # |K d|_j <= t_j, sum t <= 1
        eye = np.eye(n)
        A = np.vstack((
            np.hstack((both, -eye)), np.hstack((-both, -eye)), np.concatenate((np.zeros(2 * n), np.ones(n)))[None],
        ))  # fmt: skip
        right = np.concatenate((np.zeros(2 * n), [1.0]))
        equal = np.hstack((equal, np.zeros((1, n))))
        found = linprog(np.concatenate((cost, np.zeros(n))), A, right, equal, [0.0], box + [(0, None)] * n)
    return -found.fun


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_primal_and_dual_meet_the_optimum_of_the_dual_stated_by_itself(norm, labels):
    for seed in range(4):
        problem, K = drawn(seed, norm, labels)
        found = solve(problem)
        assert found.converged
        assert found.relative_gap <= 1e-6
        value = dual_optimum(problem, K)
        assert found.dual <= value * (1 + 1e-9)
        assert found.primal >= value * (1 - 1e-9)
        assert found.primal == pytest.approx(value, rel=1e-6)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), norm=st.sampled_from(["l1", "linf"]), labels=st.booleans())
def test_every_pair_of_points_brackets_the_optimum(seed, norm, labels):
    """Problem 10.1: the gap is valid for any coefficients and any multipliers that are made feasible."""
    problem, K = drawn(seed, norm, labels, n=12)
    rng = np.random.default_rng(seed)
    delta = problem.feasible(5.0 * rng.normal(size=12))
    assert problem.dual_size_of(K @ delta) <= 1.0
    assert abs(delta.sum()) <= 1e-9
    assert (delta >= problem.lower).all()
    assert (delta <= problem.upper).all()
    certificate = problem.certificate(rng.normal(size=12), float(rng.normal()), delta)
    value = dual_optimum(problem, K)
    assert certificate.dual <= value + 1e-9 * max(1.0, abs(value))
    assert certificate.primal >= value - 1e-9 * max(1.0, abs(value))


def test_the_sum_of_absolute_values_leaves_few_coefficients_and_the_largest_makes_them_equal():
    problem, _ = drawn(1, "l1", n=40)
    few = np.count_nonzero(np.abs(solve(problem).coefficients) > 1e-9)
    problem, _ = drawn(1, "linf", n=40)
    a = np.abs(solve(problem).coefficients)
    assert few < 15
    assert np.count_nonzero(a > (1 - 1e-6) * a.max()) > 25


def test_a_limit_leaves_the_constant_function_with_a_certificate():
    problem, K = drawn(2)
    found = solve(problem, max_iter=1)
    assert found.stopped == "iterations"
    assert found.dual <= dual_optimum(problem, K) <= found.primal


def test_float32_values_are_certified_in_float64():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    coarse = solve(LinearProgram(Gram(Gaussian(1.0), X, precision="float32"), y, Hinge(), 5.0), tol=1e-4)
    exact = solve(LinearProgram(Gram(Gaussian(1.0), X), y, Hinge(), 5.0))
    assert coarse.dual <= exact.primal * (1 + 1e-9)
    assert coarse.primal >= exact.dual * (1 - 1e-9)


def test_what_is_no_linear_program_is_refused():
    gram = Gram(Precomputed(), np.eye(3))
    with pytest.raises(InvalidInput, match="linear program"):
        LinearProgram(gram, [1, -1, 1], SquaredHinge())
    with pytest.raises(InvalidInput, match="norm"):
        LinearProgram(gram, [1, -1, 1], Hinge(), norm="l2")  # type: ignore[arg-type]
    with pytest.raises(BudgetTooSmall, match="memory"):
        solve(drawn(0)[0], memory=1000)
    assert not accepts("a string")
