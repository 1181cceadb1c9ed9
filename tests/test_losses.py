"""Losses against finite differences, Fenchel-Young and brute-force conjugates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import InvalidInput
from mercer.losses import (
    Absolute,
    EpsilonInsensitive,
    Expectile,
    Exponential,
    Hinge,
    Huber,
    Logistic,
    Loss,
    Perceptron,
    Quantile,
    Square,
    SquaredEpsilonInsensitive,
    SquaredHinge,
    ZeroOne,
)

MARGIN: list[Loss] = [Hinge(), SquaredHinge(), Perceptron(), Logistic(), Exponential()]
RESIDUAL: list[Loss] = [
    Square(),
    Absolute(),
    EpsilonInsensitive(0.3),
    SquaredEpsilonInsensitive(0.3),
    Huber(0.7),
    Huber(0.7, "curvature"),
    Quantile(0.2),
    Expectile(0.8),
]
LOSSES = MARGIN + RESIDUAL
KINKS = np.array([-1.0, -0.7, -0.3, 0.0, 0.3, 0.7, 1.0])


def targets(loss: Loss) -> np.ndarray:
    return np.array([-1.0, 1.0]) if loss.classification else np.array([-2.0, 0.0, 1.3])


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_slope_and_curvature_are_the_derivatives_away_from_kinks(loss):
    f = np.linspace(-4, 4, 401) + 0.00123
    for y in targets(loss):
        place = y * f if loss.classification else f - y
        away = np.abs(place[:, None] - KINKS).min(axis=1) > 2e-3
        step = 1e-5
        slope = (loss.value(y, f + step) - loss.value(y, f - step)) / (2 * step)
        np.testing.assert_allclose(loss.slope(y, f)[away], slope[away], rtol=1e-6, atol=1e-7)
        curvature = (loss.slope(y, f + step) - loss.slope(y, f - step)) / (2 * step)
        np.testing.assert_allclose(loss.curvature(y, f)[away], curvature[away], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@settings(max_examples=30, deadline=None)
@given(f=st.floats(-5, 5), other=st.floats(-5, 5), which=st.integers(0, 2))
def test_fenchel_young_holds_and_is_tight_at_the_slope(loss, f, other, which):
    y = targets(loss)[which % len(targets(loss))]
    u = float(loss.slope(y, other))
    scale = 1 + abs(u * f) + float(loss.value(y, f)) + float(loss.value(y, other))
    assert loss.value(y, f) + loss.conjugate(y, u) - u * f >= -1e-12 * scale
    assert loss.value(y, other) + loss.conjugate(y, u) - u * other == pytest.approx(0, abs=1e-12 * scale)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_conjugate_is_the_supremum(loss):
    f = np.linspace(-60, 60, 240001)
    for y in targets(loss):
        low, high = loss.dual_box(y, 1.0)
        for s in np.linspace(max(low, -1.5), min(high, 1.5), 9):
            u = -s
            brute = (u * f - loss.value(y, f)).max()
            assert float(loss.conjugate(y, u)) == pytest.approx(brute, abs=1e-5)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_conjugate_is_infinite_outside_the_dual_box(loss):
    for y in targets(loss):
        low, high = (float(b) for b in loss.dual_box(y, 2.0))
        if np.isfinite(low):
            assert np.isinf(loss.conjugate(y, -(low - 1e-9) / 2.0))
        if np.isfinite(high):
            assert np.isinf(loss.conjugate(y, -(high + 1e-9) / 2.0))
        inner = np.clip(np.array([-0.1, 0.0, 0.1]), low, high)
        assert np.isfinite(loss.conjugate(y, -inner / 2.0)).all()


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_lipschitz_constant_bounds_every_slope_and_is_approached(loss):
    f = np.linspace(-50, 50, 1001)
    steepest = max(np.abs(loss.slope(y, f)).max() for y in targets(loss))
    assert steepest <= loss.lipschitz
    assert np.isinf(loss.lipschitz) or steepest == pytest.approx(loss.lipschitz, rel=1e-6)


def test_huber_is_continuously_differentiable_at_its_threshold_in_both_scalings():
    for loss in (Huber(0.7), Huber(0.7, "curvature")):
        for edge in (-0.7, 0.7):
            inside, outside = edge * (1 - 1e-9), edge * (1 + 1e-9)
            assert loss.value(0.0, inside) == pytest.approx(float(loss.value(0.0, outside)), abs=1e-8)
            assert loss.slope(0.0, inside) == pytest.approx(float(loss.slope(0.0, outside)), abs=1e-8)
    r = np.linspace(-3, 3, 50)
    np.testing.assert_allclose(Huber(0.7, "curvature").value(0, r), 0.7 * Huber(0.7).value(0, r))
    np.testing.assert_allclose(Huber(0.7, "curvature").value(0, r)[np.abs(r) < 0.7], (0.5 * r**2)[np.abs(r) < 0.7])


def test_quantile_loss_is_minimised_by_the_quantile():
    y = np.random.default_rng(0).exponential(size=501)
    grid = np.linspace(0, 4, 4001)
    best = grid[np.argmin([Quantile(0.3).value(y, g).sum() for g in grid])]
    assert best == pytest.approx(np.quantile(y, 0.3), abs=5e-3)


def test_zero_one_loss_is_for_evaluation_only():
    np.testing.assert_array_equal(ZeroOne().value([1, -1, 1, 1], [0.5, 0.5, 0.0, -2.0]), [0, 1, 1, 1])
    for use in (ZeroOne().slope, ZeroOne().curvature, ZeroOne().conjugate, ZeroOne().dual_box):
        with pytest.raises(InvalidInput, match="evaluation"):
            use(1.0, 1.0)


def test_stable_at_extreme_margins():
    assert Logistic().value(1.0, -800.0) == pytest.approx(800.0)
    assert Logistic().value(1.0, 800.0) == pytest.approx(0.0, abs=1e-300)
    assert np.isfinite(Logistic().slope(1.0, np.array([-1e4, 1e4]))).all()


def test_bad_parameters_are_refused():
    for make in (lambda: Huber(0.0), lambda: Quantile(1.0), lambda: EpsilonInsensitive(-1.0), lambda: Expectile(0.0)):
        with pytest.raises(InvalidInput):
            make()


def test_dual_box_of_weight_zero_is_a_point():
    for loss in LOSSES:
        low, high = loss.dual_box(1.0, 0.0)
        assert low == high == 0.0
