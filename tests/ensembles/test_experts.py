"""Mixtures of experts: balanced parts, gates of sum one, rounds that never make it worse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from mercer import LSSVR, SVC, Gaussian, KernelLogistic, MixtureOfExperts
from mercer.errors import InvalidInput
from mercer.solvers.experts import balanced, responsibilities


@given(n=st.integers(1, 60), q=st.integers(1, 5), slack=st.integers(0, 5), seed=st.integers(0, 1000))
def test_no_expert_gets_more_points_than_its_capacity(n, q, slack, seed):
    G = np.random.default_rng(seed).dirichlet(np.ones(q), n)
    capacity = -(-n // q) + slack
    part = balanced(G, capacity)
    assert np.bincount(part, minlength=q).max() <= capacity
    # A point that is not with its favourite could not be: that expert is full of points the gate is no less sure of.
    for i in np.flatnonzero(part != G.argmax(axis=1)):
        own = part == G[i].argmax()
        assert own.sum() == capacity
        assert G[own].max(axis=1).min() >= G[i].max() - 1e-12


def test_without_limits_every_point_has_its_favourite():
    G = np.random.default_rng(0).dirichlet(np.ones(4), 50)
    np.testing.assert_array_equal(balanced(G, 50), G.argmax(axis=1))


def test_responsibilities_are_those_of_expectation_and_maximisation():
    random = np.random.default_rng(0)
    G, L = random.dirichlet(np.ones(3), 40), random.exponential(1.0, (40, 3))
    h = responsibilities(G, L)
    np.testing.assert_allclose(h.sum(axis=1), 1.0)
    assert np.all(h > 0)
    level = np.mean(np.sum(h * L, axis=1))
    direct = G * np.exp(-L / (2 * level))
    direct /= direct.sum(axis=1, keepdims=True)
    assert np.mean(np.abs(h - direct)) < 0.05  # the level is found in a few steps


def pieces(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A fast wave on the left and a slow one on the right."""
    random = np.random.default_rng(seed)
    X = random.uniform(-3, 3, (n, 1))
    return X, np.where(X[:, 0] < 0, np.sin(6 * X[:, 0]), 0.5 * X[:, 0]) + 0.1 * random.standard_normal(n)


@pytest.mark.parametrize("gate", [None, KernelLogistic(), SVC(), LogisticRegression()])
def test_accepted_rounds_never_raise_the_error(gate):
    X, y = pieces()
    found = MixtureOfExperts(LSSVR(C=10.0, kernel=Gaussian(0.5)), experts=3, gate=gate, random_state=0).fit(X, y)
    assert np.all(np.diff(found.errors_) <= 0.0)
    weights = found.gate_weights(X)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    assert weights.min() >= 0.0
    assert np.bincount(found.parts_, minlength=3).max() <= np.ceil(1.2 * 300 / 3)
    assert found.loo_error_ == found.errors_[-1]
    outputs = np.einsum("jnk,nj->nk", found.member_outputs(X), weights)[:, 0]
    np.testing.assert_allclose(found.predict(X), outputs)


def test_small_experts_with_a_gate_beat_their_plain_mean():
    X, y = pieces(400)
    new, truth = pieces(400, seed=1)
    base = LSSVR(C=10.0, kernel=Gaussian(0.3))
    found = MixtureOfExperts(base, experts=4, gate=KernelLogistic(kernel=Gaussian(0.5)), random_state=0).fit(X, y)
    mean = found.member_outputs(new)[:, :, 0].mean(axis=0)
    assert np.mean((found.predict(new) - truth) ** 2) < np.mean((mean - truth) ** 2)


def test_experts_of_classes_see_every_class():
    random = np.random.default_rng(0)
    X = random.uniform(-3, 3, (200, 2))
    y = np.where(X[:, 0] > 0, "a", "b")  # a gate would give some experts one class alone
    found = MixtureOfExperts(SVC(), experts=4, gate=KernelLogistic(), random_state=0).fit(X, y)
    assert all(set(member.classes_) == {"a", "b"} for member in found.members_)
    assert found.score(X, y) > 0.9


def test_what_cannot_be_mixed_is_refused():
    X, y = pieces(40)
    with pytest.raises(InvalidInput, match="gate"):
        MixtureOfExperts(LSSVR(), gate=LSSVR()).fit(X, y)
    with pytest.raises(InvalidInput, match="matrix"):
        MixtureOfExperts(LSSVR(kernel="precomputed")).fit(X @ X.T, y)
