"""Every update rule is a gradient of its loss, or follows a quantile where it says so."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import InvalidInput
from mercer.solvers.online import RULES, SCHEDULES, Rule, Schedule, terms_for
from mercer.solvers.online.rules import loss, moved_width, slope

NUDGE = 1e-6
outputs = st.floats(-3.0, 3.0)
signs = st.sampled_from([-1.0, 1.0])
widths = st.floats(0.05, 2.0)
shares = st.floats(0.05, 0.95)


def difference(function, at: float) -> float:
    return (function(at + NUDGE) - function(at - NUDGE)) / (2.0 * NUDGE)


def far_from_kinks(rule: Rule, y: float, g: float, width: float) -> bool:
    places = (
        [{"HINGE": 1.0, "NU": width, "PERCEPTRON": 0.0}[rule.name] - y * g]
        if rule <= Rule.PERCEPTRON
        else [abs(y - g) - width, y - g]
    )
    return all(abs(place) > 1e-4 for place in places)


@pytest.mark.parametrize("rule", list(Rule), ids=lambda rule: rule.name)
@settings(deadline=None)
@given(y=signs, target=outputs, g=outputs, width=widths, nu=shares)
def test_the_slope_is_minus_the_derivative_of_the_loss(rule, y, target, g, width, nu):
    y = y if rule <= Rule.PERCEPTRON else target
    if far_from_kinks(rule, y, g, width):
        assert slope(rule, y, g, width) == pytest.approx(
            -difference(lambda t: loss(rule, y, t, width, nu), g), abs=1e-5
        )


@pytest.mark.parametrize("rule", [Rule.NU, Rule.TUBE], ids=lambda rule: rule.name)
@settings(deadline=None)
@given(y=signs, g=outputs, width=widths, nu=shares)
def test_margin_and_tube_move_against_the_derivative_of_the_loss(rule, y, g, width, nu):
    if far_from_kinks(rule, y, g, width):
        derivative = difference(lambda t: loss(rule, y, g, t, nu), width)
        assert moved_width(rule, y, g, width, nu, 1e-3) - width == pytest.approx(-1e-3 * derivative, abs=1e-8)


@settings(deadline=None)
@given(y=outputs, g=outputs, width=widths, nu=shares)
def test_the_width_of_hubers_loss_follows_the_quantile_of_the_residuals(y, g, width, nu):
    moved = moved_width(Rule.HUBER, y, g, width, nu, 0.01) - width
    assert moved == pytest.approx(0.01 * ((abs(y - g) > width) - nu))


@pytest.mark.parametrize("rule", [Rule.TUBE, Rule.HUBER], ids=lambda rule: rule.name)
def test_a_width_without_nu_stays_and_one_that_shrinks_stops_at_zero(rule):
    assert moved_width(rule, 5.0, 0.0, 0.3, 0.0, 0.5) == 0.3
    assert 0.0 <= moved_width(rule, 0.1, 0.0, 0.2, 0.9, 0.5) < 1e-6
    assert math.isfinite(slope(rule, 0.0, 0.0, moved_width(rule, 0.1, 0.0, 0.2, 0.9, 0.5)))


def test_hubers_loss_has_no_jump_where_its_two_parts_meet():
    inside, outside = (loss(Rule.HUBER, 0.0, 0.7 + shift, 0.7, 0.0) for shift in (-1e-12, 1e-12))
    assert inside == pytest.approx(outside, abs=1e-11)
    assert inside == pytest.approx(0.35)


def test_every_rule_and_schedule_has_a_name():
    assert [int(rule) for rule in RULES.values()] == list(range(6))
    assert set(RULES) == {"hinge", "nu", "perceptron", "squared", "tube", "huber"}
    assert set(SCHEDULES) == {"constant", "inverse_sqrt", "inverse"}


def test_the_schedules_are_what_they_say():
    assert Schedule("constant", 0.5, 0.1).size(100) == 0.5
    assert Schedule("inverse_sqrt", 0.5, 0.1).size(100) == pytest.approx(0.05)
    assert Schedule("inverse", 0.5, 0.1).size(100) == pytest.approx(0.5 / 6.0)


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (("constant", 2.0, 0.5), "lower rate or regularisation"),
        (("sideways", 1.0, 0.5), "one of constant"),
        (("constant", 0.0, 0.5), "rate must be positive"),
        (("constant", 1.0, -0.5), "not negative"),
    ],
)
def test_steps_that_turn_f_around_are_refused(arguments, remedy):
    with pytest.raises(InvalidInput, match=remedy):
        Schedule(*arguments)


@settings(deadline=None)
@given(
    error=st.floats(1e-6, 10.0), rate=st.floats(0.01, 1.0), regularisation=st.floats(0.01, 0.9),
    slope=st.floats(0.1, 3.0), radius=st.floats(0.1, 3.0),
)  # fmt: skip
def test_the_number_of_terms_is_the_smallest_that_the_printed_bound_allows(error, rate, regularisation, slope, radius):
    tau = terms_for(error, rate=rate, regularisation=regularisation, slope=slope, radius=radius)

    def bound(steps: int) -> float:
        return slope * radius / regularisation * (1.0 - regularisation * rate) ** steps

    assert bound(tau) <= error * (1.0 + 1e-9)
    assert tau == 0 or bound(tau - 1) >= error * (1.0 - 1e-9)


@pytest.mark.parametrize("options", [{"error": 0.0}, {"regularisation": 0.0}, {"rate": 2.0, "regularisation": 1.0}])
def test_a_bound_that_does_not_exist_is_refused(options):
    with pytest.raises(InvalidInput):
        terms_for(**({"error": 0.1, "rate": 0.1, "regularisation": 0.1} | options))
