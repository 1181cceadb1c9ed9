"""Machines made of several binary ones: the certificate is that of all of them, the box that of each."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm as libsvm
from sklearn.datasets import make_blobs

from mercer import (
    LSSVC,
    SVC,
    BredensteinerBennettSVC,
    CrammerSingerSVC,
    Gaussian,
    KernelLogistic,
    LeeLinWahbaSVC,
    NuSVC,
    WestonWatkinsSVC,
)
from mercer.errors import Advice
from mercer.solvers.quadratic.pairs import Values
from mercer.svm import small_pairs

pytestmark = pytest.mark.filterwarnings("ignore::mercer.errors.Advice")
X, Y = make_blobs(120, 4, centers=4, cluster_std=4.0, random_state=0)
KERNEL = Gaussian(sigma=4.0)
K = KERNEL(X)
C = 2.0


def pairs(machine):
    """Coefficients (n,) of every pair i < j, class i positive, from LIBSVM's layout of `dual_coef_`, and its bias."""
    owner = np.repeat(np.arange(4), machine.n_support_)
    found = []
    for number, (i, j) in enumerate(zip(*np.triu_indices(4, 1))):
        c = np.zeros(len(Y))
        c[machine.support_[owner == i]] = machine.dual_coef_[j - 1, owner == i]
        c[machine.support_[owner == j]] = machine.dual_coef_[i, owner == j]
        found.append((c, machine.intercept_[number], np.isin(Y, (i, j)), np.where(i == Y, 1.0, -1.0)))
    return found


def one_versus_rest(machine):
    """The same of every class against the rest, for `multiclass="ovr"`."""
    found = []
    for i in range(4):
        c = np.zeros(len(Y))
        c[machine.support_] = machine.dual_coef_[i]
        found.append((c, machine.intercept_[i], np.ones(len(Y), bool), np.where(i == Y, 1.0, -1.0)))
    return found


def duals(parts):
    """sum_i |c_i| - 1/2 c'Kc of each part."""
    return np.array([np.abs(c).sum() - 0.5 * c @ K @ c for c, _, _, _ in parts])


def primals(parts):
    """1/2 c'Kc + C sum_i (1 - y_i f(x_i))_+ of each part."""
    return np.array([
        0.5 * c @ K @ c + C * np.maximum(0.0, 1.0 - y[own] * (K @ c + b)[own]).sum() for c, b, own, y in parts
    ])  # fmt: skip


@pytest.mark.parametrize(("multiclass", "parts_of"), [("ovo", pairs), ("ovr", one_versus_rest)])
def test_the_certificate_is_the_sum_over_all_binary_machines(multiclass, parts_of) -> None:
    loose = SVC(C=C, kernel=KERNEL, tol=0.2, multiclass=multiclass).fit(X, Y)
    exact = SVC(C=C, kernel=KERNEL, tol=1e-9, multiclass=multiclass).fit(X, Y)
    parts, optimum = parts_of(loose), duals(parts_of(exact)).sum()
    assert len(parts) == len(loose.solution_)
    assert loose.dual_objective_ == pytest.approx(duals(parts).sum(), rel=1e-9)
    assert optimum * (1.0 - 1e-9) <= loose.objective_ <= primals(parts).sum() * (1.0 + 1e-9)
    assert loose.gap_ == pytest.approx(loose.objective_ - loose.dual_objective_, abs=1e-9 * loose.objective_)
    # Every part is far enough from its optimum that none can be left out unnoticed.
    assert (primals(parts) - duals(parts) > 1e-4 * loose.gap_).all()
    assert loose.gap_ > 1e-3 * loose.objective_


@pytest.mark.parametrize(
    "machine",
    [
        SVC(C=C, kernel=KERNEL, tol=0.2),
        SVC(C=C, kernel=KERNEL, tol=0.2, multiclass="ovr"),
        NuSVC(nu=0.3, kernel=KERNEL, tol=0.05),
        LSSVC(C=C, kernel=KERNEL, solver="conjugate_gradient", tol=1e-2),
        CrammerSingerSVC(C=C, kernel=KERNEL, tol=0.05),
        WestonWatkinsSVC(C=C, kernel=KERNEL, tol=0.05),
        LeeLinWahbaSVC(C=C, kernel=KERNEL, tol=0.05),
        BredensteinerBennettSVC(C=C, kernel=KERNEL, tol=0.05),
        KernelLogistic(C=C, kernel=KERNEL, tol=0.05),
    ],
    ids=lambda machine: f"{type(machine).__name__} {getattr(machine, 'multiclass', '')}",
)
def test_the_gap_of_several_classes_is_primal_minus_dual(machine) -> None:
    machine.fit(X, Y)
    assert machine.gap_ > 0.0
    difference = machine.objective_ - machine.dual_objective_
    assert machine.gap_ == pytest.approx(difference, rel=1e-6, abs=1e-10 * abs(machine.objective_))


