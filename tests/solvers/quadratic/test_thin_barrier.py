"""The thin factor of the interior point method: product form, factors on disk, and the linear kernel of a machine."""

import numpy as np
import pytest

from mercer import SVC, SVR
from mercer.errors import BudgetTooSmall
from mercer.gram import LowRankGram
from mercer.losses import EpsilonInsensitive, Hinge
from mercer.problems import RegularisedRisk
from mercer.solvers.quadratic import interior_point
from mercer.solvers.quadratic.product_form import ProductForm
from mercer.solvers.quadratic.thin_barrier import ThinBarrierSystem, ThinMatrix, thin_bytes


def points(n=300, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)


@pytest.mark.parametrize("spread", [0.0, 6.0])
def test_the_product_form_solves_whatever_the_diagonal(spread):
    rng = np.random.default_rng(1)
    F = rng.normal(size=(80, 5))
    delta = 10.0 ** rng.uniform(-spread, spread, size=80)
    R = rng.normal(size=(80, 3))
    X = ProductForm([(slice(0, 30), F[:30]), (slice(30, 80), F[30:])], delta, 5).solve(R)
    M = F @ F.T + np.diag(delta)
    np.testing.assert_allclose(M @ X, R, atol=1e-7)
    np.testing.assert_allclose(X, np.linalg.solve(M, R), rtol=1e-6, atol=1e-6 * np.abs(X).max())


def test_the_product_form_keeps_digits_that_the_woodbury_formula_loses():
    """Diagonals that are apart by 24 orders of magnitude, as at the end of the path."""
    rng = np.random.default_rng(2)
    F = rng.normal(size=(40, 4))
    delta = np.where(np.arange(40) < 4, 1e-14, 1e10)
    right = rng.normal(size=(40, 1))
    x = ProductForm([(slice(0, 40), F)], delta, 4).solve(right)
    residual = F @ (F.T @ x) + delta[:, None] * x - right
    S = 1.0 / delta[:, None]
    core = np.eye(4) + F.T @ (S * F)
    woodbury = S * right - S * (F @ np.linalg.solve(core, F.T @ (S * right)))
    other = F @ (F.T @ woodbury) + delta[:, None] * woodbury - right
    assert np.abs(residual).max() < 1e-8
    assert np.abs(residual).max() < 1e-3 * np.abs(other).max()


@pytest.mark.parametrize("held", [False, True])
def test_blocks_and_subsets_of_a_factor_are_the_matrix(held, monkeypatch):
    from mercer.solvers.quadratic import thin_barrier

    rng = np.random.default_rng(3)
    F = rng.normal(size=(200, 3))
    K = F @ F.T + 2.0
    monkeypatch.setattr(thin_barrier, "BLOCK_VALUES", 100)
    thin = ThinMatrix(F, 2.0).wide() if held else ThinMatrix(F, 2.0)
    V = rng.normal(size=(200, 2))
    np.testing.assert_allclose(thin @ V, K @ V, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(thin.diagonal(), np.diagonal(K), rtol=1e-12)
    some = rng.permutation(200)[:70]
    np.testing.assert_allclose(thin.at(some) @ V[:70], K[np.ix_(some, some)] @ V[:70], rtol=1e-10, atol=1e-10)
    system = ThinBarrierSystem(thin.at(some), np.arange(70))
    system.factor(np.full(70, 0.5))
    np.testing.assert_allclose(
        system.solve(V[:70]), np.linalg.solve(K[np.ix_(some, some)] + 0.5 * np.eye(70), V[:70]), atol=1e-8
    )


def test_a_factor_in_single_precision_is_widened_once_where_there_is_room(monkeypatch):
    X, y = points()
    problem = RegularisedRisk(LowRankGram.from_factors(X.astype(np.float32)), y, Hinge(), 1.0)
    widened = []
    wide = ThinMatrix.wide
    monkeypatch.setattr(ThinMatrix, "wide", lambda self: widened.append(self.shape) or wide(self))
    roomy = interior_point.solve(problem, tol=1e-9)
    assert widened == [(300, 300)]
    needed = thin_bytes(problem.program(), 6)
    tight = interior_point.solve(problem, tol=1e-9, memory=needed)
    assert len(widened) == 1
    np.testing.assert_allclose(tight.variables, roomy.variables, atol=1e-9)
    with pytest.raises(BudgetTooSmall):
        interior_point.solve(problem, tol=1e-9, memory=needed - 1)


@pytest.mark.parametrize("bias", ["free", "penalised"])
def test_a_factor_on_disk_gives_the_same_machine(tmp_path, bias):
    X, y = points()
    path = tmp_path / "factor.npy"
    np.save(path, X)
    mapped = np.load(path, mmap_mode="r")
    gram = LowRankGram.from_factors(mapped)
    assert ThinMatrix(gram.factor()).on_disk
    there = interior_point.solve(RegularisedRisk(gram, y, Hinge(), 1.0, None, bias), tol=1e-9)
    here = interior_point.solve(RegularisedRisk(LowRankGram.from_factors(X), y, Hinge(), 1.0, None, bias), tol=1e-9)
    np.testing.assert_allclose(there.variables, here.variables, atol=1e-6)
    assert there.primal == pytest.approx(here.primal, rel=1e-12)


def test_a_factor_on_disk_needs_no_room_for_itself(tmp_path):
    X, y = points(n=4000, d=20)
    np.save(tmp_path / "factor.npy", X)
    gram = LowRankGram.from_factors(np.load(tmp_path / "factor.npy", mmap_mode="r"))
    held = LowRankGram.from_factors(X)
    budget = 2 * X.nbytes + 10_000
    assert interior_point.accepts(RegularisedRisk(gram, y, Hinge()), memory=budget)
    assert not interior_point.accepts(RegularisedRisk(held, y, Hinge()), memory=budget)


def test_machines_with_a_linear_kernel_go_through_the_factor():
    X, y = points(n=400)
    thin = SVC(kernel="linear", solver="interior_point").fit(X, y)
    assert thin.solution_.details["factorisation"].startswith(("woodbury", "product form"))
    whole = SVC(kernel="precomputed", solver="interior_point").fit(X @ X.T, y)
    assert whole.solution_.details["factorisation"] == "cholesky"
    assert thin.objective_ == pytest.approx(whole.objective_, rel=1e-7)
    assert thin.gap_ <= 1e-6 * thin.objective_
    t = X[:, 0] + 0.1 * y
    regression = SVR(kernel="linear", solver="interior_point", epsilon=0.05).fit(X, t)
    exact = interior_point.solve(
        RegularisedRisk(LowRankGram.from_factors(X), t, EpsilonInsensitive(0.05), 1.0), tol=1e-9
    )
    assert regression.objective_ == pytest.approx(exact.primal, rel=1e-6)


def test_iterations_do_not_grow_with_the_number_of_points():
    """Problem 10.10: n p^2 operations an iteration, and as many iterations at ten times the points, or nearly."""
    counts = []
    for n in (200, 2000):
        X, y = points(n=n, d=5)
        counts.append(
            interior_point.solve(RegularisedRisk(LowRankGram.from_factors(X), y, Hinge()), tol=1e-8).iterations
        )
    assert counts[1] <= 2 * counts[0]
