"""Coupled probabilities are the minimum of their divergence, also where binary ones contradict near 0 and 1."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize

from mercer.errors import InvalidInput, NotConverged
from mercer.multiclass import coupling
from mercer.multiclass.codes import make_code
from tests.multiclass.references import divergence

CODES = [("ava", 3), ("ava", 6), ("ova", 6), ("dense", 6), ("sparse", 8), ("ava", 26)]


def binary(kind, M, random, n=60):
    """Outputs r (n, F): near one p, without any sense, or certain and contradictory."""
    p = random.dirichlet(0.2 * np.ones(len(M)), size=n) + 1e-12
    r = (p @ (M > 0)) / (p @ (M != 0))
    if kind == "noisy":
        r = r + 0.1 * random.normal(size=r.shape)
    elif kind == "certain":
        r = np.where(random.uniform(size=r.shape) < 0.5, r, random.integers(0, 2, size=r.shape))
    else:
        r = random.uniform(size=r.shape)
    return np.clip(r, 1e-7, 1 - 1e-7)


@pytest.mark.parametrize("kind", ["noisy", "certain", "senseless"])
@pytest.mark.parametrize(("name", "k"), CODES)
def test_the_factor_of_every_class_is_one_or_the_class_is_gone(name, k, kind):
    random = np.random.default_rng(0)
    M = make_code(name, k, 0)
    r = binary(kind, M, random)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        p = coupling.from_code(M, r)
    assert p.sum(axis=1) == pytest.approx(np.ones(len(r)))
    up, down = (M > 0).astype(float), (M < 0).astype(float)
    plus, minus = p @ up, p @ down
    # By what the minorise-maximise step multiplies each probability: free of its scale.
    factor = ((r / plus) @ up.T + ((1 - r) / minus) @ down.T) / ((1 / (plus + minus)) @ (up + down).T)
    side = np.where(M > 0, plus[:, None, :], np.where(M < 0, minus[:, None, :], np.inf))
    gone = (p[:, :, None] / side).max(axis=2) <= 1e-9
    assert np.abs(factor - 1)[~gone].max() < 1e-7
    assert factor[gone].max(initial=0.0) <= 1 + 1e-7


@pytest.mark.parametrize("kind", ["noisy", "certain", "senseless"])
@pytest.mark.parametrize("name", ["ava", "ova", "dense"])
def test_no_general_minimiser_finds_a_lower_divergence(name, kind):
    random = np.random.default_rng(1)
    M = make_code(name, 5, 0)
    r = binary(kind, M, random, n=4)
    weights = random.integers(5, 50, size=M.shape[1]).astype(float)
    found = divergence(M, r, coupling.from_code(M, r, weights), weights)
    for i in range(len(r)):

        def value(theta, i=i):
            q = np.exp(np.maximum(theta - theta.max(), -600.0))
            plus, minus = q @ (M > 0), q @ (M < 0)
            mu, rest = plus / (plus + minus), minus / (plus + minus)
            return weights @ (r[i] * np.log(r[i] / mu) + (1 - r[i]) * np.log((1 - r[i]) / rest))

        best = min(
            minimize(value, start, method=method, options={"maxiter": 4000}).fun
            for method in ("BFGS", "Nelder-Mead")
            for start in (np.zeros(5), random.normal(size=5))
        )
        assert found[i] <= best * (1 + 1e-9) + 1e-9


def test_two_classes_keep_their_odds():
    r = np.array([[1e-7], [1e-3], [0.3], [0.5], [1 - 1e-7]])
    expected = np.column_stack([r[:, 0], 1 - r[:, 0]])
    assert coupling.from_code(np.array([[1], [-1]]), r) == pytest.approx(expected, rel=1e-9)


def test_a_circle_of_certain_pairs_is_a_tie():
    # 0 beats 1, 1 beats 2, 2 beats 0.
    p = coupling.from_code(make_code("ava", 3), [[1.0, 0.0, 1.0]])
    assert p == pytest.approx(np.full((1, 3), 1 / 3), rel=1e-9)


def test_probabilities_far_below_rounding_errors_have_their_relative_accuracy():
    k = 10
    M = make_code("ava", k)
    truth = 10.0 ** (-6 * np.arange(k))
    r = (truth @ (M > 0)) / (truth @ (M != 0))
    near = np.abs(np.diff([np.flatnonzero(column) for column in M.T], axis=1))[:, 0] == 1
    # Only neighbours: the odds of others lie beyond what a binary machine may say.
    p = coupling.from_code(M[:, near], r[None, near])
    assert p[0] == pytest.approx(truth / truth.sum(), rel=1e-6)


def test_too_few_steps_are_told_and_a_class_without_machine_is_refused():
    M = make_code("ava", 4)
    with pytest.warns(NotConverged, match="2 of 2 points .* raise max_steps"):
        coupling.from_code(M, np.full((2, 6), 0.999), max_steps=1)
    with pytest.raises(InvalidInput, match="every class"):
        coupling.from_code(np.array([[1], [-1], [0]]), [[0.5]])