@pytest.mark.parametrize("features", [20, 301, 700])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_several_classes_of_wide_points_are_those_of_libsvm(features, kernel) -> None:
    rng = np.random.default_rng(features)
    points, y = rng.normal(size=(90, features)), np.arange(90) % 3
    points[:, 0] += y
    cost = 0.3 if kernel == "rbf" else 1e-4  # so small that most points are at their bound
    ours = SVC(C=cost, kernel=kernel, tol=1e-6, decision_function_shape="ovo").fit(points, y)
    theirs = libsvm.SVC(C=cost, kernel=kernel, tol=1e-6, decision_function_shape="ovo").fit(points, y)
    assert np.abs(ours.dual_coef_).max() == pytest.approx(cost, rel=1e-9)
    new = rng.normal(size=(20, features))
    np.testing.assert_allclose(ours.decision_function(new), theirs.decision_function(new), atol=1e-4)
    assert ours.n_support_.tolist() == theirs.n_support_.tolist()


@pytest.mark.parametrize("points_of_a_class", [10, 140])
def test_pairs_on_one_matrix_are_those_on_rows_of_their_own(points_of_a_class, monkeypatch) -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(12), points_of_a_class)
    words = sp.random(len(y), 900, density=0.05, random_state=0, format="csr")
    words += sp.csr_matrix((np.full(len(y), 0.5), (np.arange(len(y)), y)), shape=words.shape)
    stored = []
    whole = Values.stored
    monkeypatch.setattr(Values, "stored", lambda K: stored.append(K.shape) or whole(K))
    shared = SVC(C=10.0, tol=1e-6, decision_function_shape="ovo").fit(words, y)
    assert stored == [(len(y), len(y))]
    monkeypatch.setattr(small_pairs, "SHARE_OF_SHARED", 0.0)
    apart = SVC(C=10.0, tol=1e-6, decision_function_shape="ovo").fit(words, y)
    assert len(stored) == 1
    theirs = libsvm.SVC(C=10.0, tol=1e-6, decision_function_shape="ovo").fit(words, y)
    new = words[rng.permutation(len(y))[:50]] * 0.7
    for machine in (apart, theirs):
        np.testing.assert_allclose(shared.decision_function(new), machine.decision_function(new), atol=1e-4)
    assert shared.dual_objective_ <= apart.objective_
    assert apart.dual_objective_ <= shared.objective_


def coefficients_of_rows(machine) -> np.ndarray:
    """Sizes (n,) of the coefficients of f, before it is divided by rho, at the rows as they were given."""
    sizes = np.zeros(machine.shape_fit_[0])
    sizes[machine.support_] = np.abs(machine.dual_coef_[0]) * machine.solution_.multipliers["rho"]
    return sizes


@pytest.mark.parametrize("light", [0.25, 0.05])
def test_class_weights_that_make_nu_infeasible_get_the_largest_feasible_one(light) -> None:
    two = Y < 2
    points, y = X[two], Y[two]
    total = light * np.count_nonzero(y == 0) + np.count_nonzero(y == 1)
    largest = 2.0 * light * np.count_nonzero(y == 0) / total  # all points of the light class at their bound
    assert largest < 0.5
    machine = NuSVC(nu=0.9, kernel=KERNEL, class_weight={0: light}, tol=1e-8).fit(points, y)
    sizes = coefficients_of_rows(machine)
    np.testing.assert_allclose(sizes[y == 0], light, rtol=1e-9)
    assert sizes[y == 1].sum() == pytest.approx(largest * total / 2.0, rel=1e-9)
    weights = np.where(y == 0, light, 1.0)
    given = NuSVC(nu=largest * (1.0 - 1e-13), kernel=KERNEL, tol=1e-8).fit(points, y, sample_weight=weights)
    np.testing.assert_allclose(coefficients_of_rows(given), sizes, atol=1e-5)


