"""Claims about local machines."""

import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.tree import DecisionTreeClassifier

from mercer import LSSVR, SVC, SVR, Gaussian, TunedSVC, TunedSVR
from mercer.ensembles import LocalMachines
from mercer.errors import Advice, InvalidInput, NotConverged

KERNEL = Gaussian(sigma=0.5)
BASE = SVC(C=10.0, kernel=KERNEL, tol=1e-6)


def classes(n: int = 400, seed: int = 0, k: int = 2) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).uniform(-3.0, 3.0, (n, 2))
    return X, np.floor(X[:, 0] + np.sin(2.0 * X[:, 1])).astype(int) % k


def seen_by(found: LocalMachines, X: np.ndarray, cell: int) -> np.ndarray:
    """The points of a cell, where there is no overlap."""
    return np.flatnonzero(found.tree_.cell_of(X) == cell)


def test_one_cell_is_the_machine_itself():
    X, y = classes()
    found, alone = LocalMachines(BASE, size=400).fit(X, y), SVC(C=10.0, kernel=KERNEL, tol=1e-6).fit(X, y)
    np.testing.assert_array_equal(found.decision_function(X), alone.decision_function(X))
    assert found.objective_ == alone.objective_


@pytest.mark.parametrize("partition", ["projections", "k-means"])
def test_a_cell_answers_as_the_machine_trained_on_its_points(partition):
    X, y = classes()
    Z, _ = classes(200, 1)
    found = LocalMachines(BASE, size=100, overlap=0.0, partition=partition, random_state=3).fit(X, y)
    assert len(found.machines_) > 3
    cells = found.tree_.cell_of(Z)
    for j in range(len(found.machines_)):
        own = seen_by(found, X, j)
        alone = SVC(C=10.0, kernel=KERNEL, tol=1e-6).fit(X[own], y[own])
        np.testing.assert_allclose(found.decision_function(Z)[cells == j], alone.decision_function(Z[cells == j]))


def test_the_certificate_is_that_of_all_cells_together():
    X, y = classes()
    found = LocalMachines(BASE, size=100, overlap=0.0, random_state=3).fit(X, y)
    alone = [SVC(C=10.0, kernel=KERNEL, tol=1e-6).fit(X[own], y[own])
             for own in (seen_by(found, X, j) for j in range(len(found.machines_)))]  # fmt: skip
    assert found.objective_ == pytest.approx(sum(machine.objective_ for machine in alone))
    assert found.gap_ == pytest.approx(sum(machine.gap_ for machine in alone), abs=1e-9)
    assert 0.0 <= found.gap_ <= 1e-4 * found.objective_
    np.testing.assert_array_equal(found.sizes_, [len(seen_by(found, X, j)) for j in range(len(alone))])


def test_points_around_a_cell_help_at_its_border():
    X, y = classes(1500)
    Z, t = classes(3000, 1)
    # Over several partitions: one of them may be lucky.
    scores = [
        [LocalMachines(BASE, size=80, overlap=share, random_state=seed).fit(X, y).score(Z, t) for seed in range(4)]
        for share in (0.0, 1.0)
    ]
    assert np.mean(scores[1]) > np.mean(scores[0])


def test_a_cell_with_one_class_needs_no_machine():
    X, _ = classes()
    y = (X[:, 0] > 2.0).astype(int)
    found = LocalMachines(BASE, size=50, overlap=0.0).fit(X, y)
    constant = [j for j, machine in enumerate(found.machines_) if isinstance(machine, float)]
    assert constant
    for j in constant:
        np.testing.assert_array_equal(found.predict(X)[seen_by(found, X, j)], y[seen_by(found, X, j)])
    assert found.score(X, y) > 0.97


def test_classes_that_a_cell_has_not_seen_come_last_there():
    X, _ = classes(600)
    y = np.array(["a", "b", "c", "d"])[np.digitize(X[:, 0], [-1.5, 0.0, 1.5])]
    found = LocalMachines(BASE, size=60, overlap=0.0, random_state=1).fit(X, y)
    some = [len(machine.classes_) for machine in found._parts()]
    assert {2} < set(some) | {2}
    assert min(some) < 4
    assert found.score(X, y) > 0.95
    values, cells = found.decision_function(X), found.tree_.cell_of(X)
    for j, machine in enumerate(found.machines_):
        here = np.flatnonzero(cells == j)
        if not isinstance(machine, float):
            np.testing.assert_array_equal(found.predict(X[here]), machine.predict(X[here]))
            unseen = ~np.isin(found.classes_, machine.classes_)
            assert (values[here][:, unseen].max(initial=-np.inf) < values[here].max(axis=1)).all()


