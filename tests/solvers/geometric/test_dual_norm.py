"""Largest margins in l_q norms: distances by direct minimisation, hulls as bounds, and the hard margin at p = 2."""

import numpy as np
import pytest
from scipy.optimize import minimize

from mercer.errors import Infeasible, InvalidInput
from mercer.gram import Gram
from mercer.kernels import Linear
from mercer.problems import HardMargin
from mercer.solvers.geometric.dual_norm import dual_norm_margin
from mercer.solvers.quadratic import interior_point


def apart(n=40, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] + 0.5 * X[:, 1] > 0, 1.0, -1.0)
    X[:, :2] += 0.3 * y[:, None]
    return X, y


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, np.inf])
def test_the_margin_meets_the_bound_of_the_hulls(p):
    for seed in range(3):
        X, y = apart(seed=seed)
        found = dual_norm_margin(X, y, p)
        assert 0.0 < found.margin <= found.bound * (1 + 1e-9)
        assert found.margin == pytest.approx(found.bound, rel=1e-3)
        assert (y * (X @ found.w + found.b) > 0).all()


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, np.inf])
def test_the_distance_to_the_plane_is_the_value_over_the_norm(p):
    rng = np.random.default_rng(1)
    w, b, x = rng.normal(size=2), 0.3, rng.normal(size=2) + 2.0
    q = np.inf if p == 1 else 1.0 if np.isinf(p) else p / (p - 1)
    # Points of the line are x0 + t v; the distance is one number to minimise over t.
    v, x0 = np.array([-w[1], w[0]]), -b * w / (w @ w)
    start = (x - x0) @ v / (v @ v)
    ts = start + np.linspace(-5, 5, 20001)
    best = np.linalg.norm(x0 + ts[:, None] * v - x, q, axis=1).min()
    assert abs(w @ x + b) / np.linalg.norm(w, p) == pytest.approx(best, rel=1e-3)


def test_at_p_two_it_is_the_hard_margin():
    X, y = apart(seed=2)
    found = dual_norm_margin(X, y, 2.0)
    reference = interior_point.solve(HardMargin(Gram(Linear(), X), y), tol=1e-9)
    rho = np.sqrt(1.0 / (2.0 * reference.primal))
    assert found.margin == pytest.approx(rho, rel=1e-6)


def test_no_other_plane_has_a_larger_margin():
    """A general minimiser of the smallest distance, from many starts, finds nothing better."""
    X, y = apart(n=25, d=2, seed=3)
    for p in (1.0, np.inf):
        found = dual_norm_margin(X, y, p)
        rng = np.random.default_rng(0)
        for _ in range(10):
            start = np.append(found.w, found.b) + 0.3 * rng.normal(size=3)
            other = minimize(
                lambda x, p=p: -(y * (X @ x[:2] + x[2])).min() / np.linalg.norm(x[:2], p), start, method="Nelder-Mead"
            )
            assert -other.fun <= found.margin * (1 + 1e-6)


def test_the_sum_of_absolute_weights_leaves_few_of_them():
    X, y = apart(n=60, d=30, seed=4)
    assert np.count_nonzero(np.abs(dual_norm_margin(X, y, 1.0).w) > 1e-9) < 30
    assert np.count_nonzero(np.abs(dual_norm_margin(X, y, 2.0).w) > 1e-9) == 30


def test_what_has_no_margin_is_refused():
    X = np.array([[0.0], [1.0], [0.5]])
    with pytest.raises(Infeasible, match="separates"):
        dual_norm_margin(X, [1, 1, -1], 1.0)
    with pytest.raises(InvalidInput, match="both classes"):
        dual_norm_margin(X, [1, 1, 1])
    with pytest.raises(InvalidInput, match="p must be"):
        dual_norm_margin(X, [1, -1, 1], 0.5)
