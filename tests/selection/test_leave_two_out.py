"""Leave-two-out of least squares against explicit retraining, and the nested choice against a nested loop."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import threads
from mercer.errors import Infeasible, InvalidInput, NotPositiveDefinite
from mercer.selection import leave_two_out as module
from mercer.selection.leave_one_out import leave_one_out
from mercer.selection.leave_two_out import leave_two_out, losses_of, nested, nested_leave_one_out
from tests.selection.bordered_cases import BORDERS, problem, without


def gaussian(X, sigma=1.5):
    return np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / (2 * sigma**2))


def retrained(K, Y, ridge, weights, P):
    """All pairs (n, n, k), and one point left out on the diagonal."""
    n = len(Y)
    return np.array([[without([i, j], j, K, Y, ridge, weights, P) for j in range(n)] for i in range(n)])


def classes(seed, n=15, k=3, noise=0.8):
    """Points in overlapping classes and targets of +-1, one column a class."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % k
    X = np.column_stack([np.cos(2 * labels), np.sin(2 * labels)]) + noise * rng.standard_normal((n, 2))
    return X, labels, np.where(labels[:, None] == np.arange(k), 1.0, -1.0)


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("weighted", ["equal", "weighted", "zeros"])
@pytest.mark.parametrize("constant", [0.0, 1.0])
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10**6), ridge=st.sampled_from([1e-2, 0.3, 20.0]))
def test_leave_two_out_equals_retraining(border, weighted, constant, seed, ridge):
    X, Y, w = problem(seed, 14, 2)
    weights = {"equal": np.ones(len(X)), "weighted": w, "zeros": np.where(np.arange(len(X)) % 4 == 0, 0.0, w)}[weighted]
    K, P = gaussian(X), BORDERS[border](X)
    found = leave_two_out(K, Y, ridge, weights=None if weighted == "equal" else weights, border=P, constant=constant)
    expected = retrained(K + constant, Y, ridge, weights, P)
    np.testing.assert_allclose(found.predictions(0, len(X)), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.predictions(3, 7), expected[3:7], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_conditionally_positive_definite_kernel_equals_retraining(weighted):
    X, Y, w = problem(1, 14, 2)
    w = np.where(np.arange(len(X)) % 4 == 0, 0.0, w) if weighted else np.ones(len(X))
    K, P = -np.sqrt(1.0 + np.sum((X[:, None] - X) ** 2, axis=2)), np.ones((len(X), 1))
    found = leave_two_out(K, Y, 0.3, weights=w, border=P, projected=True)
    np.testing.assert_allclose(found.predictions(0, len(X)), retrained(K, Y, 0.3, w, P), rtol=1e-9, atol=1e-9)


def test_duplicates_with_conflicting_targets_equal_retraining():
    X, Y, w = problem(2, 14, 2)
    X[1], Y[1] = X[0], -Y[0]
    X[2], Y[2] = X[0], Y[0]
    K, P = gaussian(X), np.ones((len(X), 1))
    found = leave_two_out(K, Y, 1e-4, weights=w, border=P)
    np.testing.assert_allclose(found.predictions(0, len(X)), retrained(K, Y, 1e-4, w, P), rtol=1e-7, atol=1e-7)


def test_one_point_left_out_is_that_of_its_neighbour_file():
    X, Y, w = problem(3, 14, 2)
    P = np.ones((len(X), 1))
    found = leave_two_out(gaussian(X), Y, 0.2, weights=w, border=P).once
    expected = leave_one_out(gaussian(X), Y, 0.2, weights=w, border=P)
    for name in ("residuals", "coefficients", "border", "inverse_diagonal", "gcv", "degrees"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-11)


def brute_force(matrices, Y, Cs, loss, weights, P):
    """Choice, honest predictions and losses by loops over points, candidates and inner points."""
    n = len(Y)
    candidates = [(number, C) for number in range(len(matrices)) for C in sorted(Cs)]
    choice, predictions = np.zeros(n, dtype=int), np.zeros(Y.shape)
    for i in range(n):
        values = []
        for number, C in candidates:
            inner = np.array([without([i, j], j, matrices[number], Y, 1 / C, weights, P) for j in range(n)])
            counted = np.where(np.arange(n) == i, 0.0, weights)
            values.append(counted @ loss(inner) / counted.sum())
        choice[i] = np.flatnonzero(np.array(values) <= min(values) + 1e-12)[0]
        number, C = candidates[choice[i]]
        predictions[i] = without([i], i, matrices[number], Y, 1 / C, weights, P)
    return candidates, choice, predictions


def missed(Y):
    def loss(f):
        wrong = np.sign(f) != np.sign(Y) if Y.shape[1] == 1 else f.argmax(axis=1)[:, None] != Y.argmax(axis=1)[:, None]
        return wrong[:, 0].astype(float)

    return loss


@pytest.mark.parametrize("criterion", ["loo", "error"])
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("border", ["none", "free"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_nested_choice_is_that_of_a_nested_loop(criterion, columns, border, weighted):
    X, _, Y = classes(3)
    Y, P = Y[:, :columns], BORDERS[border](X)
    weights = np.where(np.arange(len(X)) % 5 == 2, 0.0, 1.0 + np.arange(len(X)) % 3) if weighted else np.ones(len(X))
    matrices, Cs = [gaussian(X, 1.1), gaussian(X, 0.9)], np.geomspace(6.0, 0.5, 9)
    found = nested_leave_one_out(matrices, Y, Cs, criterion=criterion, weights=weights if weighted else None, border=P)
    loss = missed(Y) if criterion == "error" else lambda f: np.sum((f - Y) ** 2, axis=1)
    candidates, choice, predictions = brute_force(matrices, Y, Cs, loss, weights, P)
    assert list(found.candidates) == candidates
    np.testing.assert_array_equal(found.choice, choice)
    assert len(np.unique(choice)) > 1  # else this test says little
    np.testing.assert_allclose(found.predictions, predictions, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.losses, loss(predictions), rtol=1e-8, atol=1e-12)
    assert found.value == pytest.approx(weights @ loss(predictions) / weights.sum())
    assert found.value == pytest.approx(found.error_rate() if criterion == "error" else found.mean_squared_error)
    assert found.optimism == pytest.approx(found.value - min(found.plain))
    assert sum(found.counts.values()) == len(X)


def test_plain_leave_one_out_of_every_candidate_is_given():
    X, _, Y = classes(5)
    found = nested_leave_one_out([gaussian(X), gaussian(X, 0.4)], Y, [1.0, 10.0], criterion="error")
    for (number, C), value in zip(found.candidates, found.plain, strict=True):
        expected = leave_one_out([gaussian(X), gaussian(X, 0.4)][number], Y, 1 / C).error_rate()
        assert value == pytest.approx(expected)
    assert found.plain[found.best] == min(found.plain)


def test_equal_candidates_go_to_the_earlier_kernel_and_the_smaller_C():
    X, _, Y = classes(6, noise=0.05)  # every candidate is right everywhere
    found = nested_leave_one_out([gaussian(X), gaussian(X)], Y, [8.0, 2.0, 4.0], criterion="error")
    assert found.counts == {(0, 2.0): len(X)}
    assert found.candidates[found.best] == (0, 2.0)
    assert found.value == found.optimism == 0.0
    # The same candidate twice: rounding must not choose between them.
    twice = nested_leave_one_out([gaussian(X), gaussian(X)], Y, [2.0])
    np.testing.assert_array_equal(twice.choice, 0)


def test_a_class_with_one_sample_is_missed_and_does_no_harm():
    X, labels, Y = classes(7)
    single = labels[:-1].copy()
    single[single == 2] = 1
    single = np.append(single, 2)
    Y = np.where(single[:, None] == np.arange(3), 1.0, -1.0)
    found = nested_leave_one_out([gaussian(X)], Y, [0.5, 5.0], criterion="error", border=np.ones((len(X), 1)))
    _, choice, predictions = brute_force([gaussian(X)], Y, [0.5, 5.0], missed(Y), np.ones(len(X)), np.ones((len(X), 1)))
    np.testing.assert_array_equal(found.choice, choice)
    np.testing.assert_allclose(found.predictions, predictions, atol=1e-9)
    assert found.predictions[-1, 2] == pytest.approx(-1.0)  # nobody else is of its class
    assert found.losses[-1] == 1.0


def test_a_decoder_of_ones_own_sees_predictions_of_pairs_and_of_points():
    X, labels, _ = classes(8)
    M = np.array([[1, 1, 1, -1], [1, -1, -1, 1], [-1, 1, -1, -1]])

    def wrong(outputs):
        assert outputs.shape[-2:] == (len(X), 4)
        return np.argmax(outputs @ M.T, axis=-1) != labels

    matrices = [gaussian(X), gaussian(X, 0.6)]
    found = nested_leave_one_out(matrices, M[labels], [0.3, 3.0], criterion=wrong)
    _, choice, predictions = brute_force(matrices, M[labels], [0.3, 3.0], wrong, np.ones(len(X)), np.empty((len(X), 0)))
    np.testing.assert_array_equal(found.choice, choice)
    assert found.value == np.mean(wrong(predictions))


def test_machines_on_their_own_points_stand_side_by_side():
    """All-versus-all: machines of a pair of classes do not see the third, but predict it."""
    X, labels, _ = classes(9)
    pairs = [(0, 1), (0, 2), (1, 2)]
    targets = [np.where(labels == a, 1.0, -1.0) for a, _ in pairs]
    members = [np.isin(labels, pair).astype(float) for pair in pairs]

    def wrong(outputs):
        votes = [
            outputs[..., 0] + outputs[..., 1],
            outputs[..., 2] - outputs[..., 0],
            -outputs[..., 1] - outputs[..., 2],
        ]
        return np.argmax(np.stack(votes, axis=-1), axis=-1) != labels

    K, n = gaussian(X), len(X)
    candidates = [
        (C, [leave_two_out(K, t, 1 / C, weights=w) for t, w in zip(targets, members, strict=True)]) for C in (0.2, 20.0)
    ]
    found = nested(candidates, wrong)
    none = np.empty((n, 0))
    for i in range(n):
        values = []
        for C in (0.2, 20.0):
            inner = [
                [without([i, j], j, K, t[:, None], 1 / C, w, none)[0] for t, w in zip(targets, members, strict=True)]
                for j in range(n)
            ]
            values.append(np.sum(wrong(np.array(inner)) & (np.arange(n) != i)))
        assert found.choice[i] == int(values[1] < values[0])
        C = found.candidates[found.choice[i]]
        own = [without([i], i, K, t[:, None], 1 / C, w, none)[0] for t, w in zip(targets, members, strict=True)]
        np.testing.assert_allclose(found.predictions[i], own, atol=1e-9)


def test_small_blocks_and_threads_change_nothing(monkeypatch):
    X, _, Y = classes(10)
    arguments = ([gaussian(X)], Y, [0.1, 1.0, 10.0])
    expected = nested_leave_one_out(*arguments)
    monkeypatch.setattr(module, "BLOCK", 1)
    with threads.limit(2):
        found = nested_leave_one_out(*arguments)
    np.testing.assert_array_equal(found.choice, expected.choice)
    np.testing.assert_allclose(found.losses, expected.losses)


def test_choosing_among_pure_noise_is_optimistic():
    optimism = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((40, 2)), rng.choice([-1.0, 1.0], 40)
        matrices = (gaussian(X, sigma) for sigma in (2.0, 1.0, 0.5, 0.25))
        with threads.one_blas_thread():
            found = nested_leave_one_out(matrices, y, np.geomspace(0.01, 100, 5), criterion="error")
        optimism.append(found.optimism)
    assert np.mean(optimism) > 2 * np.std(optimism) / np.sqrt(10) > 0


def test_bad_input_is_named():
    K, y = np.eye(4), np.array([1.0, -1.0, 1.0, -1.0])
    with pytest.raises(InvalidInput, match="ridge"):
        leave_two_out(K, y, -1.0)
    with pytest.raises(InvalidInput, match="two points of positive weight more"):
        leave_two_out(np.eye(2), y[:2], 1.0, border=np.ones((2, 1)))
    with pytest.raises(InvalidInput, match="C must be positive"):
        nested_leave_one_out([K], y, [0.0, 1.0])
    with pytest.raises(InvalidInput, match="criterion must be"):
        nested_leave_one_out([K], y, [1.0], criterion="gcv")
    with pytest.raises(InvalidInput, match="targets of"):
        nested_leave_one_out([K], 2 * y, [1.0], criterion="error")
    with pytest.raises(InvalidInput, match="at least one candidate"):
        nested_leave_one_out([], y, [1.0])
    with pytest.raises(NotPositiveDefinite, match="lower C"):
        leave_two_out(np.ones((4, 4)), y, 0.0)


def test_a_function_that_only_two_points_know_is_refused():
    X, Y, _ = problem(11, 14, 2)
    border = np.zeros((len(X), 1))
    border[:2] = 1.0
    with pytest.raises(Infeasible, match="some pair of points"):
        leave_two_out(gaussian(X), Y, 0.1, border=border).predictions(0, len(X))


def test_a_tie_is_the_negative_class_as_in_predict():
    targets = np.array([[1.0], [-1.0]])
    np.testing.assert_array_equal(losses_of("error", targets)(np.zeros((2, 1))), [1.0, 0.0])
