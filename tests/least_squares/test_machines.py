"""LSSVC and LSSVR against independent references."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge

from mercer.errors import Advice, BudgetTooSmall, InvalidInput, NotConverged, NotPositiveDefinite
from mercer.kernels import Gaussian, Linear, Multiquadric, Wendland
from mercer.least_squares import LSSVC, LSSVR
from mercer.least_squares.solving import SOLVERS
from mercer.lowrank import Nystrom


def data(seed=0, n=60, d=3, k=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] ** 2])[:, :k] + 0.1 * rng.standard_normal((n, k))
    return X, Y, rng.uniform(0.2, 3.0, n)


def saddle(K, Y, ridge, P):
    """Coefficients and offsets by a dense solve of the saddle-point system."""
    n, q = P.shape
    system = np.block([[K + np.diag(np.broadcast_to(ridge, n)), P], [P.T, np.zeros((q, q))]])
    solution = np.linalg.solve(system, np.concatenate([Y, np.zeros((q, Y.shape[1]))]))
    return solution[:n], solution[n:]


# Regression -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_without_bias_it_is_kernel_ridge(weighted):
    X, Y, w = data()
    w = w if weighted else None
    ours = LSSVR(C=4.0, kernel="rbf", gamma=0.3, bias=False).fit(X, Y, sample_weight=w)
    theirs = KernelRidge(alpha=0.25, kernel="rbf", gamma=0.3).fit(X, Y, sample_weight=w)
    np.testing.assert_allclose(ours.predict(X[:7] + 0.1), theirs.predict(X[:7] + 0.1), rtol=1e-9)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, rtol=1e-8, atol=1e-10)


def test_without_bias_it_is_the_posterior_mean_of_a_gaussian_process():
    X, Y, _ = data(1)
    ours = LSSVR(C=10.0, kernel=Gaussian(sigma=1.3), bias="none").fit(X, Y[:, 0])
    theirs = GaussianProcessRegressor(RBF(1.3), alpha=0.1, optimizer=None).fit(X, Y[:, 0])
    np.testing.assert_allclose(ours.predict(X + 0.2), theirs.predict(X + 0.2), rtol=1e-8)


@pytest.mark.parametrize("bias", ["free", "none", "penalised"])
@pytest.mark.parametrize("basis", [None, lambda X: X[:, 1:]])
def test_every_bias_and_basis_solves_its_saddle_point_system(bias, basis):
    X, Y, w = data(2)
    machine = LSSVR(C=3.0, kernel=Gaussian(sigma=1.0), bias=bias, basis=basis).fit(X, Y, sample_weight=w)
    P = np.empty((60, 0)) if basis is None else basis(X)
    P = np.hstack([np.ones((60, 1)), P]) if bias == "free" else P
    K = Gaussian(sigma=1.0)(X) + (bias == "penalised")
    c, offsets = saddle(K, Y, 1 / (3.0 * w), P)
    np.testing.assert_allclose(machine.dual_coef_, c, atol=1e-10)
    np.testing.assert_allclose(machine.predict(X), K @ c + P @ offsets, atol=1e-9)
    assert 0 <= machine.gap_ <= 1e-12 * machine.objective_


def test_adding_a_constant_to_the_kernel_or_the_targets_moves_only_the_bias():
    X, Y, _ = data(3)
    K = Gaussian(sigma=1.0)(X)
    first = LSSVR(C=5.0, kernel="precomputed").fit(K, Y[:, 0])
    other = LSSVR(C=5.0, kernel="precomputed").fit(K + 7.0, Y[:, 0] + 3.0)
    np.testing.assert_allclose(first.dual_coef_, other.dual_coef_, atol=1e-10)
    assert other.intercept_ - first.intercept_ == pytest.approx(3.0)
    assert abs(first.dual_coef_.sum()) < 1e-12
    np.testing.assert_allclose(first.dual_coef_, 5.0 * (Y[:, 0] - first.predict(K)), atol=1e-9)


def test_norm_rises_with_C():
    X, Y, _ = data(4)
    K = Gaussian(sigma=1.0)(X)
    norms = []
    for C in np.geomspace(1e-2, 1e4, 9):
        c = LSSVR(C=C, kernel=Gaussian(sigma=1.0)).fit(X, Y[:, 0]).dual_coef_
        norms.append(c @ K @ c)
    assert np.all(np.diff(norms) > 0)


@pytest.mark.parametrize("solver", sorted(set(SOLVERS) - {"sparse_direct", "woodbury"}))
def test_every_solver_gives_the_same_machine(solver):
    X, Y, w = data(5)
    reference = LSSVR(C=2.0, kernel=Gaussian(sigma=1.0)).fit(X, Y, sample_weight=w)
    w = None if solver == "multishift" else w
    if solver == "multishift":
        reference.fit(X, Y)
    found = LSSVR(C=2.0, kernel=Gaussian(sigma=1.0), solver=solver, tol=1e-13).fit(X, Y, sample_weight=w)
    np.testing.assert_allclose(found.predict(X), reference.predict(X), atol=1e-5)
    assert found.solver_.startswith("ssor" if solver == "stationary" else solver)
    assert found.stopped_ == "converged"


def test_linear_kernel_by_woodbury_by_cholesky_and_by_conjugate_gradients():
    X, Y, w = data(6, n=80, d=6)
    sparse = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    for bias in ("free", "none", "penalised"):
        options = {"C": 2.0, "kernel": "linear", "bias": bias, "tol": 1e-14}
        machines = [
            LSSVR(**options, solver=solver).fit(points, Y, sample_weight=w)
            for solver in ("auto", "woodbury", "cholesky", "conjugate_gradient")
            for points in (sparse, sparse.toarray())
        ]
        assert machines[0].solver_.startswith("woodbury")
        for machine in machines[1:]:
            np.testing.assert_allclose(machine.coef_, machines[0].coef_, atol=1e-6)
            np.testing.assert_allclose(machine.intercept_, machines[0].intercept_, atol=1e-6)
    full = LSSVR(C="loo", kernel="precomputed").fit(np.asarray((sparse @ sparse.T).toarray()), Y, sample_weight=w)
    thin = LSSVR(C="loo", kernel="linear").fit(sparse, Y, sample_weight=w)
    assert thin.path_.method == "factored"
    np.testing.assert_allclose(thin.path_.loo, full.path_.loo, rtol=1e-8)
    ridge = Ridge(alpha=0.5).fit(sparse.toarray(), Y, sample_weight=w)
    free = LSSVR(C=2.0, kernel="linear").fit(sparse, Y, sample_weight=w)
    np.testing.assert_allclose(free.coef_, ridge.coef_, atol=1e-10)
    np.testing.assert_allclose(free.predict(sparse), sparse @ free.coef_.T + free.intercept_, atol=1e-9)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_dense_frames_and_float32_agree(index):
    X, Y, _ = data(7)
    X[np.abs(X) < 0.5] = 0
    sparse = sp.csr_array(X)
    sparse.indices, sparse.indptr = sparse.indices.astype(index), sparse.indptr.astype(index)
    dense = LSSVR(C=2.0).fit(X, Y)
    np.testing.assert_allclose(LSSVR(C=2.0).fit(sparse, Y).predict(sparse), dense.predict(X), atol=1e-10)
    single = LSSVR(C=2.0, precision="float32").fit(X, Y).predict(X)
    np.testing.assert_allclose(single, dense.predict(X), atol=2e-4)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abc"))
    framed = LSSVR(C=2.0).fit(frame, pandas.DataFrame(Y))
    np.testing.assert_allclose(framed.predict(frame), dense.predict(X), atol=1e-12)
    assert list(framed.feature_names_in_) == ["a", "b", "c"]


def test_kernel_functions_objects_and_precomputed_matrices():
    X, Y, _ = data(8)
    reference = LSSVR(C=2.0, kernel=Gaussian(sigma=1.5)).fit(X, Y)
    function = LSSVR(C=2.0, kernel=lambda A, B: Gaussian(sigma=1.5)(A, B)).fit(X, Y)
    given = LSSVR(C=2.0, kernel="precomputed").fit(Gaussian(sigma=1.5)(X), Y)
    np.testing.assert_allclose(function.predict(X[:5]), reference.predict(X[:5]), atol=1e-10)
    np.testing.assert_allclose(given.predict(Gaussian(sigma=1.5)(X[:5], X)), reference.predict(X[:5]), atol=1e-10)
    np.testing.assert_allclose(given.loo_residuals_, reference.loo_residuals_, atol=1e-9)
    np.testing.assert_allclose(function.loo_residuals_, reference.loo_residuals_, atol=1e-9)


def test_conditionally_positive_definite_kernel_with_free_bias():
    X, Y, _ = data(9)
    kernel = Multiquadric(sigma=1.0, u=1)
    assert kernel.conditional_order == 1
    machine = LSSVR(C=5.0, kernel=kernel).fit(X, Y)
    c, b = saddle(kernel(X), Y, 0.2, np.ones((60, 1)))
    np.testing.assert_allclose(machine.dual_coef_, c, atol=1e-8)
    np.testing.assert_allclose(machine.intercept_, b[0], atol=1e-8)
    assert np.isfinite(machine.loo_error_).all()


def test_compact_kernel_runs_on_its_sparse_matrix():
    X, Y, _ = data(10, n=120)
    kernel = Wendland(theta=0.8)
    found = LSSVR(C=2.0, kernel=kernel, tol=1e-14).fit(X, Y)
    assert "sparse" in found.solver_
    for solver in ("cholesky", "sparse_direct"):
        reference = LSSVR(C=2.0, kernel=kernel, solver=solver).fit(X, Y)
        np.testing.assert_allclose(found.predict(X), reference.predict(X), atol=1e-6)


def test_small_memory_means_products_on_the_fly():
    X, Y, _ = data(11, n=700)
    found = LSSVR(C=1.0, kernel=Gaussian(sigma=1.0), memory="2 MiB", tol=1e-12).fit(X, Y)
    assert found.solver_.startswith("block_conjugate_gradient")
    reference = LSSVR(C=1.0, kernel=Gaussian(sigma=1.0)).fit(X, Y)
    np.testing.assert_allclose(found.predict(X[:9]), reference.predict(X[:9]), atol=1e-4)
    with pytest.raises(BudgetTooSmall, match="leave-one-out"):
        _ = found.loo_error_


# Leave-one-out --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", ["free", "none", "penalised"])
@pytest.mark.parametrize("kernel", [Gaussian(sigma=1.2), Linear()])
def test_leave_one_out_equals_retraining_the_machine(bias, kernel):
    X, Y, w = data(12, n=25)
    w[::6] = 0.0
    machine = LSSVR(C=2.0, kernel=kernel, bias=bias, solver="cholesky").fit(X, Y, sample_weight=w)
    for i in range(25):
        rest = np.arange(25) != i
        again = clone(machine).fit(X[rest], Y[rest], sample_weight=w[rest])
        np.testing.assert_allclose(machine.loo_predictions_[i], again.predict(X[i : i + 1])[0], atol=1e-10)
    np.testing.assert_allclose(machine.loo_residuals_, Y - machine.loo_predictions_, atol=1e-12)
    expected = w @ machine.loo_residuals_**2 / w.sum()
    np.testing.assert_allclose(machine.loo_error_, expected)


@pytest.mark.parametrize("choice", ["loo", "gcv", [0.1, 1.0, 10.0]])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_C_chosen_along_the_path_is_the_best_and_is_used(choice, kernel):
    X, Y, _ = data(13)
    machine = LSSVR(C=choice, kernel=kernel).fit(X, Y)
    fixed = LSSVR(C=machine.C_, kernel=kernel).fit(X, Y)
    np.testing.assert_allclose(machine.dual_coef_, fixed.dual_coef_, atol=1e-10)
    np.testing.assert_allclose(machine.loo_error_, fixed.loo_error_, rtol=1e-9)
    assert machine.gcv_ == pytest.approx(fixed.gcv_, rel=1e-9)
    values = [p.value for p in machine.loo_surface_]
    assert machine.path_.values[machine.path_.index] == min(values)
    assert len(values) == (3 if isinstance(choice, list) else 101)
    best = machine.gcv_ if choice == "gcv" else np.sum(machine.loo_error_)
    assert best == pytest.approx(min(values), rel=1e-9)


def criteria(K, y, C):
    """Generalised cross-validation and the mean squared leave-one-out residual, from the matrix that smooths y."""
    n = len(y)
    bordered = np.block([[K + np.eye(n) / C, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    smoother = np.eye(n) - np.linalg.inv(bordered)[:n, :n] / C  # the outputs are y - c / C
    residuals = y - smoother @ y
    inside = 1.0 - np.diag(smoother)
    return np.mean(residuals**2) / np.mean(inside) ** 2, np.mean((residuals / inside) ** 2)


def uneven(seed=4, n=60):
    """Points of very different leverage with noise where it is large, for which the two criteria disagree."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)) * np.where(np.arange(n) < 6, 4.0, 0.5)[:, None]
    return X, np.sin(X[:, 0]) + X[:, 1] + np.where(np.arange(n) < 6, 1.5, 0.1) * rng.standard_normal(n)


