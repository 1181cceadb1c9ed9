"""Streams against the rules written out one step after the other, and their long run against batch optima."""

import math
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from mercer import SVC, Gaussian
from mercer.errors import BudgetTooSmall
from mercer.solvers.monitor import Monitor
from mercer.solvers.online import Rule, Schedule, Stream
from mercer.solvers.online.stream import BLOCK, room

KERNEL = Gaussian(sigma=1.2)


def circles(n: int, seed: int = 0, noise: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, 2))
    y = np.where((X**2).sum(axis=1) > 1.4, 1.0, -1.0)
    return X, np.where(random.random(n) < noise, -y, y)


def sine(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    X = random.uniform(-2.0, 2.0, (n, 1))
    return X, np.sin(2.0 * X[:, 0]) + 0.2 * random.standard_normal(n)


def written_out(rule, schedule, X, y, nu, biased, width, weights):
    """All coefficients (n,), bias and width, by the table of the source: nothing is dropped and each decay is done."""
    K, a, b, t = KERNEL(X, X), np.zeros(len(X)), 0.0, 0
    for i in range(len(X)):
        if weights[i] == 0.0:
            continue
        t += 1
        step, w = schedule.size(t), weights[i]
        g = K[i] @ a + b
        a *= 1.0 - schedule.regularisation * step
        if rule is Rule.HINGE:
            new = y[i] if y[i] * g < 1.0 else 0.0
        elif rule is Rule.PERCEPTRON:
            new = y[i] if y[i] * g <= 0.0 else 0.0
        elif rule is Rule.NU:
            hit = y[i] * g < width
            new = y[i] if hit else 0.0
            width += w * step * nu if not hit else -w * step * (1.0 - nu)
        elif rule is Rule.SQUARED:
            new = y[i] - g
        else:
            hit = abs(y[i] - g) > width
            new = np.sign(y[i] - g) if hit else 0.0 if rule is Rule.TUBE else (y[i] - g) / width
            if nu:
                width = max(width + w * step * ((1.0 - nu) if hit else -nu), 0.0)
        a[i] = w * step * new
        b += w * step * new if biased else 0.0
    return a, b, width


def whole(stream: Stream, n: int, output: int = 0) -> np.ndarray:
    a = np.zeros(n)
    a[stream.numbers] = stream.coefficients[output]
    return a


@pytest.mark.parametrize("rule", list(Rule), ids=lambda rule: rule.name)
@settings(max_examples=8, deadline=None)
@given(
    name=st.sampled_from(["constant", "inverse_sqrt", "inverse"]),
    regularisation=st.floats(0.0, 0.9),
    nu=st.sampled_from([0.1, 0.5]),
    biased=st.booleans(),
    block=st.sampled_from([1, 7, 64]),
    seed=st.integers(0, 5),
)
def test_blocks_and_lazy_decay_give_what_single_steps_give(rule, name, regularisation, nu, biased, block, seed):
    X, y = circles(90, seed) if rule <= Rule.PERCEPTRON else sine(90, seed)
    weights = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 2.0], 90)
    # A width that shrinks to nothing would divide rounding errors by it.
    schedule = Schedule(name, 0.05 if rule is Rule.HUBER else 0.8, regularisation)
    stream = Stream(KERNEL, rule, schedule, 1, 1000, nu=nu, biased=biased, width=np.array([0.3]), block=block)
    stream.learn(X[:40], y[None, :40], weights[:40])
    stream.learn(X[40:], y[None, 40:], weights[40:])
    a, b, width = written_out(rule, schedule, X, y, nu, biased, 0.3, weights)
    np.testing.assert_allclose(whole(stream, 90), a, atol=1e-10)
    assert stream.bias[0] == pytest.approx(b, abs=1e-10)
    if rule in (Rule.NU, Rule.TUBE, Rule.HUBER):
        assert stream.width[0] == pytest.approx(width, abs=1e-10)
    assert stream.steps == np.count_nonzero(weights)
    assert stream.seen == 90


