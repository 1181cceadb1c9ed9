"""Claims about coupled ensembles."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import LSSVC, LSSVR, SVC, Gaussian
from mercer.ensembles import CoupledEnsemble, sweep_nu
from mercer.ensembles.coupled_members import COSTS, left_out_errors
from mercer.errors import Advice, BudgetTooSmall, InvalidInput, NotConverged, NotPositiveDefinite

KERNEL = Gaussian(sigma=0.8)
BASE = LSSVR(20.0, kernel=KERNEL)


def curve(n: int = 90, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    X = random.uniform(-3.0, 3.0, (n, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * random.standard_normal(n)


def labels(n: int = 120, k: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).uniform(-3.0, 3.0, (n, 2))
    return X, np.digitize(X[:, 0] + np.sin(X[:, 1]), np.linspace(-1.5, 1.5, k + 1)[1:-1])


def kernel(X: np.ndarray, Z: np.ndarray, sigma: float = 0.8) -> np.ndarray:
    """The Gaussian, written out."""
    return np.exp(-((X[:, None] - Z[None]) ** 2).sum(axis=2) / (2.0 * sigma**2))


def by_hand(X, y, places, parts, nu, C=20.0, edges=None, weights=None, bases=None):
    """Member outputs on X, from the objective of all members written as one least-squares problem."""
    q = parts.max() + 1
    edges = [(j, (j + 1) % q) for j in range(q)] if edges is None else edges
    bases = [(j - 1, j, j + 1) for j in range(q)] if bases is None else bases
    points = [np.flatnonzero(np.isin(parts, np.array(own) % q)) for own in bases]
    ends = np.cumsum([0, *map(len, points)])
    w = np.ones(len(y)) if weights is None else weights
    rows, targets = [], []
    for j in range(q):
        own = parts == j
        block = np.zeros((own.sum(), ends[-1]))
        block[:, ends[j] : ends[j + 1]] = kernel(X[own], X[points[j]])
        rows.append(np.sqrt(w[own])[:, None] * block)
        targets.append(np.sqrt(w[own]) * y[own])
    for i, j in edges:
        block = np.zeros((len(places), ends[-1]))
        block[:, ends[i] : ends[i + 1]] = kernel(places, X[points[i]])
        block[:, ends[j] : ends[j + 1]] -= kernel(places, X[points[j]])
        rows.append(np.sqrt(nu) * block)
        targets.append(np.zeros(len(places)))
    rows.append(np.sqrt(1.0 / C) * np.eye(ends[-1]))
    targets.append(np.zeros(ends[-1]))
    T = np.concatenate(targets)
    R = np.vstack(rows)
    a = np.linalg.lstsq(R, T, rcond=None)[0]
    outputs = [kernel(X, X[points[j]]) @ a[ends[j] : ends[j + 1]] for j in range(q)]
    return np.array(outputs), 0.5 * np.sum((R @ a - T) ** 2)


@pytest.mark.parametrize("nu", [0.0, 0.3, 20.0])
@pytest.mark.parametrize("solver", ["elimination", "conjugate_gradient"])
def test_a_ring_is_one_least_squares_problem(nu, solver):
    X, y = curve()
    Z, _ = curve(15, 1)
    found = CoupledEnsemble(LSSVR(20.0, kernel=KERNEL, tol=1e-13), members=5, nu=nu, solver=solver).fit(
        X, y, unlabelled=Z
    )
    outputs, value = by_hand(X, y, Z, found.parts_, nu)
    np.testing.assert_allclose(found.member_outputs(X)[:, :, 0], outputs, atol=2e-6)
    assert found.objective_ == pytest.approx(value, rel=1e-9)
    assert 0.0 <= found.gap_ <= 1e-12 * found.objective_
    np.testing.assert_allclose(found.predict(X), outputs.mean(axis=0), atol=2e-6)


def test_a_chain_is_the_ring_without_its_last_link_and_with_the_bases_of_the_ring():
    X, y = curve()
    Z, _ = curve(15, 1)
    found = CoupledEnsemble(BASE, members=5, nu=0.5, graph="chain").fit(X, y, unlabelled=Z)
    outputs, value = by_hand(X, y, Z, found.parts_, 0.5, edges=[(j, j + 1) for j in range(4)])
    np.testing.assert_allclose(found.member_outputs(X)[:, :, 0], outputs, atol=1e-6)
    assert found.objective_ == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize(
    ("graph", "edges", "bases"),
    [
        ("star", [(0, 1), (0, 2), (0, 3)], [(0, 1, 2, 3), (0, 1), (0, 2), (0, 3)]),
        ("complete", [(i, j) for i in range(4) for j in range(i)], [(0, 1, 2, 3)] * 4),
    ],
)
def test_any_graph_by_its_edges(graph, edges, bases):
    X, y = curve()
    Z, _ = curve(12, 1)
    weights = np.zeros((4, 4))
    for i, j in edges:
        weights[i, j] = weights[j, i] = 1.0
    outputs = None
    for given in (graph, weights):
        found = CoupledEnsemble(BASE, members=4, nu=0.5, graph=given, random_state=1).fit(X, y, unlabelled=Z)
        outputs, _ = by_hand(X, y, Z, found.parts_, 0.5, edges=edges, bases=bases)
        np.testing.assert_allclose(found.member_outputs(X)[:, :, 0], outputs, atol=1e-6)


def test_without_coupling_the_members_with_the_larger_basis_are_alone():
    X, y = curve()
    found = CoupledEnsemble(BASE, members=5, nu=0.0).fit(X, y)
    plain = CoupledEnsemble(BASE, members=5, nu=0.0, bases="own", parts=found.parts_).fit(X, y)
    for j in range(5):
        own = found.parts_ == j
        three = np.isin(found.parts_, [(j - 1) % 5, j, (j + 1) % 5])
        for one, basis in ((found, three), (plain, own)):
            K = kernel(X[own], X[basis])
            a = np.linalg.solve(K.T @ K + np.eye(basis.sum()) / 20.0, K.T @ y[own])
            np.testing.assert_allclose(one.member_outputs(X)[j, :, 0], kernel(X, X[basis]) @ a, atol=1e-7)


def test_the_stronger_the_coupling_the_more_members_agree_and_the_worse_they_fit():
    X, y = curve()
    Z, _ = curve(20, 1)
    found = [
        CoupledEnsemble(BASE, members=5, nu=nu, random_state=0).fit(X, y, unlabelled=Z)
        for nu in (0.0, 0.01, 0.1, 1.0, 10.0, 1000.0)
    ]
    assert all(b.disagreement_ < a.disagreement_ for a, b in pairwise(found))
    assert all(b.fit_value_ > a.fit_value_ for a, b in pairwise(found))
    spread = [one.member_outputs(Z).std(axis=0).mean() for one in found]
    assert spread[-1] < 0.05 * spread[0]


@pytest.mark.parametrize("graph", ["ring", "chain", "complete"])
def test_leave_one_out_is_what_training_without_the_target_says(graph):
    X, y = curve(40)
    Z, _ = curve(10, 1)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 40)
    found = CoupledEnsemble(BASE, members=4, nu=0.5, graph=graph, random_state=0).fit(X, y, weights, unlabelled=Z)
    edges = {"ring": None, "chain": [(0, 1), (1, 2), (2, 3)], "complete": [(i, j) for i in range(4) for j in range(i)]}
    bases = [(0, 1, 2, 3)] * 4 if graph == "complete" else None
    for i in (0, 7, 23, 39):
        without = weights.copy()
        without[i] = 0.0  # the point stays as a basis function
        outputs, _ = by_hand(X, y, Z, found.parts_, 0.5, edges=edges[graph], weights=without, bases=bases)
        assert found.loo_outputs_[i, 0] == pytest.approx(outputs.mean(axis=0)[i], abs=1e-6)
    assert found.loo_error_ == pytest.approx(np.average((found.loo_outputs_[:, 0] - y) ** 2, weights=weights))


def test_the_second_layer_is_never_worse_than_equal_weights_on_what_it_has_seen():
    X, y = curve(150)
    for errors in ("leave_one_out", "training"):
        found = {
            weights: CoupledEnsemble(
                BASE, members=6, nu=0.1, weights=weights, errors=errors, random_state=0, ridge=0.0
            ).fit(X, y)
            for weights in ("equal", "affine", "convex")
        }
        if errors == "leave_one_out":
            error = {name: one.loo_error_ for name, one in found.items()}
        else:
            error = {name: np.mean((one.predict(X) - y) ** 2) for name, one in found.items()}
        assert error["affine"] <= error["convex"] + 1e-12
        assert error["convex"] <= error["equal"] + 1e-12
        assert (found["convex"].weights_ >= 0.0).all()
        assert found["affine"].weights_.sum() == pytest.approx(1.0)
    assert found["convex"].support_models_ <= 6


def test_classes_are_fitted_as_signs_and_decided_by_votes_where_asked():
    X, y = labels()
    base = LSSVC(20.0, kernel=KERNEL)
    found = CoupledEnsemble(base, members=4, nu=0.1, random_state=0).fit(X, np.array(["no", "yes"])[y])
    same = CoupledEnsemble(LSSVR(20.0, kernel=KERNEL), members=4, nu=0.1, parts=found.parts_, coupling_size=120)
    places = CoupledEnsemble(base, members=4, nu=0.1, parts=found.parts_, coupling_size=120).fit(X, y)
    np.testing.assert_allclose(places.decision_function(X), same.fit(X, 2.0 * y - 1.0).predict(X), atol=1e-8)
    assert found.score(X, np.array(["no", "yes"])[y]) > 0.9
    voting = CoupledEnsemble(base, members=5, nu=0.1, summed="decisions", random_state=0).fit(X, y)
    votes = np.where(voting.member_outputs(X)[:, :, 0] > 0, 1.0, -1.0).mean(axis=0)
    np.testing.assert_allclose(voting.decision_function(X), votes)
    np.testing.assert_array_equal(voting.predict(X), (votes > 0).astype(int))


def test_several_classes_are_several_outputs_of_one_system():
    X, y = labels(150, 3)
    found = CoupledEnsemble(LSSVC(20.0, kernel=KERNEL), members=4, nu=0.1, random_state=0).fit(X, y)
    assert found.decision_function(X).shape == (150, 3)
    assert found.score(X, y) > 0.85


def test_every_member_may_have_a_kernel_and_a_C_of_its_own():
    X, y = curve()
    bases = [LSSVR(C, kernel=Gaussian(sigma=sigma)) for C, sigma in ((5.0, 0.5), (50.0, 1.0), (20.0, 2.0))]
    found = CoupledEnsemble(bases, members=3, nu=0.0).fit(X, y)
    np.testing.assert_array_equal(found.C_, [5.0, 50.0, 20.0])
    for j, (C, sigma) in enumerate(((5.0, 0.5), (50.0, 1.0), (20.0, 2.0))):
        own = found.parts_ == j
        K = kernel(X[own], X, sigma)
        a = np.linalg.solve(K.T @ K + np.eye(len(X)) / C, K.T @ y[own])
        np.testing.assert_allclose(found.member_outputs(X)[j, :, 0], kernel(X, X, sigma) @ a, atol=1e-6)


def test_a_member_tunes_itself_by_leave_one_out():
    X, y = curve()
    found = CoupledEnsemble(LSSVR("loo", kernel=Gaussian(sigma="loo")), members=3, nu=0.0, random_state=0).fit(X, y)
    for j, one in enumerate(found.kernel_ if isinstance(found.kernel_, list) else 3 * [found.kernel_]):
        own = found.parts_ == j
        K = kernel(X[own], X, one.sigma)
        errors = []
        for C in COSTS:
            total = 0.0
            for i in range(own.sum()):
                rest = np.arange(own.sum()) != i
                a = K[rest].T @ np.linalg.solve(K[rest] @ K[rest].T + np.eye(rest.sum()) / C, y[own][rest])
                total += (y[own][i] - K[i] @ a) ** 2
            errors.append(total)
        assert found.C_[j] == COSTS[int(np.argmin(errors))]
        np.testing.assert_allclose(left_out_errors(K, y[own][:, None], COSTS), errors, rtol=1e-5)


def test_coupling_points_come_from_the_training_points_or_from_the_box_around_them():
    X, y = curve()
    on = [
        CoupledEnsemble(BASE, members=4, coupling=kind, coupling_size=30, random_state=0).fit(X, y)
        for kind in ("training", "uniform")
    ]
    assert on[0].disagreement_ != on[1].disagreement_
    everywhere = CoupledEnsemble(BASE, members=4, coupling_size=90, random_state=0).fit(X, y)
    given = CoupledEnsemble(BASE, members=4, parts=everywhere.parts_).fit(X, y, unlabelled=X)
    np.testing.assert_allclose(given.predict(X), everywhere.predict(X), atol=1e-9)


def test_negative_coupling_is_refused_where_there_is_no_minimum():
    X, y = curve()
    with pytest.raises(NotPositiveDefinite, match="is safe"):
        CoupledEnsemble(BASE, members=4, nu=-10.0).fit(X, y)
    small = CoupledEnsemble(BASE, members=4, nu=-1e-5, random_state=0).fit(X, y)
    none = CoupledEnsemble(BASE, members=4, nu=0.0, random_state=0).fit(X, y)
    assert small.disagreement_ > none.disagreement_
    assert small.gap_ <= 1e-8 * small.objective_


def test_a_limit_of_steps_ends_with_a_gap_and_a_warning():
    X, y = curve()
    with pytest.warns(NotConverged):
        found = CoupledEnsemble(
            LSSVR(20.0, kernel=KERNEL, max_iter=1), members=4, nu=50.0, solver="conjugate_gradient"
        ).fit(X, y)
    best = CoupledEnsemble(BASE, members=4, nu=50.0, parts=found.parts_).fit(X, y)
    assert found.stopped_ == "iterations"
    assert found.gap_ > 0.0
    assert best.stopped_ == "converged"


def test_sparse_points_are_taken():
    X, y = curve()
    dense, sparse = (CoupledEnsemble(BASE, members=4, random_state=0).fit(P, y) for P in (X, sp.csr_array(X)))
    np.testing.assert_allclose(sparse.predict(sp.csr_array(X)), dense.predict(X), atol=1e-8)


def test_there_are_no_more_members_than_points():
    X, y = curve(6)
    with pytest.warns(Advice, match="6 distinct points, and so 6 members"):
        found = CoupledEnsemble(BASE, members=31, random_state=0).fit(X, y)
    np.testing.assert_array_equal(np.sort(found.parts_), np.arange(6))
    exact = CoupledEnsemble(BASE, members=6, random_state=0).fit(X, y)
    np.testing.assert_array_equal(found.predict(X), exact.predict(X))


def test_what_cannot_be_coupled_is_refused():
    X, y = curve(30)
    with pytest.raises(InvalidInput, match="LSSVC or LSSVR"):
        CoupledEnsemble(SVC(), members=3).fit(X, y > 0)
    with pytest.raises(InvalidInput, match="a list of 3"):
        CoupledEnsemble([BASE, BASE], members=3).fit(X, y)
    with pytest.raises(InvalidInput, match="parts must name"):
        CoupledEnsemble(BASE, members=3, parts=np.zeros(30, dtype=int)).fit(X, y)
    with pytest.raises(InvalidInput, match="not a kernel matrix"):
        CoupledEnsemble(LSSVR(kernel="precomputed"), members=3).fit(kernel(X, X), y)
    with pytest.raises(InvalidInput, match="graph is one of 2 members"):
        CoupledEnsemble(BASE, members=3, graph=[[0, 1], [1, 0]]).fit(X, y)
    with pytest.raises(InvalidInput, match="more than the 30 points"):
        CoupledEnsemble(31 * [BASE], members=31).fit(X, y)
    with pytest.raises(InvalidInput, match="positive and finite"):
        CoupledEnsemble(LSSVR(np.inf, kernel=KERNEL), members=3).fit(X, y)
    with pytest.raises(InvalidInput, match="factorised system"):
        CoupledEnsemble(BASE, members=3, solver="conjugate_gradient", weights="affine").fit(X, y)
    with pytest.raises(BudgetTooSmall, match="take more members"):
        CoupledEnsemble(LSSVR(kernel=KERNEL, memory=10_000), members=3).fit(X, y)


def test_a_sweep_gives_every_nu_the_same_splits():
    X, y = curve(120)
    machine = CoupledEnsemble(BASE, members=6)
    found = sweep_nu(machine, X, y, [0.0, 0.1, 0.1], splits=4)
    assert found.errors.shape == (3, 4)
    np.testing.assert_array_equal(found.errors[1], found.errors[2])
    assert found.best in (0.0, 0.1)
    np.testing.assert_allclose(found.mean, found.errors.mean(axis=1))
    np.testing.assert_allclose(found.deviation, found.errors.std(axis=1, ddof=1))
    X, y = labels()
    rates = sweep_nu(CoupledEnsemble(LSSVC(20.0, kernel=KERNEL), members=4), X, y, [0.1], splits=3, transductive=False)
    assert ((rates.errors >= 0.0) & (rates.errors <= 1.0)).all()
    with pytest.raises(InvalidInput, match="two splits"):
        sweep_nu(machine, X, y, [0.1], splits=1)