@pytest.mark.parametrize(
    "kernel, approximation",
    [(Gaussian(sigma=1.0), None), (Linear(), None), (Gaussian(sigma="loo"), None), (Gaussian(sigma=1.0), Nystrom(60))],
    ids=["path", "linear path", "descent", "landmarks"],
)
def test_C_by_generalised_cross_validation_is_its_minimiser_and_not_that_of_leave_one_out(kernel, approximation):
    X, y = uneven()
    machines = {name: LSSVR(C=name, kernel=kernel, approximation=approximation).fit(X, y) for name in ("gcv", "loo")}
    at = {name: criteria(machine.kernel_(X), y, machine.C_) for name, machine in machines.items()}
    assert at["gcv"][0] < at["loo"][0] * (1 - 1e-3)
    assert at["loo"][1] < at["gcv"][1] * (1 - 1e-3)
    if machines["gcv"].path_ is not None:
        values = [criteria(machines["gcv"].kernel_(X), y, C)[0] for C in machines["gcv"].path_.C]
        assert machines["gcv"].path_.C[int(np.argmin(values))] == machines["gcv"].C_


def test_C_and_sigma_by_leave_one_out_just_work():
    X, y = load_iris(return_X_y=True)
    machine = LSSVC(C="loo", kernel=Gaussian(sigma="loo")).fit(X, y)
    assert machine.loo_error_ <= 0.05
    assert isinstance(machine.kernel_.sigma, float)
    assert {"sigma", "C"} == set(machine.loo_surface_[0].parameters)
    chosen = LSSVC(C=machine.C_, kernel=machine.kernel_).fit(X, y)
    np.testing.assert_allclose(machine.decision_function(X), chosen.decision_function(X), atol=1e-9)
    np.testing.assert_allclose(machine.loo_predictions_, chosen.loo_predictions_, atol=1e-7)


