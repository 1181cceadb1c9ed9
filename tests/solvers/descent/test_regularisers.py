"""Descent in the coefficients: the gradients of table 10.3 as corrected, falling objectives, and known optima."""

from itertools import pairwise

import numpy as np
import pytest

from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.kernels import Precomputed
from mercer.losses import Hinge, Huber, Logistic, Square, SquaredHinge
from mercer.problems import RegularisedRisk
from mercer.solvers import Monitor
from mercer.solvers.descent.regularisers import REGULARISERS, minimise, risk
from mercer.solvers.quadratic import interior_point
from tests.problems.zoo import gaussian


def drawn(n=20, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return 0.5 * gaussian(X) + 0.5 * np.eye(n), np.where(X[:, 0] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0), rng


@pytest.mark.parametrize("name", REGULARISERS)
@pytest.mark.parametrize("loss", [Logistic(), SquaredHinge(), Huber(0.5)])
def test_gradients_are_those_of_finite_differences(name, loss):
    K, y, rng = drawn()
    gram, a, b = Gram(Precomputed(), K), rng.normal(size=20), 0.3
    _, slope, slope_b = risk(gram, y, loss, 0.7, name, a, b)
    for j in range(20):
        shift = np.zeros(20)
        shift[j] = 1e-6
        up, down = (risk(gram, y, loss, 0.7, name, a + sign * shift, b)[0] for sign in (1, -1))
        assert (up - down) / 2e-6 == pytest.approx(slope[j], abs=1e-5)
    up, down = (risk(gram, y, loss, 0.7, name, a, b + sign * 1e-6)[0] for sign in (1, -1))
    assert (up - down) / 2e-6 == pytest.approx(slope_b, abs=1e-6)


@pytest.mark.parametrize("name", REGULARISERS)
def test_the_objective_falls_in_every_step(name):
    K, y, _ = drawn(seed=1)
    monitor = Monitor()
    minimise(Gram(Precomputed(), K), y, Logistic(), lam=0.01, regulariser=name, max_iter=50, monitor=monitor)
    values = [record.primal for record in monitor.history]
    assert len(values) > 2
    assert all(after <= before for before, after in pairwise(values))
    assert values[-1] < values[0]


def test_half_the_squared_norm_is_the_support_vector_machine_of_c_equal_to_one_over_lambda_m():
    K, y, _ = drawn(seed=2)
    gram, lam = Gram(Precomputed(), K), 0.05
    found = minimise(gram, y, SquaredHinge(), lam=lam, tol=1e-6, max_iter=5_000)
    reference = interior_point.solve(RegularisedRisk(gram, y, SquaredHinge(), 1.0 / (lam * 20)), tol=1e-10)
    assert found.stopped == "converged"
    assert found.objective == pytest.approx(lam * reference.primal, rel=1e-6)


def test_squared_values_with_the_square_loss_have_a_closed_form():
    """Mean (f - y)^2 + lambda sum f0^2 is smallest, with the best bias, where f0 = (y - b) / (1 + lambda m)."""
    K, y, _ = drawn(n=12, seed=3)
    found = minimise(
        Gram(Precomputed(), K), y, Square(), lam=0.2, regulariser="squared_values", tol=1e-7, max_iter=5_000
    )
    f0 = (y - y.mean()) / (1.0 + 0.2 * 12)
    value = np.mean((f0 + y.mean() - y) ** 2) + 0.2 * f0 @ f0
    assert found.objective == pytest.approx(value, rel=1e-4)
    assert found.bias == pytest.approx(y.mean(), abs=1e-3)


def test_unknown_regularisers_and_signs_of_lambda_are_refused():
    K, y, _ = drawn(n=5)
    with pytest.raises(InvalidInput, match="regulariser"):
        minimise(Gram(Precomputed(), K), y, Hinge(), lam=0.1, regulariser="l0")
    with pytest.raises(InvalidInput, match="lam"):
        minimise(Gram(Precomputed(), K), y, Hinge(), lam=0.0)
