"""The zoo: input checks, weights as repetition, nu, restarts."""

from itertools import pairwise

import numpy as np
import pytest

from mercer.errors import Infeasible, InvalidInput
from mercer.gram import Gram
from mercer.kernels import Gaussian, Precomputed
from mercer.losses import EpsilonInsensitive, Hinge, Huber, SquaredEpsilonInsensitive, SquaredHinge
from mercer.problems import (
    NuClassification,
    NuRegression,
    OneClass,
    RegularisedRisk,
    rescale,
)
from mercer.solvers.quadratic import interior_point
from problems.zoo import KINDS, Data, c_svc, case, eps_svr, gaussian

CLASSIFIERS = [
    lambda g, y, w: RegularisedRisk(g, y, Hinge(), 2.0, w),
    lambda g, y, w: RegularisedRisk(g, y, SquaredHinge(), 2.0, w),
    lambda g, y, w: NuClassification(g, y, 0.4, w),
    lambda g, y, w: OneClass(g, 0.3, w),
]
REGRESSORS = [
    lambda g, t, w: RegularisedRisk(g, t, EpsilonInsensitive(0.1), 2.0, w),
    lambda g, t, w: RegularisedRisk(g, t, SquaredEpsilonInsensitive(0.1), 2.0, w),
    lambda g, t, w: RegularisedRisk(g, t, Huber(0.3), 2.0, w),
    lambda g, t, w: NuRegression(g, t, 2.0, 0.4, w),
]


def sample(n=24, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] + 0.4 * rng.normal(size=n) > 0, 1.0, -1.0)
    return X, y, np.sin(X[:, 0]) + 0.3 * rng.normal(size=n), rng


def values(problem, X, Z):
    """Decision values at X of the machine trained on Z."""
    solution = interior_point.solve(problem, tol=1e-10)
    return gaussian_between(X, Z) @ solution.coefficients + solution.bias, solution


def gaussian_between(X, Z):
    return np.exp(-((X[:, None] - Z[None]) ** 2).sum(-1) / 2)


def gram(X):
    return Gram(Precomputed(), gaussian(X))


@pytest.mark.parametrize("make", CLASSIFIERS + REGRESSORS)
def test_integer_weights_are_repetitions(make):
    X, y, t, rng = sample()
    target = y if make in CLASSIFIERS else t
    count = rng.integers(0, 4, size=len(X))
    repeated = np.repeat(np.arange(len(X)), count)
    weighted, one = values(make(gram(X), target, count.astype(float)), X, X)
    doubled, two = values(make(gram(X[repeated]), target[repeated], None), X, X[repeated])
    assert one.primal == pytest.approx(two.primal, rel=1e-8)
    np.testing.assert_allclose(weighted, doubled, atol=1e-5)
    for name, value in one.multipliers.items():
        assert value == pytest.approx(two.multipliers[name], abs=1e-6)


@pytest.mark.parametrize("make", CLASSIFIERS + REGRESSORS)
def test_weight_zero_leaves_the_point_out(make):
    X, y, t, rng = sample()
    target = y if make in CLASSIFIERS else t
    weights = rng.uniform(0.5, 2, size=len(X))
    weights[::3] = 0.0
    kept = weights > 0
    one, with_zeros = values(make(gram(X), target, weights), X, X)
    two, without = values(make(gram(X[kept]), target[kept], weights[kept]), X, X[kept])
    assert with_zeros.primal == pytest.approx(without.primal, rel=1e-9)
    assert not with_zeros.coefficients[~kept].any()
    np.testing.assert_allclose(one, two, atol=1e-5)


def test_weights_multiply_the_loss():
    X, y, _, rng = sample()
    weights = rng.uniform(size=len(X))
    problem = RegularisedRisk(gram(X), y, Hinge(), 3.0, weights)
    c, b = rng.normal(size=len(X)), 0.2
    f = gaussian(X) @ c + b
    expected = 0.5 * c @ gaussian(X) @ c + 3.0 * weights @ Hinge().value(y, f)
    assert problem.primal(c, b) == pytest.approx(expected, rel=1e-12)
    assert problem.loss == Hinge()


def test_penalised_bias_is_a_constant_feature():
    X, y, _, _ = sample()
    K = gaussian(X)
    one = interior_point.solve(RegularisedRisk(gram(X), y, Hinge(), bias="penalised"))
    two = interior_point.solve(RegularisedRisk(Gram(Precomputed(), K + 1), y, Hinge(), bias="none"))
    assert one.primal == pytest.approx(two.primal, rel=1e-9)
    assert one.bias == pytest.approx(one.coefficients.sum(), rel=1e-12)
    assert two.bias == 0.0


def test_infeasible_nu_is_refused_with_the_admissible_range():
    X, y, t, _ = sample()
    y = np.where(np.arange(len(X)) < 6, 1.0, -1.0)
    with pytest.raises(Infeasible, match=r"\(0, 0\.5\]"):
        NuClassification(gram(X), y, 0.51)
    NuClassification(gram(X), y, 0.5)
    weights = np.where(y > 0, 3.0, 1.0)
    NuClassification(gram(X), y, 0.99, weights)
    for bad in (0.0, -0.1, 1.1):
        with pytest.raises(Infeasible, match="nu"):
            NuRegression(gram(X), t, 1.0, bad)
        with pytest.raises(Infeasible, match="nu"):
            OneClass(gram(X), bad)
    with pytest.raises(Infeasible):
        NuClassification(gram(X), np.ones(len(X)), 0.1)


