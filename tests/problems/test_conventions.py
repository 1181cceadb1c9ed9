"""Every convention means the same minimiser, found by a general optimiser in its own words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge

from mercer import LSSVR, SVC, SVR, Gaussian, NuSVC, NuSVR
from mercer.errors import InvalidInput
from mercer.problems import CONVENTIONS, C_of_nu, from_C, nu_of_C, to_C

positive = st.floats(1e-6, 1e6)
GAMMA = 0.7
KERNEL = Gaussian.from_gamma(GAMMA)


def points(n: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, 2))
    return X, np.where(X[:, 0] + 0.7 * random.standard_normal(n) > 0.0, 1.0, -1.0)


@given(value=positive, n=st.integers(1, 10_000), name=st.sampled_from(sorted(CONVENTIONS)))
def test_there_and_back_is_where_one_was(value, n, name):
    assert from_C(to_C(value, name, n), name, n) == pytest.approx(value)
    assert to_C(from_C(value, name, n), name, n) == pytest.approx(value)


OBJECTIVES = {
    "C": lambda loss, norm, value, n: value * loss + 0.5 * norm,
    "lambda": lambda loss, norm, value, n: loss / n + value * norm,
    "half lambda": lambda loss, norm, value, n: loss / n + 0.5 * value * norm,
    "sum lambda": lambda loss, norm, value, n: loss + value * norm,
    "alpha": lambda loss, norm, value, n: loss + 0.5 * value * norm,
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_objective_as_written_elsewhere_has_the_same_minimiser(name):
    """Squared hinge without a bias, minimised over coefficients by a quasi-Newton method."""
    X, y = points()
    n, value = len(X), 0.3
    K = KERNEL(X, X)

    def objective(a: np.ndarray) -> tuple[float, np.ndarray]:
        f = K @ a
        slack = np.maximum(0.0, 1.0 - y * f)
        total = OBJECTIVES[name](slack @ slack, a @ f, value, n)
        of_loss = OBJECTIVES[name](1.0, 0.0, value, n)
        of_norm = OBJECTIVES[name](0.0, 1.0, value, n)
        return float(total), K @ (-2.0 * of_loss * y * slack + 2.0 * of_norm * a)

    found = minimize(objective, np.zeros(n), jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000})
    machine = SVC(C=to_C(value, name, n), kernel=KERNEL, loss="squared_hinge", bias="none", tol=1e-8).fit(X, y)
    np.testing.assert_allclose(machine.decision_function(X), K @ found.x, atol=1e-4)


@pytest.mark.parametrize("name", ["lambda l", "ridge", "noise"])
def test_the_systems_of_least_squares_are_the_same(name):
    X, _ = points()
    y = np.sin(2.0 * X[:, 0])
    value = 0.05
    ours = LSSVR(C=to_C(value, name, len(X)), kernel=KERNEL, bias="none").fit(X, y).predict(X)
    if name == "noise":
        length = 1.0 / np.sqrt(2.0 * GAMMA)
        process = GaussianProcessRegressor(RBF(length), alpha=value, optimizer=None)
        theirs = process.fit(X, y).predict(X)
    else:
        alpha = value * (len(X) if name == "lambda l" else 1)
        theirs = KernelRidge(kernel="rbf", gamma=GAMMA, alpha=alpha).fit(X, y).predict(X)
    np.testing.assert_allclose(ours, theirs, atol=1e-8)


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        ((1.0, "mu", 10), "one of 'C'"),
        ((0.0, "lambda", 10), "must be positive"),
        ((1.0, "lambda"), "give n"),
    ],
)
def test_what_cannot_be_converted_is_refused(arguments, remedy):
    with pytest.raises(InvalidInput, match=remedy):
        to_C(*arguments)
    with pytest.raises(InvalidInput, match=remedy):
        from_C(*arguments)


# nu and C ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nu", [0.3, 0.5, 0.7])
def test_nu_to_C_and_back_for_classification(nu):
    X, y = points()
    by_nu = NuSVC(nu=nu, kernel=KERNEL, tol=1e-8).fit(X, y)
    rho = float(by_nu.solution_.multipliers["rho"])
    by_C = SVC(C=C_of_nu(rho), kernel=KERNEL, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(by_C.decision_function(X), by_nu.decision_function(X), atol=1e-4)
    assert nu_of_C(by_C.dual_coef_, C_of_nu(rho), np.ones(len(X))) == pytest.approx(nu, abs=1e-5)


@pytest.mark.parametrize("nu", [0.2, 0.6])
def test_nu_to_epsilon_and_back_for_regression(nu):
    X, _ = points()
    y = np.sin(2.0 * X[:, 0]) + 0.2 * np.random.default_rng(1).standard_normal(len(X))
    by_nu = NuSVR(nu=nu, C=3.0, kernel=KERNEL, tol=1e-8).fit(X, y)
    epsilon = float(by_nu.solution_.multipliers["epsilon"])
    by_epsilon = SVR(epsilon=epsilon, C=3.0, kernel=KERNEL, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(by_epsilon.predict(X), by_nu.predict(X), atol=1e-4)
    assert nu_of_C(by_epsilon.dual_coef_, 3.0, np.ones(len(X))) == pytest.approx(nu, abs=1e-5)


def test_a_margin_of_zero_has_no_C_and_no_weight_no_nu():
    with pytest.raises(InvalidInput, match="lower nu"):
        C_of_nu(0.0)
    with pytest.raises(InvalidInput, match="must be positive"):
        nu_of_C([1.0], 1.0, [0.0])
