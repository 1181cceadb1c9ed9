"""Boosting: identities of every round, the margin theorem on every run, and learners of all kinds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.ensemble import AdaBoostClassifier
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from mercer import LSSVC, LSSVR, SVC, AdaBoost, Gaussian, OutputCode
from mercer.errors import InvalidInput
from mercer.selection.bounds import boosted_margin_error, boosting_rounds
from mercer.solvers.boosting import boost, logit_boost

STUMP = DecisionTreeClassifier(max_depth=1, random_state=0)


def data(n: int = 120, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, 3))
    return X, np.where(X[:, 0] + X[:, 1] ** 2 + 0.4 * random.standard_normal(n) > 0.6, "yes", "no")


def stumps(X: np.ndarray, codes: np.ndarray):
    def learn(D: np.ndarray):
        machine = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, codes, sample_weight=D)
        return machine, machine.predict(X)

    return learn


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 1000), rounds=st.integers(1, 15))
def test_every_round_of_adaboost_obeys_its_identities(seed, rounds):
    X, y = data(60, seed)
    codes = (y == "yes").astype(np.intp)
    distributions = []
    inner = stumps(X, codes)

    def learn(D):
        distributions.append(D)
        return inner(D)

    found = boost(learn, codes, 2, rounds)
    distributions.append(found.distribution)
    sign = 2 * codes - 1
    F = np.zeros(60)
    for D, after, one in zip(distributions, distributions[1:], found.rounds):
        g = 2 * one.hypothesis.predict(X) - 1
        assert D.sum() == pytest.approx(1.0)
        assert one.error == pytest.approx(D[g != sign].sum())
        if one.error > 0:
            assert one.normaliser == pytest.approx(2 * np.sqrt(one.error * (1 - one.error)))
            assert after[g != sign].sum() == pytest.approx(0.5)
        F += one.alpha * g
    product = np.prod([one.normaliser for one in found.rounds])
    assert product == pytest.approx(np.mean(np.exp(-sign * F)))
    assert np.mean(sign * F <= 0) <= product + 1e-12


@pytest.mark.parametrize("base", [STUMP, SVC(C=0.05), LSSVC(C=0.01), DecisionTreeClassifier(max_depth=2)])
@pytest.mark.parametrize("size", [None, 0.2])
def test_the_margin_theorem_holds_on_every_run(base, size):
    X, y = data()
    found = AdaBoost(base, rounds=20, size=size, random_state=0).fit(X, y)
    margins = found.margins(X, y)
    assert np.all(np.abs(margins) <= 1.0 + 1e-12)
    if found.ended_ == "perfect":
        pytest.skip("a member without error has a capped weight, which the theorem does not speak of")
    for rho in (0.0, 0.05, 0.1, 0.3):
        bound = found.margin_bound(rho)
        assert np.mean(margins <= rho) <= bound.value + 1e-12
    assert found.margin_bound().value == pytest.approx(np.prod(found.normalisers_))
    assert 1 - found.score(X, y) <= found.margin_bound().value


@settings(deadline=None, max_examples=50)
@given(rho=st.floats(0.01, 0.24), rounds=st.integers(1, 50), seed=st.integers(0, 1000))
def test_errors_below_a_half_drive_the_bound_down(rho, rounds, seed):
    errors = np.random.default_rng(seed).uniform(0.0, 0.5 - 2 * rho, rounds)
    assert boosted_margin_error(errors, rho).value <= (1 - rho**2) ** (rounds / 2) + 1e-12
    enough = boosting_rounds(rho, 0.01)
    assert (1 - rho**2) ** (enough / 2) <= 0.01
    assert not boosted_margin_error([0.6], 0.1).holds


def test_it_agrees_with_scikit_learns_adaboost():
    X, y = data(200)
    ours = AdaBoost(STUMP, rounds=10).fit(X, y)
    theirs = AdaBoostClassifier(STUMP, n_estimators=10, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.errors_, theirs.estimator_errors_, atol=1e-9)
    np.testing.assert_allclose(2 * ours.alphas_, theirs.estimator_weights_, atol=1e-9)
    assert np.mean(ours.predict(X) == theirs.predict(X)) == 1.0


def test_three_classes_follow_the_multiclass_rule_of_scikit_learn():
    X, _ = data(200)
    y = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 0.5])
    base = DecisionTreeClassifier(max_depth=2, random_state=0)
    ours = AdaBoost(base, rounds=8).fit(X, y)
    theirs = AdaBoostClassifier(base, n_estimators=8, random_state=0).fit(X, y)
    np.testing.assert_allclose(2 * ours.alphas_, theirs.estimator_weights_, atol=1e-9)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_arc_gv_tends_to_the_largest_smallest_margin():
    """On all stumps of a small problem the largest smallest margin is the value of a game, a linear program."""
    X, y = data(25, 3)
    codes = (y == "yes").astype(np.intp)
    sign = 2.0 * codes - 1
    cuts = [(j, c) for j in range(3) for c in np.r_[-np.inf, np.sort(X[:, j])]]
    H = np.array([np.where(X[:, j] > c, 1.0, -1.0) for j, c in cuts])
    H = np.vstack([H, -H]) * sign
    # max rho: H'w >= rho, w >= 0, sum w = 1
    A = np.hstack([-H.T, np.ones((25, 1))])
    value = -linprog(np.r_[np.zeros(len(H)), -1.0], A, np.zeros(25), [np.r_[np.ones(len(H)), 0.0]], [1.0]).fun

    def learn(D):
        best = int(np.argmax(H @ D))
        return best, np.where(H[best] > 0, codes, 1 - codes)

    def smallest(rounds):
        found = boost(learn, codes, 2, rounds, method="arc-gv")
        return float((found.alphas @ H[[one.hypothesis for one in found.rounds]]).min() / found.alphas.sum())

    distances = [value - smallest(rounds) for rounds in (30, 300, 3000)]
    assert distances[2] >= -1e-9
    assert distances == sorted(distances, reverse=True)
    assert distances[2] < 0.1 * value


def test_logitboost_descends_the_logistic_loss():
    X, y = data()
    found = AdaBoost(DecisionTreeRegressor(max_depth=1), method="logitboost", rounds=20).fit(X, y)
    losses = found.normalisers_
    assert losses[0] < np.log(2.0)
    assert losses[-1] < 0.7 * losses[0]
    sign = np.where(y == "yes", 1.0, -1.0)
    assert losses[-1] == pytest.approx(np.mean(np.log1p(np.exp(-2 * sign * found.decision_function(X)))))


def test_a_logitboost_step_of_a_saturated_learner_is_newtons():
    """With a learner that fits anything, F after one round is z/2 = +-1, and p(1-p) z = y* - p."""
    positive = np.array([True, False, True])
    found = logit_boost(lambda z, w: (None, z), positive, 1)
    assert found.rounds[0].normaliser == pytest.approx(np.log1p(np.exp(-2.0)))


def test_learners_without_weights_are_trained_on_draws():
    X, y = data()
    found = AdaBoost(KNeighborsClassifier(15), rounds=5, random_state=0).fit(X, y)
    assert len(found.members_) >= 2
    assert all(sample.counts.sum() == 120 for sample in found.bank_.samples)
    assert found.score(X, y) > 0.8
    assert 1 - found.score(X, y) <= found.margin_bound().value


def test_small_nets_are_boosted():
    X, y = data()
    net = MLPClassifier((2,), solver="lbfgs", max_iter=300, alpha=1.0, random_state=0)
    found = AdaBoost(net, rounds=5, random_state=0).fit(X, y)
    assert found.score(X, y) > 0.8
    assert 1 - found.score(X, y) <= found.margin_bound().value


def test_subsets_of_support_vector_machines_come_near_the_whole_machine():
    X, y = data(400)
    new, truth = data(400, seed=1)
    base = SVC(kernel=Gaussian(1.0))
    boosted = [AdaBoost(base, rounds=15, size=0.1, random_state=seed).fit(X, y) for seed in range(4)]
    scores = [one.score(new, truth) for one in boosted]
    assert np.mean(scores) >= SVC(kernel=Gaussian(1.0)).fit(X, y).score(new, truth) - 0.03
    assert all(one.coverage_.size.max() <= 40 for one in boosted)


def test_a_perfect_member_ends_boosting():
    X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    found = AdaBoost(STUMP).fit(X, [0, 0, 1, 1])
    assert (found.ended_, len(found.members_)) == ("perfect", 1)
    np.testing.assert_allclose(found.margins(X, [0, 0, 1, 1]), 1.0)


def test_a_learner_no_better_than_chance_ends_it():
    X = np.array([[0.0], [0.0], [1.0], [1.0]])
    found = AdaBoost(STUMP).fit(X, [0, 1, 0, 1])
    assert found.ended_ == "weak"
    assert len(found.members_) == 1


def test_what_cannot_be_boosted_is_refused():
    X, y = data(60)
    three = np.arange(60) % 3
    with pytest.raises(InvalidInput, match="two classes"):
        AdaBoost(method="arc-gv").fit(X, three)
    with pytest.raises(InvalidInput, match="regressor"):
        AdaBoost(method="logitboost").fit(X, y)
    with pytest.raises(InvalidInput, match="classifier"):
        AdaBoost(LSSVR()).fit(X, y)
    with pytest.raises(InvalidInput, match="margins"):
        AdaBoost(rounds=2).fit(X, three).margins(X, three)
    assert OutputCode(AdaBoost(method="arc-gv", rounds=5)).fit(X, three).predict(X).shape == (60,)


def test_margins_of_labels_that_were_not_learnt_are_refused():
    X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array(["no", "no", "yes", "yes"])
    found = AdaBoost(rounds=2).fit(X, y)
    with pytest.raises(InvalidInput, match=r"perhaps.*which is none of"):
        found.margins(X, ["no", "perhaps", "yes", "yes"])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        found.margins(X, y[:2])
    with pytest.raises(NotFittedError):
        AdaBoost().margins(X, y)