def test_a_decay_that_underflows_in_one_block_does_no_harm():
    X, y = circles(300)
    stream = Stream(KERNEL, Rule.HINGE, Schedule("constant", 0.999, 1.0), 1, 1000, block=256)
    stream.learn(X, y[None], np.ones(300))
    a, b, _ = written_out(Rule.HINGE, Schedule("constant", 0.999, 1.0), X, y, 0.0, True, 0.0, np.ones(300))
    np.testing.assert_allclose(whole(stream, 300), a, atol=1e-12)
    assert stream.bias[0] == pytest.approx(b)


def test_several_outputs_are_machines_of_their_own_on_shared_points():
    X, y = circles(200)
    targets = np.array([y, -y, np.sign(X[:, 0])])
    schedule = Schedule("inverse_sqrt", 1.0, 0.1)
    together = Stream(KERNEL, Rule.HINGE, schedule, 3, 500)
    together.learn(X, targets, np.ones(200))
    for m in range(3):
        alone = Stream(KERNEL, Rule.HINGE, schedule, 1, 500)
        alone.learn(X, targets[m : m + 1], np.ones(200))
        np.testing.assert_allclose(whole(together, 200, m), whole(alone, 200), atol=1e-12)


def test_sparse_points_and_objects_learn_like_dense_ones():
    X, y = circles(150)
    machines = []
    for points in (X, sp.csr_matrix(X)):
        stream = Stream(KERNEL, Rule.HINGE, Schedule("constant", 0.5, 0.1), 1, 60, block=32)
        stream.learn(points, y[None], np.ones(150))
        machines.append(stream)
    np.testing.assert_allclose(machines[0].coefficients, machines[1].coefficients, atol=1e-10)
    assert sp.issparse(machines[1].points)


# Truncation --------------------------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(
    rule=st.sampled_from([Rule.HINGE, Rule.NU, Rule.SQUARED, Rule.TUBE]),
    name=st.sampled_from(["constant", "inverse_sqrt", "inverse"]),
    regularisation=st.floats(0.02, 0.9),
    budget=st.integers(1, 40),
    block=st.sampled_from([1, 16, 64]),
    seed=st.integers(0, 20),
)
def test_the_terms_dropped_are_no_longer_than_the_bounds_say(rule, name, regularisation, budget, block, seed):
    """Proposition 10.8 for any schedule: ||f - f_kept|| <= sum of what was dropped <= S R / lambda (products)."""
    X, y = circles(120, seed) if rule <= Rule.PERCEPTRON else sine(120, seed)
    schedule = Schedule(name, 0.9, regularisation)
    stream = Stream(KERNEL, rule, schedule, 1, budget, nu=0.3, width=np.array([0.2]), block=block)
    kept: list[np.ndarray] = []
    everything = np.zeros(120)  # the coefficients of all terms, those dropped too
    for i in range(120):
        stream.learn(X[i : i + 1], y[None, i : i + 1], np.ones(1))
        everything *= 1.0 - regularisation * schedule.size(i + 1)
        now = whole(stream, 120)
        everything[i] = now[i]
        kept.append(stream.numbers)
    assert max(map(len, kept)) <= budget
    lost = everything - now
    norm = math.sqrt(max(0.0, float(lost @ KERNEL(X, X) @ lost)))
    assert norm <= stream.truncation_error * (1.0 + 1e-9) + 1e-12
    assert stream.truncation_error <= stream.truncation_bound * (1.0 + 1e-9) + 1e-12


def test_the_newest_terms_are_kept():
    X, y = sine(100)
    stream = Stream(KERNEL, Rule.SQUARED, Schedule("constant", 0.5, 0.1), 1, 17)
    stream.learn(X, y[None], np.ones(100))
    np.testing.assert_array_equal(stream.numbers, np.arange(83, 100))
    assert 0.0 < stream.truncation_error <= stream.truncation_bound