def test_widths_by_rule_with_C_given():
    X, Y, _ = data(14)
    for rule in ("median", "loo"):
        machine = LSSVR(C=3.0, kernel=Gaussian(sigma=rule)).fit(X, Y)
        assert machine.C_ == 3.0
        assert machine.kernel_.sigma > 0
    with pytest.raises(InvalidInput, match="C must be a number"):
        LSSVR(C=[1.0, 2.0], kernel=Gaussian(sigma="loo")).fit(X, Y)


def test_a_sample_decides_where_memory_is_short():
    X, Y, _ = data(15, n=500)
    with pytest.warns(Advice, match="of 500 points"):
        machine = LSSVR(C="loo", kernel=Gaussian(sigma=1.0), memory="2 MiB").fit(X, Y)
    assert machine.loo_surface_[0].points < 500
    with pytest.warns(Advice, match="of 500 points"):
        LSSVR(C="loo", kernel=Gaussian(sigma="loo"), memory="2 MiB").fit(X, Y)


# Classification -------------------------------------------------------------------------------------------------


def test_two_classes_are_regression_on_signs():
    X, Y, w = data(16)
    labels = np.where(Y[:, 0] > 0, "up", "down")
    machine = LSSVC(C=2.0).fit(X, labels, sample_weight=w)
    reference = LSSVR(C=2.0).fit(X, np.where(labels == "up", 1.0, -1.0), sample_weight=w)
    np.testing.assert_allclose(machine.decision_function(X), reference.predict(X), atol=1e-10)
    assert machine.decision_function(X).shape == (60,)
    assert machine.score(X, labels) > 0.9
    # alpha_i = C w_i (1 - y_i f(x_i)) at the training points, in the classifier's own signs
    y = np.where(labels == "up", 1.0, -1.0)
    np.testing.assert_allclose(
        y * machine.dual_coef_, 2.0 * w * (1 - y * machine.decision_function(X)), rtol=1e-7, atol=1e-9
    )