def test_bad_input_names_the_argument():
    X, y, t, _ = sample()
    g = gram(X)
    for match, make in (
        ("C must", lambda: RegularisedRisk(g, y, Hinge(), 0.0)),
        ("C must", lambda: RegularisedRisk(g, t, EpsilonInsensitive(), np.inf)),
        ("C must", lambda: RegularisedRisk(g, t, EpsilonInsensitive(), np.nan)),
        ("epsilon", lambda: RegularisedRisk(g, t, EpsilonInsensitive(-0.1), 1.0)),
        ("threshold", lambda: RegularisedRisk(g, t, Huber(0.0), 1.0)),
        ("y must have shape", lambda: RegularisedRisk(g, t[:-1], EpsilonInsensitive())),
        ("y contains NaN", lambda: RegularisedRisk(g, np.where(t > 0, np.nan, t), EpsilonInsensitive())),
        ("labels -1 and \\+1", lambda: RegularisedRisk(g, t, Hinge())),
        ("weights must not be negative", lambda: RegularisedRisk(g, t, EpsilonInsensitive(), weights=-np.ones(len(t)))),
        ("weights are all zero", lambda: RegularisedRisk(g, t, EpsilonInsensitive(), weights=np.zeros(len(t)))),
        ("weights contains NaN", lambda: RegularisedRisk(g, t, EpsilonInsensitive(), weights=np.full(len(t), np.nan))),
        ("bias", lambda: RegularisedRisk(g, t, EpsilonInsensitive(), bias="maybe")),
        ("basis must have shape", lambda: RegularisedRisk(g, t, EpsilonInsensitive(), basis=np.ones((3, 1)))),
        ("basis contains NaN", lambda: RegularisedRisk(g, t, EpsilonInsensitive(), basis=np.full((len(t), 1), np.nan))),
        ("square", lambda: RegularisedRisk(Gram(Gaussian(1.0), X, X[:3]), t, EpsilonInsensitive())),
        ("no free parameter", lambda: RegularisedRisk(g, t, EpsilonInsensitive()).primal(t, 0.0, rho=1.0)),
    ):
        with pytest.raises(InvalidInput, match=match):
            make()


@pytest.mark.parametrize("kind", KINDS, ids=[kind.__name__ for kind in KINDS])
def test_start_is_feasible_and_projection_leaves_feasible_points_alone(kind):
    for seed in range(3):
        problem = case(kind, seed).problem
        program = problem.program()
        start = program.start()
        assert max(program.violation(start)) < 1e-11
        far = np.random.default_rng(seed).normal(scale=5, size=program.size)
        near = program.project(far)
        assert max(program.violation(near)) < 1e-10
        np.testing.assert_allclose(program.project(near), near, atol=1e-10)
        # Nearest: no feasible point is closer.
        for other in (start, program.project(-far), 0.5 * (start + near)):
            assert np.sum((near - far) ** 2) <= np.sum((other - far) ** 2) + 1e-9


def test_repr_says_what_the_problem_is():
    for kind in KINDS:
        assert type(case(kind, 0).problem).__name__ in repr(case(kind, 0).problem)


def path(kind, constants):
    """Optimal problems of one data set at several C."""
    out = []
    for C in constants:
        example = kind(Data(np.random.default_rng(5), 30, C, "free", False))
        out.append((example, interior_point.solve(example.problem, tol=1e-10)))
    return out


@pytest.mark.parametrize("kind", [c_svc, eps_svr])
def test_objectives_along_a_path_of_C_keep_the_restart_inequalities(kind):
    """(10.23)-(10.25) of Schoelkopf and Smola 2002 for C' > C."""
    solved = path(kind, [0.1, 0.3, 1.0, 5.0, 30.0])
    for i, (small, at_small) in enumerate(solved):
        for large, at_large in solved[i + 1 :]:
            C, more = small.problem.C, large.problem.C

            def risk(example, solution):
                return example.primal(solution.coefficients, solution.bias)

            chain = [
                risk(large, at_small),
                risk(large, at_large),
                risk(small, at_large),
                risk(small, at_small),
            ]
            slack = 1e-7 * chain[0]
            assert all(a >= b - slack for a, b in pairwise(chain))
            empirical = (chain[3] - 0.5 * at_small.coefficients @ small.K @ at_small.coefficients) / C
            assert chain[1] <= chain[3] + (more - C) * empirical + slack
            assert chain[3] + (more - C) * empirical <= more / C * chain[3] + slack
            assert C / more * chain[1] <= chain[3] + slack
            assert chain[3] <= chain[1] + slack


@pytest.mark.parametrize("kind", KINDS, ids=[kind.__name__ for kind in KINDS])
def test_rescaled_solution_is_feasible_and_no_worse_than_a_cold_start(kind):
    before = case(kind, 7, C=4.0)
    s = interior_point.solve(before.problem).variables
    for C in (0.5, 3.9, 4.0, 6.0, 400.0):
        after = case(kind, 7, C=C)
        program = after.problem.program()
        warm = rescale(s, before.problem, after.problem)
        assert max(program.violation(warm)) < 1e-8 * max(1, C)
        assert program.objective(warm) <= program.objective(program.start()) + 1e-9
    same = rescale(s, before.problem, before.problem)
    np.testing.assert_allclose(same, s, atol=1e-9)


def test_warm_start_worse_than_nothing_is_rejected():
    before, after = case(c_svc, 7, C=1.0), case(c_svc, 7, C=1e4)
    s = interior_point.solve(before.problem).variables
    assert after.problem.dual(s * 1e4) < 0
    assert not rescale(s, before.problem, after.problem).any()
    with pytest.raises(InvalidInput, match="warm start"):
        rescale(s[:-1], before.problem, after.problem)
