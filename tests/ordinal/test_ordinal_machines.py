"""RankSVM, OrdinalSVC and ProportionalOdds as a user meets them."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import cross_val_score
from sklearn.svm import LinearSVC

from mercer import SVR, OrdinalSVC, ProportionalOdds, RankSVM
from mercer.errors import InvalidInput
from mercer.ordinal import free_pair_boundaries, rank_boundaries
from mercer.ordinal.metrics import rank_error


def ranked(n=120, q=4, seed=0, noise=0.3, d=3):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d))
    return X, np.digitize(X[:, 0] - X[:, 1] + noise * random.standard_normal(n), np.linspace(-1.0, 1.0, q - 1))


def test_the_linear_machine_is_linear_svc_on_explicit_pairs():
    X, y = ranked(60)
    pairs = [(i, j) for i in range(60) for j in range(60) if y[i] > y[j]]
    D = np.array([X[i] - X[j] for i, j in pairs])
    t = np.where(np.arange(len(D)) % 2, 1, -1)
    peer = LinearSVC(C=0.01, fit_intercept=False, tol=1e-10, max_iter=100_000).fit(t[:, None] * D, t)
    found = RankSVM(C=0.01, kernel="linear", tol=1e-12).fit(X, y)
    np.testing.assert_allclose(found.coef_, peer.coef_, atol=1e-5)


def test_sparse_points_give_the_same_machine():
    X, y = ranked()
    X[np.abs(X) < 0.3] = 0.0
    dense, sparse = (RankSVM(kernel="linear", C=0.01, tol=1e-9).fit(form(X), y) for form in (np.asarray, sp.csr_matrix))
    np.testing.assert_allclose(sparse.decision_function(X), dense.decision_function(X), atol=1e-6)


def test_groups_of_one_document_or_one_rank_teach_nothing():
    X, y = ranked(80)
    groups = np.repeat(["a", "b"], 40)
    base = RankSVM(C=0.05, tol=1e-10, gamma=0.3).fit(X, y, groups=groups)
    alone = np.vstack((X, [[9.0, 9.0, 9.0]], X[:3] + 5.0))
    more = RankSVM(C=0.05, tol=1e-10, gamma=0.3).fit(
        alone, np.concatenate((y, [3, 1, 1, 1])), groups=np.concatenate((groups, ["c", "d", "d", "d"]))
    )
    np.testing.assert_allclose(more.decision_function(X), base.decision_function(X), atol=1e-5)
    assert base.score(X, y, groups=groups) > 0.85


def test_nothing_to_order_is_a_clear_error():
    X, y = ranked(10)
    with pytest.raises(InvalidInput, match="nothing to order"):
        RankSVM().fit(X, np.ones(10))
    with pytest.raises(InvalidInput, match="nothing to order"):
        RankSVM().fit(X, y, groups=np.arange(10))
    with pytest.raises(ValueError, match="inconsistent"):
        RankSVM().fit(X, y, groups=[1, 2])
    for machine in (OrdinalSVC(), ProportionalOdds()):
        with pytest.raises(InvalidInput, match="greater than one"):
            machine.fit(X, np.ones(10))


@pytest.mark.parametrize("thresholds", ["implicit", "explicit", "pairs"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("noise", [0.3, 30.0])
def test_boundaries_are_in_order_and_answers_lie_between_them(thresholds, loss, noise):
    X, y = ranked(noise=noise)
    machine = OrdinalSVC(C=0.3, thresholds=thresholds, loss=loss).fit(X, y)
    assert (np.diff(machine.thresholds_) >= 0.0).all()
    np.testing.assert_array_equal(
        machine.predict(X), machine.classes_[np.searchsorted(machine.thresholds_, machine.utility(X))]
    )
    if noise < 1.0:
        assert rank_error(y, machine.predict(X)) < 0.3


def test_texts_are_ranks_in_their_own_order():
    X, y = ranked(q=3)
    words = np.array(["a low", "b middle", "c high"])[y]
    assert (OrdinalSVC().fit(X, words).predict(X) == words).mean() > 0.8


def test_boundaries_minimise_the_absolute_error():
    random = np.random.default_rng(2)
    for seed in range(20):
        f, r = random.standard_normal(12), np.concatenate((np.arange(3), random.integers(0, 3, 9)))
        found = rank_boundaries(f, r)
        assert (np.diff(found) >= 0.0).all()
        edges = np.sort(f)
        candidates = np.concatenate(([edges[0] - 1], (edges[1:] + edges[:-1]) / 2, [edges[-1] + 1]))
        best = min(np.abs(r - (f >= a).astype(int) - (f >= b)).sum() for a in candidates for b in candidates if a <= b)
        assert np.abs(r - np.searchsorted(found, f)).sum() == best, seed


def test_probabilities_sum_to_one_and_are_ordered_stochastically():
    X, y = ranked()
    for link in ("logit", "probit", "cloglog"):
        machine = ProportionalOdds(C=2.0, link=link).fit(X, y)
        p = machine.predict_proba(X)
        np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
        cumulated = np.cumsum(p, axis=1)[np.argsort(machine.utility(X))]
        assert (np.diff(cumulated, axis=0) <= 1e-12).all()


def test_the_model_that_made_the_data_is_recovered():
    random = np.random.default_rng(0)
    X = random.standard_normal((20_000, 2))
    w, theta = np.array([1.5, -0.7]), np.array([-1.0, 0.3, 2.0])
    y = np.searchsorted(theta, X @ w + random.logistic(size=20_000))
    machine = ProportionalOdds(C=100.0, kernel="linear").fit(X, y)
    np.testing.assert_allclose(machine.coef_[0], w, atol=0.06)
    np.testing.assert_allclose(machine.thresholds_, theta, atol=0.06)


@pytest.mark.parametrize("seed", [5, 6, 7])
@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
def test_a_vanishing_ridge_leads_to_the_direction_of_the_largest_margin(seed, link):
    """On separable data the cumulative model turns to the hard-margin order as its ridge 1/C goes to zero."""
    X = np.random.default_rng(seed).standard_normal((60, 2)) * [1.0, 4.0]
    X = X[np.abs(np.abs(X @ [1.0, 0.5]) - 0.6) > 0.15]
    y = np.digitize(X @ [1.0, 0.5], [-0.6, 0.6])
    hard = RankSVM(C=100.0, kernel="linear", loss="hinge", tol=1e-6).fit(X, y)
    f = hard.utility(X)
    assert min(f[y == k + 1].min() - f[y == k].max() for k in (0, 1)) == pytest.approx(1.0, abs=1e-6)

    def angle(C):
        w, v = ProportionalOdds(C=C, kernel="linear", link=link, tol=1e-8).fit(X, y).coef_[0], hard.coef_[0]
        return np.degrees(np.arccos(min(1.0, w @ v / np.linalg.norm(w) / np.linalg.norm(v))))

    angles = [angle(C) for C in (1.0, 1e4, 1e8)]
    assert angles[2] < min(angles[:2])
    assert angles[1] < 2.7
    assert angles[2] < 1.0


def test_the_design_matrix_of_the_cumulative_model_gives_its_parameters_back():
    """Logits of the cumulative probabilities are Z (w, theta) with rows Z = [-x', e_j] (McCullagh 1980)."""
    X, y = ranked()
    machine = ProportionalOdds(C=3.0, kernel="linear", tol=1e-10).fit(X, y)
    cumulated = np.cumsum(machine.predict_proba(X), axis=1)[:, :-1]
    logits = np.log(cumulated / (1.0 - cumulated))
    Z = np.vstack([np.column_stack((np.repeat(-x[None], 3, axis=0), np.eye(3))) for x in X])
    found = np.linalg.lstsq(Z, logits.ravel(), rcond=None)[0]
    np.testing.assert_allclose(found, np.concatenate((machine.coef_[0], machine.thresholds_)), atol=1e-6)


@pytest.mark.parametrize("solver", ["newton", "one_slack", "working_sets"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_all_solvers_of_pairs_give_one_machine(solver, loss):
    X, y = ranked(60)
    groups = np.arange(60) % 2
    wanted = RankSVM(C=0.05, loss=loss, tol=1e-9).fit(X, y, groups=groups)
    found = RankSVM(C=0.05, loss=loss, solver=solver, tol=1e-8).fit(X, y, groups=groups)
    assert found.objective_ == pytest.approx(wanted.objective_, rel=1e-7)
    np.testing.assert_allclose(found.decision_function(X), wanted.decision_function(X), atol=1e-3)
    assert found.stopped_ == "converged"
    ordinal = OrdinalSVC(C=0.05, loss=loss, thresholds="pairs", solver=solver, tol=1e-8).fit(X, y)
    assert rank_error(y, ordinal.predict(X)) < 0.3


def test_a_solver_of_pairs_refuses_thresholds():
    X, y = ranked(20)
    with pytest.raises(InvalidInput, match="not an order from pairs"):
        OrdinalSVC(solver="one_slack").fit(X, y)


def test_the_sum_of_absolute_coefficients_leaves_few_of_them():
    X, y = ranked(60)
    plain = RankSVM(C=0.02, loss="hinge").fit(X, y)
    few = RankSVM(C=0.02, loss="hinge", norm="l1").fit(X, y)
    even = RankSVM(C=0.02, loss="hinge", norm="linf", tol=1e-2).fit(X, y)
    assert len(few.support_) < 0.5 * len(plain.support_)
    assert np.abs(even.dual_coef_).max() < np.abs(few.dual_coef_).max()
    assert min(machine.score(X, y) for machine in (few, even)) > 0.85
    assert few.gap_ <= 1e-3 * few.objective_
    with pytest.raises(InvalidInput, match="loss='hinge'"):
        RankSVM(norm="l1").fit(X, y)
    with pytest.raises(InvalidInput, match="not a problem of one latent function"):
        RankSVM(norm="l1", loss="hinge", solver="newton").fit(X, y)


def test_free_pairs_put_boundaries_in_the_middle_of_separable_ranks():
    X = np.random.default_rng(3).standard_normal((40, 2))
    X = X[np.abs(np.abs(X[:, 0]) - 0.5) > 0.15]
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    machine = RankSVM(C=100.0, kernel="linear", loss="hinge", solver="working_sets", tol=1e-6).fit(X, y)
    f = machine.utility(X)
    found = free_pair_boundaries(f, y, machine.solution_.details["free_pairs"])
    middles = [0.5 * (f[y == k].max() + f[y == k + 1].min()) for k in (0, 1)]
    np.testing.assert_allclose(rank_boundaries(f, y), middles)
    np.testing.assert_allclose(found.thresholds, np.where(found.without_pair, found.thresholds, middles), atol=1e-2)
    assert found.without_pair < 2
    assert (np.searchsorted(found.thresholds, f) == y).all()


def test_boundaries_without_free_pairs_fall_back_and_those_out_of_order_are_raised():
    f, r = np.array([0.0, 1.0, 3.0, 2.0, 5.0, 4.5]), np.array([0, 1, 2, 2, 3, 3])
    none = free_pair_boundaries(f, r, np.empty((0, 2)))
    np.testing.assert_allclose(none.thresholds, rank_boundaries(f, r))
    assert none.without_pair == 3
    crossed = free_pair_boundaries(f, r, [[1, 0], [4, 3], [3, 1], [4, 2]])
    np.testing.assert_allclose(crossed.thresholds, [0.5, 1.5, 3.75])
    assert crossed.without_pair == 0
    high = free_pair_boundaries(np.array([0.0, 6.0, 1.0, 2.0]), np.array([0, 1, 1, 2]), [[1, 0], [3, 2]])
    np.testing.assert_allclose(high.thresholds, [3.0, 3.0])
    assert high.out_of_order == 1
    with pytest.raises(InvalidInput, match="higher rank first"):
        free_pair_boundaries(f, r, [[0, 1]])


def test_thresholds_on_a_regression_are_those_of_least_error():
    """The baseline of the source: regression on the codes, then thresholds on its values."""
    X, y = ranked()
    f = SVR(kernel="linear").fit(X, y.astype(float)).predict(X)
    rounded = rank_error(y, np.clip(np.rint(f), 0, 3))
    assert rank_error(y, np.searchsorted(rank_boundaries(f, y), f)) <= rounded


def test_machines_are_taken_by_cross_validation():
    X, y = ranked()
    assert cross_val_score(OrdinalSVC(), X, y, cv=3).mean() > 0.6
