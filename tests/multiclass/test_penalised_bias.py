"""A penalised bias is a constant feature: the same machine without bias on the kernel k + 1."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from mercer import CrammerSingerSVC, Gaussian, KernelLogistic, LeeLinWahbaSVC, Linear, WestonWatkinsSVC

pytestmark = pytest.mark.filterwarnings("ignore::mercer.errors.Advice")
X, Y = make_blobs(80, 3, centers=3, cluster_std=3.0, random_state=1)
X += 6.0  # far from the origin, and of unequal classes, so that the bias matters
KEPT = np.flatnonzero((Y > 0) | (np.arange(80) % 3 == 0))
X, Y = X[KEPT], Y[KEPT]
NEW = np.random.default_rng(0).normal(size=(15, 3)) * 5.0 + 6.0


@pytest.mark.parametrize("machine", [CrammerSingerSVC, WestonWatkinsSVC, LeeLinWahbaSVC, KernelLogistic])
@pytest.mark.parametrize("kernel", [Gaussian(sigma=4.0), 0.1 * Linear()], ids=["kernel", "scaled linear"])
def test_a_penalised_bias_is_that_of_a_constant_added_to_the_kernel(machine, kernel) -> None:
    options = {"C": 0.5, "tol": 1e-11}
    penalised = machine(kernel=kernel, bias="penalised", **options).fit(X, Y)
    added = machine(kernel=kernel + 1.0, bias="none", **options).fit(X, Y)
    np.testing.assert_allclose(penalised.decision_function(NEW), added.decision_function(NEW), atol=2e-4)
    np.testing.assert_allclose(penalised.intercept_, added.dual_coef_.sum(axis=1), atol=2e-4)
    assert np.abs(penalised.intercept_).max() > 0.02
    assert penalised.objective_ == pytest.approx(added.objective_, rel=1e-8)
    assert (added.intercept_ == 0.0).all()


@pytest.mark.parametrize("machine", [CrammerSingerSVC, WestonWatkinsSVC, LeeLinWahbaSVC, KernelLogistic])
def test_on_the_linear_kernel_it_is_a_column_of_ones(machine) -> None:
    options = {"C": 0.05, "kernel": "linear", "tol": 1e-11}
    penalised = machine(bias="penalised", **options).fit(X, Y)
    ones = machine(bias="none", **options).fit(np.column_stack([X, np.ones(len(X))]), Y)
    np.testing.assert_allclose(penalised.coef_, ones.coef_[:, :-1], atol=1e-5)
    np.testing.assert_allclose(penalised.intercept_, ones.coef_[:, -1], atol=1e-5)
    assert np.abs(penalised.intercept_).max() > 1e-3
