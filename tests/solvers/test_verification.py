"""What a sample of values computed again says about the values behind a certificate."""

import numpy as np
import pytest

from mercer import SVC, SVR, Gaussian, Linear
from mercer.gram import Gram
from mercer.solvers.verification import sampled


@pytest.mark.parametrize("sigma", [0.05, 0.1, 0.3, 2.0])
def test_the_error_of_the_norm_is_no_larger_than_a_sample_says(sigma):
    """Narrow kernels: the errors are those of the diagonal, all of one sign, and of few near pairs."""
    rng = np.random.default_rng(3)
    X, c = rng.normal(size=(900, 5)), rng.uniform(-1, 1, size=900)
    kernel = Gaussian(sigma=sigma)
    single = Gram(kernel, X, precision="float32", storage="dense")
    K, stored = kernel(X), single.dense().astype(np.float64)
    missing = abs(0.5 * float(c @ (K - stored) @ c))
    for seed in range(30):
        found = sampled(single, c, stored @ c, np.ones(900), np.abs(c) < 0.9, seed)
        assert missing <= found.energy


def true_dual(kernel, X, y, machine, epsilon=0.0):
    """Dual value at the coefficients of a machine, in float64."""
    c = np.zeros(len(X))
    c[machine.support_] = machine.dual_coef_[0]
    return float(y @ c) - epsilon * float(np.abs(c).sum()) - 0.5 * float(c @ kernel(X) @ c)


@pytest.mark.parametrize(("kernel", "C"), [(Linear(), 1.0), (Gaussian(sigma=2.0), 100.0), (Gaussian(sigma=0.1), 10.0)])
@pytest.mark.parametrize("n", [20, 90])
def test_the_lower_bound_of_small_machines_in_single_precision_is_one(kernel, C, n):
    """The errors of K c and the coefficients go together: the mean of c_i e_i is not the mean of e_i."""
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 5)) + 10.0
        y = np.where(X[:, 0] - X[:, 0].mean() + 0.4 * rng.normal(size=n) > 0, 1.0, -1.0)
        machine = SVC(C=C, kernel=kernel, precision="float32").fit(X, y)
        dual = true_dual(kernel, X, y, machine)
        assert machine.dual_objective_ <= dual + 1e-12 * abs(dual)


@pytest.mark.parametrize("seed", [1, 5])
def test_the_lower_bound_of_narrow_kernels_in_single_precision_is_one(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2200, 5))
    y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=2200)
    kernel = Gaussian(sigma=0.2)
    machine = SVR(C=10.0, kernel=kernel, epsilon=0.1, precision="float32").fit(X, y)
    dual = true_dual(kernel, X, y, machine, epsilon=0.1)
    assert machine.dual_objective_ <= dual + 1e-12 * abs(dual)
