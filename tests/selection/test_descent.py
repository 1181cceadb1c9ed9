"""C and sigma by leave-one-out."""

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der

from mercer.errors import InvalidInput
from mercer.kernels import Matern
from mercer.selection.descent import search
from mercer.selection.families import OneWidth, Parameters, WidthPerFeature
from mercer.selection.leave_one_out import leave_one_out
from mercer.solvers.trust_region import descend


def wave(seed=0, n=120, d=1, noise=0.2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, d))
    return X, np.sin(2 * X[:, 0]) + noise * rng.standard_normal(n)


def test_no_point_of_a_fine_grid_is_better():
    X, y = wave()
    P = np.ones((len(X), 1))
    found = search(OneWidth(X), y, border=P)
    grid = [
        leave_one_out(OneWidth(X).matrix(np.array([sigma])), y, 1 / C, border=P).mean_squared_error
        for sigma in np.geomspace(0.05, 20, 25)
        for C in np.geomspace(1e-3, 1e6, 25)
    ]
    assert found.value <= min(grid) * 1.001


def test_the_surface_holds_every_evaluation_and_its_minimum_is_the_result():
    X, y = wave(1)
    found = search(OneWidth(X), y)
    values = [p.value for p in found.surface if p.stage in ("coarse", "full")]
    assert found.value == min(values)
    last = min(found.surface, key=lambda p: p.value)
    assert last.parameters == {"sigma": pytest.approx(found.kernel.sigma), "C": pytest.approx(found.C)}
    exact = leave_one_out(found.kernel(X), y, 1 / found.C)
    np.testing.assert_allclose(found.leave_one_out.residuals, exact.residuals, rtol=1e-7, atol=1e-9)


def test_a_given_C_is_kept_and_only_the_width_is_searched():
    X, y = wave(2)
    found = search(OneWidth(X), y, C=5.0)
    assert found.C == 5.0
    grid = [
        leave_one_out(OneWidth(X).matrix(np.array([s])), y, 0.2).mean_squared_error for s in np.geomspace(0.05, 20, 60)
    ]
    assert found.value <= min(grid) * 1.001


def test_a_sample_leads_the_way_and_few_full_evaluations_finish():
    X, y = wave(3, n=500)
    found = search(OneWidth(X), y, sample=100)
    stages = [p.stage for p in found.surface]
    assert stages.count("full") <= 8
    assert {p.points for p in found.surface} == {100, 500}
    alone = search(OneWidth(X), y, sample=500)
    assert found.value <= alone.value * 1.01
    assert found.leave_one_out is not None
    assert search(OneWidth(X), y, sample=100, largest=200).leave_one_out is None


def test_one_width_per_feature_finds_the_irrelevant_features():
    X, y = wave(4, n=150, d=4, noise=0.05)
    found = search(WidthPerFeature(X), y, border=np.ones((150, 1)))
    sigma = np.asarray(found.kernel.sigma)
    assert np.min(sigma[1:]) > 4 * sigma[0]
    assert found.value < search(OneWidth(X), y, border=np.ones((150, 1))).value


def test_other_kernels_and_gcv():
    X, y = wave(5, n=60)
    found = search(Parameters(Matern(sigma="loo", nu=1.5), X, ("sigma",)), y, criterion="gcv")
    assert isinstance(found.kernel, Matern)
    assert found.value < 0.5 * np.var(y)
    again = search(Parameters(Matern(sigma="loo", nu=1.5), X, ("sigma",)), y, criterion="gcv")
    assert again.C == found.C


def test_smooth_error_search_separates_two_moons():
    rng = np.random.default_rng(6)
    t = rng.uniform(0, np.pi, 80)
    side = np.repeat([1.0, -1.0], 40)
    X = np.column_stack([np.cos(t) * side + (side < 0), np.sin(t) * side - 0.3 * (side < 0)])
    found = search(OneWidth(X), side, criterion="smooth")
    assert found.leave_one_out.error_rate() <= 0.05
    assert all(p.stage != "coarse" for p in found.surface)


def test_points_of_no_weight_do_not_count():
    X, y = wave(7)
    y[::5] = 100.0
    w = np.where(np.arange(len(X)) % 5 == 0, 0.0, 1.0)
    used = w > 0
    found, alone = search(OneWidth(X), y, weights=w), search(OneWidth(X[used]), y[used])
    assert found.value == pytest.approx(alone.value, rel=1e-3)


def test_descent_follows_a_curved_valley():
    x, _ = descend(lambda x: (rosen(x), rosen_der(x)), np.array([-1.0, 1.5]), steps=200, tolerance=1e-14)
    np.testing.assert_allclose(x, 1.0, atol=1e-4)


def test_too_few_points_are_refused():
    with pytest.raises(InvalidInput, match="cannot choose"):
        search(OneWidth(np.zeros((1, 1))), [1.0], border=np.ones((1, 1)))
