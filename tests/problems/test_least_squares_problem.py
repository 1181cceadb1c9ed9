"""The least-squares problem: its optimum, its certificate and what the literature says about both."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.kernel_ridge import KernelRidge

from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.kernels import Gaussian, Linear, Precomputed
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.linear import cholesky, spectral


def data(n=40, d=3, k=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, rng.normal(size=(n, k)) + np.sin(X[:, :1])


def saddle_answer(K, Y, ridge, Phi):
    """Coefficients and offsets from a dense LU of the saddle-point matrix."""
    n, q = Phi.shape
    A = np.block([[K + np.diag(ridge), Phi], [Phi.T, np.zeros((q, q))]])
    u = np.linalg.solve(A, np.vstack([Y, np.zeros((q, Y.shape[1]))]))
    return u[:n], u[n:]


@pytest.mark.parametrize("bias", ["free", "none", "penalised"])
def test_primal_equals_dual_at_the_optimum_and_exceeds_it_elsewhere(bias):
    X, Y = data()
    problem = LeastSquares(Gram(Gaussian(1.0), X), Y, C=3.0, bias=bias)
    solution = cholesky.solve(problem)
    assert solution.primal == pytest.approx(solution.dual, rel=1e-12)
    rng = np.random.default_rng(1)
    for _ in range(10):
        step = rng.normal(size=Y.shape)
        if bias == "free":
            step -= step.mean(axis=0)
        certificate = problem.certificate(solution.coefficients + 0.1 * step)
        assert certificate.primal > solution.primal
        assert certificate.dual < solution.dual
        assert certificate.gap == pytest.approx(certificate.primal - certificate.dual, rel=1e-9)


def test_the_gap_is_the_one_of_keerthi_and_shevade():
    # Hamers 2004, section 3.5.5: b is the mean of y - Kc, the gap the difference of the two objectives.
    X, Y = data(k=1)
    C = 7.0
    K = Gaussian(1.5)(X)
    problem = LeastSquares(Gram(Precomputed(), K), Y, C=C)
    c = np.random.default_rng(3).normal(size=Y.shape)
    c -= c.mean()
    rho = Y - K @ c
    b = rho.mean()
    e = rho - b
    primal = 0.5 * (c * (K @ c)).sum() + C / 2 * (e**2).sum()
    dual = (Y * c).sum() - 0.5 * (c * (K @ c + c / C)).sum()
    certificate = problem.certificate(c)
    assert certificate.multipliers["offsets"][0, 0] == pytest.approx(b, rel=1e-12)
    assert certificate.primal == pytest.approx(primal, rel=1e-12)
    assert certificate.dual == pytest.approx(dual, rel=1e-12)
    assert certificate.gap == pytest.approx(primal - dual, rel=1e-12)
    assert problem.primal(c, certificate.multipliers["offsets"])[0] == pytest.approx(primal, rel=1e-12)
    assert problem.dual(c)[0] == pytest.approx(dual, rel=1e-12)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), log_C=st.floats(-3, 3), weighted=st.booleans())
def test_twice_the_gap_bounds_the_squared_error_in_the_norm_of_the_matrix(seed, log_C, weighted):
    rng = np.random.default_rng(seed)
    X, Y = data(n=20, k=1, seed=seed)
    weights = rng.uniform(0.2, 3.0, 20) if weighted else None
    problem = LeastSquares(Gram(Gaussian(1.0), X), Y, C=10.0**log_C, weights=weights)
    best = cholesky.solve(problem).coefficients
    c = best + rng.normal(size=best.shape) * 10.0 ** rng.uniform(-4, 1)
    c -= c.mean()
    gap = problem.certificate(c).gap
    H = Gaussian(1.0)(X) + np.diag(problem.ridge)
    assert (c - best)[:, 0] @ H @ (c - best)[:, 0] <= 2 * gap * (1 + 1e-9) + 1e-18


@pytest.mark.parametrize("bias", ["free", "none", "penalised"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("semiparametric", [False, True])
def test_solution_is_that_of_the_saddle_point_system(bias, weighted, semiparametric):
    X, Y = data()
    n = len(Y)
    weights = np.random.default_rng(5).uniform(0.1, 4.0, n) if weighted else None
    basis = X[:, :2] if semiparametric else None
    problem = LeastSquares(Gram(Gaussian(0.8), X), Y, C=2.0, weights=weights, bias=bias, basis=basis)
    K = Gaussian(0.8)(X) + (bias == "penalised")
    c, offsets = saddle_answer(K, Y, problem.ridge, problem.columns)
    solution = cholesky.solve(problem)
    np.testing.assert_allclose(solution.coefficients, c, rtol=0, atol=1e-11 * np.abs(c).max())
    expected = {"free": offsets[0] if bias == "free" else None, "none": np.zeros(2), "penalised": c.sum(axis=0)}[bias]
    np.testing.assert_allclose(solution.bias, expected, atol=1e-11)
    if semiparametric:
        np.testing.assert_allclose(solution.multipliers["basis"], offsets[-2:], atol=1e-10)


def test_a_point_of_weight_zero_is_left_out():
    X, Y = data()
    weights = np.random.default_rng(0).uniform(0.5, 2, len(Y))
    weights[[2, 11, 30]] = 0
    keep = np.flatnonzero(weights)
    whole = cholesky.solve(LeastSquares(Gram(Gaussian(), X), Y, C=5.0, weights=weights))
    part = cholesky.solve(LeastSquares(Gram(Gaussian(), X[keep]), Y[keep], C=5.0, weights=weights[keep]))
    assert not whole.coefficients[[2, 11, 30]].any()
    np.testing.assert_allclose(whole.coefficients[keep], part.coefficients, atol=1e-12)
    np.testing.assert_allclose(whole.bias, part.bias, atol=1e-13)
    assert whole.primal == pytest.approx(part.primal, rel=1e-12)


def test_whole_weights_are_repetitions():
    X, Y = data(n=25)
    weights = np.random.default_rng(1).integers(1, 4, 25)
    index = np.repeat(np.arange(25), weights)
    heavy = cholesky.solve(LeastSquares(Gram(Gaussian(), X), Y, C=2.0, weights=weights.astype(float)))
    repeated = cholesky.solve(LeastSquares(Gram(Gaussian(), X[index]), Y[index], C=2.0))
    summed = np.zeros_like(Y)
    np.add.at(summed, index, repeated.coefficients)
    np.testing.assert_allclose(heavy.coefficients, summed, atol=1e-10)
    np.testing.assert_allclose(heavy.bias, repeated.bias, atol=1e-12)


def test_without_bias_it_is_kernel_ridge_regression():
    X, Y = data()
    ours = cholesky.solve(LeastSquares(Gram(Gaussian(sigma=0.7), X), Y, C=4.0, bias="none"))
    theirs = KernelRidge(alpha=0.25, kernel="rbf", gamma=1 / (2 * 0.7**2)).fit(X, Y)
    np.testing.assert_allclose(ours.coefficients, theirs.dual_coef_, rtol=1e-9)


def test_classifier_is_regression_on_labels():
    # Hamers 2004, equation 2.64: the classifier's own system in alpha, with H_ij = y_i y_j k_ij + delta_ij / C.
    X, _ = data()
    y = np.where(X[:, 0] + 0.3 * X[:, 1] > 0, 1.0, -1.0)
    K, C, n = Gaussian()(X), 3.0, len(y)
    A = np.zeros((n + 1, n + 1))
    A[0, 1:] = A[1:, 0] = y
    A[1:, 1:] = np.outer(y, y) * K + np.eye(n) / C
    u = np.linalg.solve(A, np.r_[0.0, np.ones(n)])
    b, alpha = u[0], u[1:]
    solution = cholesky.solve(LeastSquares(Gram(Gaussian(), X), y, C=C))
    np.testing.assert_allclose(solution.coefficients[:, 0], y * alpha, atol=1e-11)
    assert solution.bias[0] == pytest.approx(b, abs=1e-11)
    f = K @ solution.coefficients[:, 0] + b
    np.testing.assert_allclose(alpha, C * (1 - y * f), atol=1e-10)


def test_residual_is_coefficient_over_C_and_coefficients_sum_to_zero():
    X, Y = data()
    C = 6.0
    solution = cholesky.solve(LeastSquares(Gram(Gaussian(), X), Y, C=C))
    f = Gaussian()(X) @ solution.coefficients + solution.bias
    np.testing.assert_allclose(Y - f, solution.coefficients / C, atol=1e-11)
    np.testing.assert_allclose(solution.coefficients.sum(axis=0), 0, atol=1e-12)


def test_the_bias_carries_constants_in_kernel_and_targets():
    # Hamers 2004, section 2.5, relation 2.54 and the two invariances of the model with bias.
    X, Y = data(k=1)
    K, C, n = Gaussian()(X), 2.0, len(Y)

    def solve(matrix, targets, bias="free"):
        return cholesky.solve(LeastSquares(Gram(Precomputed(), matrix), targets, C=C, bias=bias))

    with_bias, without = solve(K, Y), solve(K, Y, "none")
    ones = np.linalg.solve(K + np.eye(n) / C, np.ones((n, 1)))
    np.testing.assert_allclose(without.coefficients - with_bias.coefficients, with_bias.bias * ones, atol=1e-10)
    lifted = solve(K + 5.0, Y)
    np.testing.assert_allclose(lifted.coefficients, with_bias.coefficients, atol=1e-10)
    np.testing.assert_allclose(lifted.bias, with_bias.bias, atol=1e-10)
    shifted = solve(K, Y + 3.0)
    np.testing.assert_allclose(shifted.coefficients, with_bias.coefficients, atol=1e-11)
    np.testing.assert_allclose(shifted.bias, with_bias.bias + 3.0, atol=1e-12)


def test_penalised_bias_is_a_constant_feature():
    X, Y = data()
    ours = cholesky.solve(LeastSquares(Gram(Linear(), X), Y, C=2.0, bias="penalised"))
    augmented = np.hstack([X, np.ones((len(X), 1))])
    w = np.linalg.solve(augmented.T @ augmented + np.eye(4) / 2.0, augmented.T @ Y)
    np.testing.assert_allclose(X.T @ ours.coefficients, w[:3], atol=1e-10)
    np.testing.assert_allclose(ours.bias, w[3], atol=1e-10)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_norm_of_the_function_grows_with_C(seed):
    X, Y = data(n=25, k=1, seed=seed)
    K = Gaussian()(X)
    for bias in ("free", "none"):
        norms = []
        for C in (0.01, 0.1, 1.0, 10.0, 100.0):
            c = cholesky.solve(LeastSquares(Gram(Precomputed(), K), Y, C=C, bias=bias)).coefficients
            norms.append(float((c * (K @ c)).sum()))
        assert (np.diff(norms) > -1e-10 * norms[-1]).all()


def test_singular_matrices_have_one_prediction():
    # Hamers 2004, equations 2.38 to 2.42: any solution of (K^2 + K/C) a = K y predicts the same.
    X, Y = data(n=12, d=2)
    X, Y = np.vstack([X, X]), np.vstack([Y, Y + 1.0])
    K, C = Linear()(X), 3.0
    ours = cholesky.solve(LeastSquares(Gram(Linear(), X), Y, C=C, bias="none")).coefficients
    other = np.linalg.lstsq(K @ K + K / C, K @ Y, rcond=None)[0]
    np.testing.assert_allclose(K @ ours, K @ other, atol=1e-9)
    np.testing.assert_allclose((K @ K + K / C) @ ours, K @ Y, atol=1e-9)


def test_one_sample_and_constant_targets():
    one = cholesky.solve(LeastSquares(Gram(Gaussian(), np.zeros((1, 2))), [4.0]))
    assert one.coefficients[0, 0] == 0
    assert one.bias[0] == 4.0
    X, _ = data()
    flat = cholesky.solve(LeastSquares(Gram(Gaussian(), X), np.full(len(X), 2.5)))
    np.testing.assert_allclose(flat.coefficients, 0, atol=1e-13)
    np.testing.assert_allclose(flat.bias, 2.5, rtol=1e-13)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"C": 0.0}, "C must be positive"),
        ({"C": float("nan")}, "C must be positive"),
        ({"Y": np.ones(7)}, "Y must have 40 rows"),
        ({"Y": np.full(40, np.nan)}, "NaN"),
        ({"weights": -np.ones(40)}, "not negative"),
        ({"weights": np.zeros(40)}, "all zero"),
        ({"weights": np.ones(3)}, "weights must have shape"),
        ({"bias": "some"}, "bias must be"),
        ({"basis": np.ones((3, 1))}, "basis must have 40 rows"),
    ],
)
def test_bad_input_is_named(change, words):
    X, Y = data()
    arguments = {"Y": Y, "C": 1.0} | change
    with pytest.raises(InvalidInput, match=words):
        LeastSquares(Gram(Gaussian(), X), **arguments)


def test_another_C_leaves_the_problem_alone():
    X, Y = data()
    problem = LeastSquares(Gram(Gaussian(), X), Y, C=1.0)
    twin = problem.with_C(9.0)
    assert (problem.C, twin.C) == (1.0, 9.0)
    assert twin.gram is problem.gram
    with pytest.raises(InvalidInput, match="C must be positive"):
        problem.with_C(-1.0)


def test_interpolation_asks_nothing_of_points_without_weight():
    X, Y = data()
    weights = np.ones(40)
    weights[[3, 17]] = 0.0
    problem = LeastSquares(Gram(Gaussian(), X), Y, C=np.inf, weights=weights)
    found = spectral.solve(problem)
    used = weights > 0
    K = Gaussian()(X)
    f = K @ found.coefficients + found.bias
    np.testing.assert_allclose(f[used], Y[used], atol=1e-6)
    assert np.abs(f - Y)[~used].max() > 1e-3
    assert problem.certificate(found.coefficients).primal == pytest.approx(found.primal, rel=1e-8)
    assert found.primal == pytest.approx(0.5 * np.sum(found.coefficients * (K @ found.coefficients)), rel=1e-8)