def test_many_classes_are_one_against_the_rest():
    X, y = load_iris(return_X_y=True)
    machine = LSSVC(C=5.0, kernel="rbf").fit(X, y)
    assert machine.decision_function(X).shape == (150, 3)
    assert machine.intercept_.shape == (3,)
    for k in range(3):
        alone = LSSVC(C=5.0, kernel="rbf").fit(X, y == k)
        np.testing.assert_allclose(machine.decision_function(X)[:, k], alone.decision_function(X), atol=1e-9)
    exact = np.mean(machine.classes_[np.argmax(machine.loo_predictions_, axis=1)] != y)
    assert machine.loo_error_ == pytest.approx(exact)


@pytest.mark.parametrize("bias", ["none", "penalised"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_bound_on_leave_one_out_errors_holds(bias, classes):
    rng = np.random.default_rng(17)
    for C in (0.1, 1.0, 30.0):
        y = rng.integers(0, classes, 80)
        X = rng.standard_normal((80, 2)) + y[:, None]
        machine = LSSVC(C=C, kernel=Gaussian(sigma=1.0), bias=bias).fit(X, y, sample_weight=rng.uniform(0.5, 2, 80))
        assert machine.loo_error_ <= machine.loo_error_bound() <= 1.0
    with pytest.raises(InvalidInput, match="without free bias"):
        LSSVC().fit(X, y).loo_error_bound()


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("landmarks", [None, 12])
def test_a_penalised_bias_is_part_of_the_kernel_in_the_bound_on_leave_one_out_errors(classes, landmarks):
    rng = np.random.default_rng(23)
    y = rng.integers(0, classes, 60)
    X = 0.3 * rng.standard_normal((60, 2)) + 0.2 * y[:, None]
    low_rank = None if landmarks is None else Nystrom(landmarks)
    machine = LSSVC(C=0.5, kernel=Linear(), bias="penalised", approximation=low_rank).fit(X, y)
    K = X @ X.T + 1.0  # twelve landmarks span the plane
    T = 2.0 * (y[:, None] == (np.arange(3) if classes == 3 else [1])) - 1.0
    c = np.linalg.solve(K + 2.0 * np.eye(60), T)
    # A left-out output lies between f and f - c K_ii: an error is possible where some choice of ends makes one.
    f = K @ c
    worst = f - c * np.diag(K)[:, None]
    if classes == 2:
        possible = np.min(T * [f, worst], axis=0)[:, 0] <= 0
    else:
        low, high = np.minimum(f, worst), np.maximum(f, worst)
        own = np.take_along_axis(low, y[:, None], axis=1)
        rivals = np.where(T > 0, -np.inf, high)
        possible = np.any(rivals >= own, axis=1)
    assert machine.loo_error_bound() == pytest.approx(np.mean(possible))
    assert machine.loo_error_ <= np.mean(possible) < 1.0


def test_class_weights_multiply_sample_weights():
    X, Y, w = data(18)
    y = (Y[:, 0] > 0.5).astype(int)
    machine = LSSVC(class_weight={0: 1.0, 1: 5.0}).fit(X, y, sample_weight=w)
    same = LSSVC(gamma=float(machine.kernel_.gamma)).fit(X, y, sample_weight=w * np.where(y == 1, 5.0, 1.0))
    np.testing.assert_allclose(machine.decision_function(X), same.decision_function(X), atol=1e-9)


# Edges ----------------------------------------------------------------------------------------------------------


def test_interpolation_at_infinite_C():
    X, Y, _ = data(19, n=15)
    machine = LSSVR(C=np.inf, kernel=Gaussian(sigma=0.6)).fit(X, Y)
    np.testing.assert_allclose(machine.predict(X), Y, atol=1e-8)
    X[1], Y[1] = X[0], Y[0]
    twice = LSSVR(C=np.inf, kernel=Gaussian(sigma=0.6)).fit(X, Y)
    np.testing.assert_allclose(twice.predict(X), Y, atol=1e-8)  # copies are one point, and nothing is singular
    K = Gaussian(sigma=0.6)(X, X)
    singular = LSSVR(C=np.inf, kernel="precomputed").fit(K, Y)
    np.testing.assert_allclose(singular.predict(K), Y, atol=1e-6)
    assert singular.solver_.startswith("spectral")
    with pytest.raises(NotPositiveDefinite):
        LSSVR(C=np.inf, kernel="precomputed", solver="cholesky").fit(K, Y)
    for machine in (twice, singular):
        with pytest.raises(NotPositiveDefinite, match="lower C"):
            _ = machine.loo_error_


def test_duplicates_with_conflicting_targets_average():
    machine = LSSVR(C=1e6, kernel=Gaussian(sigma=1.0), bias="none").fit([[0.0], [0.0]], [1.0, 3.0])
    assert machine.predict([[0.0]])[0] == pytest.approx(2.0, abs=1e-5)


def test_constant_targets_are_the_bias_alone():
    X, _, _ = data(20)
    machine = LSSVR().fit(X, np.full(60, 2.5))
    np.testing.assert_allclose(machine.dual_coef_, 0, atol=1e-12)
    assert machine.intercept_ == pytest.approx(2.5)
    np.testing.assert_allclose(machine.loo_predictions_, 2.5)
    chosen = LSSVR(C="loo", kernel=Gaussian(sigma="loo")).fit(X, np.full(60, 2.5))
    np.testing.assert_allclose(chosen.predict(X), 2.5)


def test_one_point():
    assert LSSVR().fit([[1.0]], [3.0]).predict([[5.0]])[0] == pytest.approx(3.0)
    assert LSSVR(C=1.0, bias="none").fit([[1.0]], [3.0]).predict([[1.0]])[0] == pytest.approx(1.5)
    for kernel in ("rbf", Gaussian(sigma="loo")):
        with pytest.raises(InvalidInput, match="leave-one-out"):
            LSSVR(C="loo", kernel=kernel).fit([[1.0]], [3.0])


def test_one_class_and_bad_parameters_are_refused():
    X, Y, _ = data(21)
    with pytest.raises(InvalidInput, match="number of classes"):
        LSSVC().fit(X, np.zeros(60))
    with pytest.raises(InvalidInput, match="negative"):
        LSSVR().fit(X, Y, sample_weight=-np.ones(60) + 2 * (np.arange(60) > 0))
    with pytest.raises(ValueError, match="C"):
        LSSVR(C=-1.0).fit(X, Y)
    with pytest.raises(ValueError, match="C must be"):
        LSSVR(C=[1.0, -1.0]).fit(X, Y)
    with pytest.raises(ValueError, match="solver"):
        LSSVR(solver="magic").fit(X, Y)
    with pytest.raises(InvalidInput, match="basis"):
        LSSVR(basis=lambda X: X[:3]).fit(X, Y)


def test_running_out_of_time_keeps_the_best_solution_and_says_so():
    X, Y, _ = data(22, n=400)
    machine = LSSVR(C=1e6, kernel=Gaussian(sigma=3.0), solver="conjugate_gradient", tol=1e-14, max_time=1e-9)
    with pytest.warns(NotConverged, match="time limit"):
        machine.fit(X, Y)
    assert machine.stopped_ == "time"
    assert np.isfinite(machine.gap_)


def test_machines_travel_by_pickle_with_their_leave_one_out():
    X, Y, _ = data(23)
    machine = LSSVR(C="loo").fit(X, Y)
    again = pickle.loads(pickle.dumps(machine))
    np.testing.assert_array_equal(again.predict(X), machine.predict(X))
    np.testing.assert_array_equal(again.loo_residuals_, machine.loo_residuals_)
    given = pickle.loads(pickle.dumps(LSSVR(kernel="precomputed").fit(Gaussian(sigma=1.0)(X), Y)))
    with pytest.raises(InvalidInput, match="travel"):
        _ = given.loo_residuals_


def test_fitting_leaves_the_input_alone_and_gives_the_same_twice():
    X, Y, _ = data(24)
    K = Gaussian(sigma=1.0)(X)
    before = K.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = LSSVR(C="loo", kernel="precomputed").fit(K, Y)
        second = LSSVR(C="loo", kernel="precomputed").fit(K, Y)
    np.testing.assert_array_equal(K, before)
    np.testing.assert_array_equal(first.dual_coef_, second.dual_coef_)


@pytest.mark.parametrize("C", [2.0, "loo"])
def test_leave_one_out_of_a_machine_trained_again_is_that_of_the_last_training(C):
    machine = LSSVR(C=C, kernel=Gaussian(sigma=1.0))
    for seed in (24, 25):
        X, Y, _ = data(seed)
        machine.fit(X, Y)
        fresh = clone(machine).fit(X, Y).leave_one_out()
        np.testing.assert_array_equal(machine.leave_one_out().predictions, fresh.predictions)


def test_leave_one_out_counts_ties_as_predict_does():
    # With K = I a point left out has output 0 exactly.
    y = np.array([3, 3, 3, 5, 5, 5, 5])
    machine = LSSVC(kernel="precomputed", bias="none").fit(np.eye(7), y)
    np.testing.assert_array_equal(machine.loo_predictions_, 0.0)
    assert machine.loo_error_ == np.mean(machine.predict(np.zeros((7, 7))) != y)
    chosen = LSSVC(C=[0.1, 1.0], kernel="precomputed", bias="none").fit(np.eye(7), y)
    assert chosen.loo_error_ == machine.loo_error_


@pytest.mark.parametrize("bias", ["free", "penalised", "none"])
def test_linear_machines_on_wide_sparse_rows_take_conjugate_gradients_and_equal_dense_algebra(bias):
    rng = np.random.default_rng(5)
    n, d = 300, 2**17
    words = rng.integers(0, 400, size=(n, 12)) * 300
    X = sp.csr_array((rng.normal(size=words.size), words.ravel(), np.arange(0, words.size + 1, 12)), shape=(n, d))
    X.sum_duplicates()
    Y, C = rng.normal(size=(n, 2)), 3.0
    machine = LSSVR(C=C, kernel="linear", bias=bias, tol=1e-15).fit(X, Y)
    assert machine.solver_.startswith("conjugate_gradient")
    assert "sparse" in machine.solver_
    used = np.unique(X.indices)
    A = np.asarray(X[:, used].todense())
    H = A @ A.T + np.eye(n) / C + (1.0 if bias == "penalised" else 0.0)
    ones = np.ones((n, 1 if bias == "free" else 0))
    saddle = np.block([[H, ones], [ones.T, np.zeros((ones.shape[1],) * 2)]])
    solved = np.linalg.solve(saddle, np.vstack([Y, np.zeros((ones.shape[1], 2))]))
    c = solved[:n]
    b = solved[n] if bias == "free" else c.sum(axis=0) if bias == "penalised" else np.zeros(2)
    np.testing.assert_allclose(machine.predict(X), A @ (A.T @ c) + b, atol=1e-6)
    assert np.max(machine.gap_) <= 1e-9 * np.max(machine.objective_)
