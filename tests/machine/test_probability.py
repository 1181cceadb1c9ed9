import numpy as np
import pytest
from scipy.optimize import minimize

from mercer.machine.probability import agree, couple, fit_sigmoid, folds, held_out_values, sigmoid


def cost(parameters, values, positive, weights):
    """Platt's negative log-likelihood, written as in the paper."""
    n1, n0 = weights[positive].sum(), weights[~positive].sum()
    t = np.where(positive, (n1 + 1) / (n1 + 2), 1 / (n0 + 2))
    p = 1 / (1 + np.exp(parameters[0] * values + parameters[1]))
    return -np.sum(weights * (t * np.log(p) + (1 - t) * np.log(1 - p)))


@pytest.mark.parametrize("seed", range(4))
def test_sigmoid_reaches_the_least_cost_a_general_optimiser_finds(seed):
    random = np.random.default_rng(seed)
    values = random.normal(size=80)
    positive = random.random(80) < 1 / (1 + np.exp(-2 * values + 0.7))
    weights = random.integers(1, 4, 80).astype(float)
    fitted = fit_sigmoid(values, positive, weights)
    reference = minimize(cost, [0.0, 0.0], args=(values, positive, weights), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(fitted, reference.x, atol=2e-5)


def test_weighted_sigmoid_equals_repeated_values():
    random = np.random.default_rng(0)
    values, positive = random.normal(size=30), random.random(30) < 0.5
    weights = random.integers(1, 4, 30)
    repeated = fit_sigmoid(np.repeat(values, weights), np.repeat(positive, weights))
    np.testing.assert_allclose(fit_sigmoid(values, positive, weights.astype(float)), repeated, atol=1e-6)


def test_sigmoid_of_separated_or_huge_values_stays_finite():
    a, b = fit_sigmoid(np.array([-1e6, -1e5, 1e5, 1e6]), np.array([False, False, True, True]))
    assert np.isfinite([a, b]).all()
    with np.errstate(over="raise"):
        p = sigmoid(np.array([-1e300, 0.0, 1e300]), -1.0, 0.0)
    np.testing.assert_array_equal(p, [0.0, 0.5, 1.0])


@pytest.mark.parametrize("classes", [2, 3, 5, 9])
def test_coupling_recovers_probabilities_of_the_bradley_terry_model(classes):
    p = np.random.default_rng(classes).dirichlet(np.ones(classes), size=20)
    p = np.maximum(p, 1e-3)
    p /= p.sum(axis=1, keepdims=True)
    i, j = np.triu_indices(classes, 1)
    np.testing.assert_allclose(couple(p[:, i] / (p[:, i] + p[:, j]), classes), p, atol=1e-10)


def test_coupling_is_the_fixed_point_of_wu_lin_and_weng():
    k, n = 5, 30
    i, j = np.triu_indices(k, 1)
    r = np.random.default_rng(1).uniform(0.02, 0.98, (n, len(i)))
    for row, p in zip(r, couple(r, k)):
        R = np.zeros((k, k))
        R[i, j], R[j, i] = row, 1 - row
        Q = -R.T * R
        np.fill_diagonal(Q, (R**2).sum(axis=0))
        assert p.min() > 0
        assert p.sum() == pytest.approx(1.0, abs=1e-12)
        # p_t = (1 / Q_tt) [p'Qp - sum over s != t of Q_ts p_s] for every t.
        np.testing.assert_allclose(Q @ p, np.full(k, p @ Q @ p), atol=1e-12)


def test_coupling_takes_certain_pairs():
    p = couple(np.array([[1.0, 1.0, 0.5], [0.0, 0.0, 0.0]]), 3)
    assert np.isfinite(p).all()
    assert p[0].argmax() == 0
    assert p[1].argmax() == 2


def test_agreement_puts_the_predicted_class_first_by_the_smallest_change():
    random = np.random.default_rng(2)
    p = random.dirichlet(np.ones(5), size=40)
    predicted = random.integers(0, 5, 40)
    q = agree(p, predicted)
    np.testing.assert_array_equal(q.argmax(axis=1), predicted)
    np.testing.assert_allclose(q.sum(axis=1), 1.0, atol=1e-12)
    settled = p.argmax(axis=1) == predicted
    np.testing.assert_array_equal(q[settled], p[settled])
    for row, moved, c in zip(p[~settled][:10], q[~settled], predicted[~settled]):
        nearest = minimize(
            lambda z, row=row: np.sum((z - row) ** 2),
            np.full(5, 0.2),
            jac=lambda z, row=row: 2 * (z - row),
            constraints=[
                {"type": "eq", "fun": lambda z: z.sum() - 1},
                {"type": "ineq", "fun": lambda z, c=c: z[c] - z},
            ],
            method="SLSQP",
            options={"ftol": 1e-14},
        )
        np.testing.assert_allclose(moved, nearest.x, atol=1e-6)


def test_folds_are_even_in_every_class_and_depend_on_the_seed_alone():
    codes = np.repeat([0, 1, 2], [23, 11, 5])
    first, again = (folds(codes, 5, np.random.RandomState(3)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    for label in range(3):
        sizes = np.bincount(first[codes == label], minlength=5)
        assert sizes.max() - sizes.min() <= 1
    few_of_each = folds(np.repeat(np.arange(8), 2), 5, np.random.RandomState(3))
    assert sorted(np.bincount(few_of_each, minlength=5)) == [3, 3, 3, 3, 4]
    assert not np.array_equal(first, folds(codes, 5, np.random.RandomState(4)))


def test_held_out_values_come_from_machines_that_did_not_see_the_point():
    fold = np.array([0, 1, 2, 0, 1, 2, 0])
    seen = []

    def train(inside, outside):
        assert not set(inside) & set(outside)
        seen.append(set(outside))
        return np.tile(outside[:, None], (1, 2)).astype(float)

    values = held_out_values(fold, 2, train)
    np.testing.assert_array_equal(values[:, 0], np.arange(7))
    assert set.union(*seen) == set(range(7))
