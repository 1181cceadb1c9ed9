"""Graves-Morris acceleration: exact on geometric sequences in the corrected form, off by a step in the printed one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.kernels import Gaussian
from mercer.solvers.linear import stationary
from mercer.solvers.linear.acceleration import GravesMorris, graves_morris

from .linear_system_cases import make


def scalar_sequence(l):
    return np.array([[1 - 0.9**l]])


@pytest.mark.parametrize("l", [2, 5, 30])
def test_it_is_exact_on_a_geometric_sequence(l):
    three = [scalar_sequence(i) for i in (l - 2, l - 1, l)]
    assert graves_morris(*three)[0, 0] == pytest.approx(1.0, abs=1e-12)


def test_the_printed_anchor_misses_the_limit():
    three = [scalar_sequence(i) for i in (0, 1, 2)]
    assert graves_morris(*three, anchor="printed")[0, 0] == pytest.approx(1.09, abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(rate=st.floats(-0.95, 0.95), seed=st.integers(0, 10**6))
def test_vectors_that_shrink_by_one_factor_reach_their_limit(rate, seed):
    rng = np.random.default_rng(seed)
    limit, first = rng.normal(size=(6, 3)), rng.normal(size=(6, 3))
    three = [limit + first * rate**l for l in range(3)]
    np.testing.assert_allclose(graves_morris(*three), limit, atol=1e-9)


def test_a_sequence_that_stands_still_is_left_alone():
    Z = np.random.default_rng(0).normal(size=(4, 2))
    np.testing.assert_array_equal(graves_morris(Z, Z, Z), Z)
    constant_steps = [Z, Z + 1.0, Z + 2.0]
    np.testing.assert_array_equal(graves_morris(*constant_steps), Z + 2.0)


def test_restart_feeds_the_estimate_back_and_monitor_does_not():
    iterates = [scalar_sequence(l) for l in range(6)]
    restart, monitor = GravesMorris("restart"), GravesMorris("monitor")
    fed = [restart.push(Z)[0][0, 0] for Z in iterates[:3]]
    assert fed == pytest.approx([0.0, 0.1, 1.0])
    pairs = [monitor.push(Z) for Z in iterates]
    for (goes_on, estimate), Z in zip(pairs[2:], iterates[2:], strict=True):
        np.testing.assert_array_equal(goes_on, Z)
        assert estimate[0, 0] == pytest.approx(1.0)


def counts(problem, block, acceleration, anchor="corrected"):
    return stationary.solve(
        problem, tol=None, increment=1e-10, block=block, acceleration=acceleration, anchor=anchor, iterations=20_000
    ).iterations


def test_acceleration_cuts_sweeps_most_where_blocks_are_small():
    # Hamers 2004, section 3.4.4 and figure 3.3.
    problem = make(Gaussian(2.0), n=90, d=13, C=1.0, k=1)
    plain = [counts(problem, block, "none") for block in (1, 10, 30)]
    faster = [counts(problem, block, "restart") for block in (1, 10, 30)]
    assert all(b < a for a, b in zip(plain, faster, strict=True))
    assert plain[0] - faster[0] >= plain[2] - faster[2]
    # Less depends on the block size once accelerated.
    assert faster[0] - faster[2] <= plain[0] - plain[2]


def test_the_corrected_anchor_needs_no_more_sweeps_than_the_printed_one():
    problem = make(Gaussian(2.0), n=90, d=13, C=1.0, k=1)
    for block in (1, 30):
        assert counts(problem, block, "restart") <= counts(problem, block, "restart", "printed")


def test_acceleration_lowers_the_sensitivity_to_omega():
    problem = make(n=60, d=5, C=2.0, k=1)
    spread = {}
    for mode in ("none", "restart"):
        steps = [
            stationary.solve(problem, tol=None, increment=1e-8, omega=omega, acceleration=mode).iterations
            for omega in (0.4, 1.0, 1.6)
        ]
        spread[mode] = max(steps) - min(steps)
    assert spread["restart"] < spread["none"]