def test_nothing_dropped_is_no_error():
    X, y = circles(50)
    stream = Stream(KERNEL, Rule.HINGE, Schedule("constant", 0.5, 0.1), 1, 50)
    stream.learn(X, y[None], np.ones(50))
    assert stream.truncation_error == stream.truncation_bound == 0.0


def test_without_regularisation_a_term_that_is_dropped_is_lost_for_good():
    X, y = circles(80)
    stream = Stream(KERNEL, Rule.HINGE, Schedule("constant", 0.5, 0.0), 1, 5)
    stream.learn(X, y[None], np.ones(80))
    assert stream.truncation_error == stream.truncation_bound > 1.0


# The long run ------------------------------------------------------------------------------------------------------


def test_the_kernel_perceptron_moves_on_mistakes_alone():
    X, y = circles(400)
    away = np.abs((X**2).sum(axis=1) - 1.4) > 0.3  # a margin, so that the number of mistakes is bounded
    X, y = X[away], y[away]
    stream = Stream(KERNEL, Rule.PERCEPTRON, Schedule("constant", 1.0, 0.0), 1, 1000)
    stream.learn(X, y[None], np.ones(len(X)))
    assert np.abs(stream.coefficients).tolist() == [[1.0] * len(stream.numbers)]
    assert len(stream.numbers) == round(stream.mistakes * len(X)) > 0
    for _ in range(10):
        before = len(stream.numbers)
        stream.learn(X, y[None], np.ones(len(X)))
    assert len(stream.numbers) == before  # the classes are separable: in the end there are no mistakes


@pytest.mark.parametrize("nu", [0.05, 0.2, 0.5])
def test_in_the_long_run_a_share_nu_of_the_points_is_novel(nu):
    X = np.random.default_rng(0).standard_normal((8000, 2))
    stream = Stream(KERNEL, Rule.NU, Schedule("inverse_sqrt", 1.0, 0.5), 1, 1000, nu=nu, biased=False)
    stream.learn(X, np.ones((1, 8000)), np.ones(8000))
    assert stream.mistakes == pytest.approx(nu, abs=0.01)
    assert stream.width[0] > 0.0


@pytest.mark.parametrize("rule", [Rule.TUBE, Rule.HUBER], ids=lambda rule: rule.name)
@pytest.mark.parametrize("nu", [0.1, 0.4])
def test_the_width_settles_where_a_share_nu_of_the_residuals_lies_beyond(rule, nu):
    X, y = sine(6000)
    stream = Stream(KERNEL, rule, Schedule("inverse_sqrt", 0.5, 0.01), 1, 6000, nu=nu, width=np.array([0.1]))
    stream.learn(X[:3000], y[None, :3000], np.ones(3000))
    stream.count_anew()
    stream.learn(X[3000:], y[None, 3000:], np.ones(3000))
    assert stream.mistakes == pytest.approx(nu, abs=0.02)


def test_the_share_of_margin_errors_of_nu_classification_is_nu():
    X, y = circles(6000, noise=0.1)
    stream = Stream(KERNEL, Rule.NU, Schedule("inverse_sqrt", 1.0, 0.01), 1, 3000, nu=0.4)
    stream.learn(X, y[None], np.ones(6000))
    assert stream.mistakes == pytest.approx(0.4, abs=0.02)
    assert stream.width[0] > 0.0


def passes(rule, X, y, regularisation, number, width=0.0):
    stream = Stream(
        KERNEL, rule, Schedule("inverse", 1.0, regularisation), 1, 10**6, biased=False, width=np.array([width])
    )
    random = np.random.default_rng(0)
    a = []
    for _ in range(number):
        order = random.permutation(len(X))
        stream.learn(X[order], y[None, order], np.ones(len(X)))
        values = KERNEL(X, stream.points) @ stream.coefficients[0]
        norm = float(stream.coefficients[0] @ KERNEL(stream.points, stream.points) @ stream.coefficients[0])
        a.append((values, norm))
    return a