def value_of_nu(machine, signs, weights, rho) -> float:
    """The objective of nu-SVC for the largest feasible nu at this f and rho; the bias is that without heavy errors."""
    rho_now = machine.solution_.multipliers["rho"]
    f = (machine.decision_function(X[Y < 2]) - machine.intercept_[0]) * rho_now
    energy = float(np.sum(coefficients_of_rows(machine) * signs * f))
    heavy = weights == weights.max()
    sign = signs[heavy][0]
    bias = sign * (rho - (sign * f[heavy]).min())
    light = 2.0 * weights[~heavy].sum()  # nu times the sum of the weights
    return 0.5 * energy - light * rho + float(weights @ np.maximum(0.0, rho - signs * (f + bias)))


@pytest.mark.parametrize("heavier", [0, 1])
@pytest.mark.parametrize("ratio", [100.0, 1e7])
def test_the_margin_is_wider_where_one_point_outweighs_the_other_class_and_the_objective_is_the_same(
    heavier, ratio
) -> None:
    two = Y < 2
    points, y = X[two], Y[two]
    signs, weights = np.where(y == 1, 1.0, -1.0), np.where(y == heavier, ratio, 1.0)
    machine = NuSVC(kernel=KERNEL, class_weight={heavier: ratio}, tol=1e-9).fit(points, y)
    times = ratio / np.count_nonzero(y != heavier)
    rho = machine.solution_.multipliers["rho"]
    for other in (rho / times, 0.5 * rho, rho, 3.0 * rho):
        assert value_of_nu(machine, signs, weights, other) == pytest.approx(machine.objective_, rel=1e-6)
    assert value_of_nu(machine, signs, weights, 0.9 * rho / times) > (1.0 + 1e-4) * machine.objective_
    heaviest = signs[y == heavier][0] * machine.decision_function(points[y == heavier])
    assert heaviest.min() == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("heavier", [0, 1])
def test_a_machine_of_wider_margin_is_the_one_of_C_that_is_one_over_rho(heavier) -> None:
    two = Y < 2
    weights = {heavier: 300.0}
    machine = NuSVC(kernel=KERNEL, class_weight=weights, tol=1e-10).fit(X[two], Y[two])
    C = 1.0 / machine.solution_.multipliers["rho"]
    by_C = SVC(C=C, kernel=KERNEL, class_weight=weights, tol=1e-10).fit(X[two], Y[two])
    np.testing.assert_allclose(machine.decision_function(X), by_C.decision_function(X), atol=1e-6)


def test_class_weights_too_far_apart_for_any_nu_give_more_and_more_of_space_to_the_heavier_class() -> None:
    two = Y < 2
    new = np.random.default_rng(5).normal(size=(400, X.shape[1])) * 3.0 * X.std()
    shares = []
    for ratio in (1.0, 10.0, 100.0, 1e3, 1e7):
        machine = NuSVC(kernel=KERNEL, class_weight={1: ratio}).fit(X[two], Y[two])
        shares.append(np.mean(machine.predict(new) == 1))
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_the_margin_stays_the_limit_of_smaller_nu_where_no_point_outweighs_a_class() -> None:
    two = Y < 2
    points, y = X[two], Y[two]
    machine = NuSVC(kernel=KERNEL, class_weight={1: 10.0}, tol=1e-9).fit(points, y)
    weights = np.where(y == 1, 10.0, 1.0)
    largest = 2.0 * np.count_nonzero(y == 0) / weights.sum()
    limit = NuSVC(nu=largest * (1.0 - 1e-6), kernel=KERNEL, tol=1e-9).fit(points, y, sample_weight=weights)
    np.testing.assert_allclose(machine.decision_function(points), limit.decision_function(points), atol=1e-3)


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_nu_is_feasible_up_to_twice_the_share_of_the_smaller_class(share) -> None:
    y = np.arange(100) < 100 * share
    points = np.random.default_rng(0).normal(size=(100, 2)) + y[:, None]
    NuSVC(nu=2.0 * share, kernel=KERNEL).fit(points, y)
    if share < 0.5:
        with pytest.warns(Advice, match=r"nu=0\.41 is infeasible: it must lie in \(0, 0\.4\]"):
            NuSVC(nu=2.0 * share + 0.01, kernel=KERNEL).fit(points, y)
        with pytest.raises(ValueError, match="specified nu is infeasible"):
            libsvm.NuSVC(nu=2.0 * share + 0.01).fit(points, y)
