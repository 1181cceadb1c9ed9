"""Quadratic Renyi entropy: what it is, and that swaps raise it at O(m) each."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from mercer.errors import BudgetTooSmall
from mercer.kernels import Gaussian, Linear
from mercer.lowrank import choose
from mercer.lowrank.landmarks import quadratic_entropy
from mercer.lowrank.landmarks.entropy import swap

KERNEL = Gaussian(sigma=0.8)


def points(n=400, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def test_entropy_is_that_of_the_parzen_density():
    S = points(12, 1)
    sigma = 0.6
    bandwidth = sigma / math.sqrt(2)

    def density(t):
        return np.mean(np.exp(-((t - S[:, 0]) ** 2) / (2 * bandwidth**2))) / math.sqrt(2 * math.pi * bandwidth**2)

    integral, _ = quad(lambda t: density(t) ** 2, -10, 10, limit=200, epsabs=1e-12)
    constant = 0.5 * math.log(2 * math.pi * sigma**2)
    assert quadratic_entropy(Gaussian(sigma=sigma), S) + constant == pytest.approx(-math.log(integral), rel=1e-8)


@given(seed=st.integers(0, 100), m=st.integers(1, 12))
@settings(max_examples=25, deadline=None)
def test_the_sum_kept_by_swaps_equals_the_sum_formed_anew_and_falls_with_each(seed, m):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m + 20, 2))
    K = KERNEL(X)
    members, proposals = np.arange(m), np.arange(m, m + 20)
    B, A, P = K[:m, :m].copy(), K[m:, :m].copy(), K[m:, m:].copy()
    u, marks, history, places = B.sum(axis=1), members.copy(), np.empty(20), rng.integers(0, m, 20)
    total, accepted = swap(A, P, places, B, u, B.sum(), marks, history)
    final = np.where(marks < 0, proposals[np.where(marks < 0, -1 - marks, 0)], marks)
    exact = K[np.ix_(final, final)]
    assert total == pytest.approx(exact.sum(), rel=1e-12)
    np.testing.assert_allclose(B, exact, rtol=1e-13)
    np.testing.assert_allclose(u, exact.sum(axis=1), rtol=1e-11)
    sums = np.concatenate([[K[:m, :m].sum()], history[:accepted]])
    assert (np.diff(sums) < 0).all()
    # The swaps made one by one with sums formed anew: the same are accepted.
    naive = list(members)
    for p, r in zip(proposals, places, strict=True):
        trial = [*naive[:r], p, *naive[r + 1 :]]
        if K[np.ix_(trial, trial)].sum() < K[np.ix_(naive, naive)].sum() * (1 - 1e-13):
            naive = trial
    assert naive == final.tolist()


def test_entropy_rises_with_every_swap_and_ends_where_it_is_measured():
    X = points()
    chosen = choose(KERNEL, X, 40, method="entropy", seed=0)
    history = chosen.details["history"]
    assert (np.diff(history) > 0).all()
    assert chosen.details["accepted"] == len(history) - 1 > 40
    assert chosen.entropy == pytest.approx(history[-1], rel=1e-10)
    assert chosen.details["sum"] == pytest.approx(KERNEL(chosen.points).sum(), rel=1e-10)


def test_chosen_points_have_more_entropy_than_random_ones():
    X = points()
    random = [choose(KERNEL, X, 40, seed=s).entropy for s in range(20)]
    chosen = [choose(KERNEL, X, 40, method="entropy", seed=s).entropy for s in range(3)]
    assert min(chosen) > np.mean(random) + 3 * np.std(random)


def test_swaps_stop_when_they_no_longer_pay():
    X = points(60)
    chosen = choose(KERNEL, X, 10, method="entropy", seed=0, proposals=100_000, tol=1e-3)
    assert chosen.details["proposals"] < 20_000
    assert choose(KERNEL, X, 10, method="entropy", seed=0, proposals=0).details["accepted"] == 0


def test_large_data_are_proposed_from_all_rows():
    X = points(100_000)
    chosen = choose(KERNEL, X, 50, method="entropy", seed=0, proposals=3000)
    assert chosen.entropy > choose(KERNEL, X, 50, seed=0).entropy
    assert chosen.index.max() > 50_000


def test_a_kernel_whose_sum_vanishes_has_infinite_entropy():
    X = np.array([[1.0], [-1.0], [2.0]])
    assert quadratic_entropy(Linear(), X[:2]) == math.inf
    chosen = choose(Linear(), X, 2, method="entropy", seed=0)
    assert sorted(chosen.index) == [0, 1]


def test_the_matrix_of_the_landmarks_must_fit():
    with pytest.raises(BudgetTooSmall, match="matrix of 300 landmarks"):
        choose(KERNEL, points(), 300, method="entropy", memory=100_000)