def test_the_soft_margin_approaches_the_optimum_of_the_batch():
    n, regularisation = 120, 0.02
    X, y = circles(n, noise=0.05)
    best = SVC(kernel=KERNEL, C=1.0 / (regularisation * n), bias="none", tol=1e-8).fit(X, y).objective_
    optimum = regularisation * best  # C sum + 1/2 norm is 1/lambda times mean + lambda/2 norm
    found = [
        float(np.maximum(0.0, 1.0 - y * values).mean()) + 0.5 * regularisation * norm
        for values, norm in passes(Rule.HINGE, X, y, regularisation, 30)
    ]
    assert min(found) >= optimum * (1.0 - 1e-6)
    assert found[-1] <= 1.02 * optimum
    assert found[-1] < found[0]


def test_hubers_loss_approaches_the_optimum_of_the_batch():
    n, regularisation, sigma = 80, 0.05, 0.3
    X, y = sine(n)
    K = KERNEL(X, X)

    def objective(a: np.ndarray) -> tuple[float, np.ndarray]:
        values = K @ a
        r = np.abs(y - values)
        cost = np.where(r > sigma, r - 0.5 * sigma, 0.5 * r * r / sigma).mean() + 0.5 * regularisation * a @ values
        pull = np.clip((values - y) / sigma, -1.0, 1.0) / n
        return float(cost), K @ (pull + regularisation * a)

    optimum = minimize(objective, np.zeros(n), jac=True, method="L-BFGS-B", options={"maxiter": 5000}).fun
    values, norm = passes(Rule.HUBER, X, y, regularisation, 30, width=sigma)[-1]
    r = np.abs(y - values)
    found = np.where(r > sigma, r - 0.5 * sigma, 0.5 * r * r / sigma).mean() + 0.5 * regularisation * norm
    assert optimum - 1e-8 <= found <= 1.02 * optimum


def test_a_constant_rate_recovers_after_the_target_has_changed():
    X, y = circles(4000)
    y[2000:] *= -1.0
    stream = Stream(KERNEL, Rule.HINGE, Schedule("constant", 0.3, 0.02), 1, 1000)
    shares = []
    for start in range(0, 4000, 500):
        stream.count_anew()
        stream.learn(X[start : start + 500], y[None, start : start + 500], np.ones(500))
        shares.append(stream.mistakes)
    assert shares[3] < 0.12
    assert shares[4] > 2.0 * shares[3]
    assert shares[7] < 0.12


def test_support_vectors_grow_with_the_points_where_the_risk_stays_positive():
    """Problem 10.18: the number of support vectors is at least proportional to n."""
    counts = []
    for n in (250, 500, 1000):
        X, y = circles(n, noise=0.2)
        counts.append(SVC(kernel=KERNEL).fit(X, y).n_support_.sum())
    for fewer, more in pairwise(counts):
        assert 1.7 < more / fewer < 2.3


# Memory and interruption -------------------------------------------------------------------------------------------


def test_what_is_held_follows_from_the_memory():
    terms, rows = room(None, 20, 10 << 20)
    assert terms > 10_000
    assert 8 * 3 * 21 * terms + 8 * rows * terms <= 10 << 20
    assert room(1000, 20, 1 << 30) == (1000, BLOCK)
    assert room(1000, 20, 1 << 20)[1] < BLOCK
    with pytest.raises(BudgetTooSmall, match="lower budget, or raise memory"):
        room(10_000, 20, 1 << 20)


def test_a_monitor_ends_the_learning_between_two_blocks():
    X, y = circles(1000)
    stream = Stream(KERNEL, Rule.HINGE, Schedule("constant", 0.5, 0.1), 1, 500, block=100)
    monitor = Monitor(callback=lambda record: record.iteration >= 300)
    assert not stream.learn(X, y[None], np.ones(1000), monitor)
    assert stream.steps == 300
    assert [record.iteration for record in monitor.history] == [100, 200, 300]
    assert all(math.isnan(record.gap) for record in monitor.history)