def test_regression_by_cells():
    X = np.random.default_rng(0).uniform(-3.0, 3.0, (500, 1))
    y = np.sin(3.0 * X[:, 0])
    for base in (SVR(kernel=Gaussian(sigma=0.5), C=10.0, epsilon=0.01), LSSVR(100.0, kernel=Gaussian(sigma=0.5))):
        found = LocalMachines(base, size=100, random_state=0).fit(X, y)
        assert found.score(X, y) > 0.99
        assert not hasattr(found, "decision_function")


def test_every_cell_is_tuned_on_its_own():
    random = np.random.default_rng(0)
    X = random.uniform(0.0, 4.0, (400, 1))
    # Coarse on one side, fine on the other: no single width suits both.
    y = np.where(X[:, 0] < 2.0, np.sin(X[:, 0]), np.sin(25.0 * X[:, 0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Advice)
        found = LocalMachines(TunedSVR(n_C=3, n_sigma=8, folds=3), size=220, overlap=0.0, partition="k-means").fit(X, y)
        whole = TunedSVR(n_C=3, n_sigma=8, folds=3).fit(X, y)
    widths = [machine.best_params_["sigma"] for machine in found.machines_]
    assert max(widths) > 1.5 * min(widths)
    assert found.score(X, y) >= whole.score(X, y) - 0.01
    assert found.best_score_ == pytest.approx(
        np.average([machine.best_score_ for machine in found.machines_], weights=found.sizes_)
    )


def test_a_tuned_machine_is_what_a_cell_gets_by_default():
    X, y = classes(120)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Advice)
        found = LocalMachines(size=60, random_state=0).fit(X, y)
    assert all(isinstance(machine, TunedSVC) for machine in found._parts())
    assert found.score(X, y) > 0.85


def test_the_edge_of_the_grid_is_spoken_of_once_for_all_cells():
    X, y = classes(200)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        LocalMachines(TunedSVC(C=[1e-4, 2e-4, 3e-4], sigma=[1.0], folds=2), size=60, random_state=0).fit(X, y)
    advice = [str(one.message) for one in said if issubclass(one.category, Advice)]
    assert len(advice) == 1
    assert "C in" in advice[0]


def test_neither_threads_nor_an_executor_change_the_answer():
    X, y = classes()
    one = LocalMachines(BASE, size=80, random_state=0, n_jobs=1).fit(X, y)
    many = LocalMachines(BASE, size=80, random_state=0).fit(X, y)
    with ThreadPoolExecutor(2) as pool:
        lent = LocalMachines(BASE, size=80, random_state=0, executor=pool).fit(X, y)
    for found in (many, lent):
        np.testing.assert_array_equal(found.decision_function(X), one.decision_function(X))


def test_a_time_limit_leaves_cells_with_a_constant_and_says_so():
    X, y = classes()

    class Slow(DecisionTreeClassifier):
        def fit(self, X, y, sample_weight=None):
            time.sleep(0.05)
            return super().fit(X, y, sample_weight)

    with pytest.warns(NotConverged, match="cells trained"):
        found = LocalMachines(Slow(), size=20, overlap=0.0, max_time=0.1, n_jobs=1).fit(X, y)
    assert found.stopped_ == "time"
    assert 0 < len(found._parts()) < len(found.machines_)
    late = next(j for j, machine in enumerate(found.machines_) if isinstance(machine, float))
    own = seen_by(found, X, late)
    assert (found.predict(X[own]) == found.classes_[np.argmax(np.bincount(y[own]))]).all()


def test_sparse_points_are_taken():
    X, y = classes(200)
    found = LocalMachines(BASE, size=60, random_state=0).fit(sp.csr_array(X), y)
    np.testing.assert_array_equal(found.predict(sp.csr_array(X)), found.predict(X))


def test_weights_reach_the_machines():
    X, y = classes()
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    found = LocalMachines(BASE, size=100, overlap=0.0, random_state=3).fit(X, y, sample_weight=weights)
    own = seen_by(found, X, 0)
    alone = SVC(C=10.0, kernel=KERNEL, tol=1e-6).fit(X[own], y[own], sample_weight=weights[own])
    np.testing.assert_allclose(found.decision_function(X[own]), alone.decision_function(X[own]))


def test_a_kernel_matrix_has_no_cells():
    X, y = classes(60)
    with pytest.raises(InvalidInput, match="cells are parts of a space"):
        LocalMachines(SVC(kernel="precomputed")).fit(KERNEL(X), y)
