"""Analytic derivatives of leave-one-out criteria against central differences."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.errors import InvalidInput
from mercer.kernels import Gaussian, Linear, Matern
from mercer.selection.families import OneWidth, Parameters, WidthPerFeature, distance_scale, family_of
from mercer.selection.gradients import evaluate
from mercer.selection.leave_one_out import leave_one_out


def problem(seed=0, n=35, d=3, k=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    Y = np.where(X[:, :k] + 0.7 * rng.standard_normal((n, k)) > 0, 1.0, -1.0)
    return X, Y, rng.uniform(0.3, 2.0, n)


SETTINGS = {
    "no bias": lambda X, w: {},
    "free bias": lambda X, w: {"border": np.ones((len(X), 1))},
    "penalised bias, weighted": lambda X, w: {"constant": 1.0, "weights": w},
    "semiparametric, some of no weight": lambda X, w: {
        "border": np.column_stack([np.ones(len(X)), X[:, 0]]),
        "weights": np.where(np.arange(len(X)) % 6 == 0, 0.0, w),
    },
}
FAMILIES = {
    "one width": OneWidth,
    "width per feature": WidthPerFeature,
    "any kernel": lambda X: Parameters(2.0 * Matern(sigma="loo", nu=2.5), X, ("kernel__sigma",)),
}


@pytest.mark.parametrize("criterion", ["loo", "smooth", "gcv"])
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", FAMILIES)
def test_gradient_equals_central_differences(name, setting, criterion):
    X, Y, w = problem()
    options = SETTINGS[setting](X, w) | {"criterion": criterion}
    family = FAMILIES[name](X)
    x = np.append(np.log(family.start), np.log(3.0))

    def value(x):
        return evaluate(family.matrix(np.exp(x[:-1])), Y, np.exp(x[-1]), **options).value

    K = family.matrix(family.start)
    found = evaluate(K, Y, 3.0, **options)
    gradient = np.append(family.slopes(family.start, K, found.by_matrix), found.by_log_C)
    h = 1e-5
    steps = np.eye(len(x)) * h
    differences = [(value(x + e) - value(x - e)) / (2 * h) for e in steps]
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_part_of_the_points_is_searched_from_the_start_of_all(name):
    X, _, _ = problem(2)
    index = np.arange(0, len(X), 3)
    family = FAMILIES[name](X * np.linspace(1.0, 4.0, len(X))[:, None])
    part = family.part(index)
    np.testing.assert_array_equal(part.start, family.start)
    np.testing.assert_allclose(part.matrix(family.start), family.matrix(family.start)[np.ix_(index, index)], rtol=1e-12)


def test_evaluation_carries_the_exact_leave_one_out():
    X, Y, w = problem(1)
    K = OneWidth(X).matrix(np.array([1.3]))
    options = {"border": np.ones((len(X), 1)), "weights": w}
    found, expected = evaluate(K, Y, 2.0, **options), leave_one_out(K, Y, 0.5, **options)
    np.testing.assert_allclose(found.leave_one_out.residuals, expected.residuals, rtol=1e-10)
    assert found.value == pytest.approx(expected.mean_squared_error)
    assert evaluate(K, Y, 2.0, criterion="gcv", **options).value == pytest.approx(expected.gcv)


def test_smooth_error_approaches_the_error_rate_for_large_margins():
    rng = np.random.default_rng(2)
    X = np.concatenate([rng.standard_normal((20, 2)) - 4, rng.standard_normal((20, 2)) + 4])
    y = np.repeat([-1.0, 1.0], 20)
    K = OneWidth(X).matrix(np.array([3.0]))
    assert evaluate(K, y, 10.0, criterion="smooth").value < 0.05


def test_families_agree_with_their_kernels_and_their_parts():
    X, _, _ = problem(3)
    index = np.arange(0, len(X), 2)
    for family in (OneWidth(X), WidthPerFeature(X), FAMILIES["any kernel"](X)):
        theta = family.start * 1.2
        np.testing.assert_allclose(family.matrix(theta), family.kernel(theta)(X), rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(
            family.part(index).matrix(theta), family.matrix(theta)[np.ix_(index, index)], rtol=1e-10, atol=1e-13
        )


def test_placeholders_name_the_family():
    X, _, _ = problem(4)
    assert isinstance(family_of(Gaussian(sigma="loo"), X), OneWidth)
    assert family_of(Gaussian(sigma="loo") + Linear(), X).names == ("left__sigma",)
    with pytest.raises(InvalidInput, match="no parameter to choose"):
        family_of(Gaussian(sigma=1.0), X)
    with pytest.raises(InvalidInput, match="dense"):
        WidthPerFeature(sp.csr_array(X))


def test_scale_of_distances_is_their_median_and_survives_equal_points():
    X = np.array([[0.0], [1.0], [3.0]])
    assert distance_scale(X) == 2.0
    assert distance_scale(np.zeros((4, 2))) == 1.0
    assert distance_scale(sp.csr_array(X)) == 2.0
