"""Fixed points against new ones: values, expansions and sweeps equal dense algebra, and expansions keep to a budget."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import SVC, SVR
from mercer.errors import BudgetTooSmall, InvalidInput
from mercer.gram import KernelColumns
from mercer.kernels import Custom, Gaussian, Linear, Matern, Polynomial
from mercer.machine import prediction
from mercer.resources import Resources

KERNELS = [Gaussian(sigma=1.5), Polynomial(degree=2, offset=1.0), Linear(), Matern(nu=1.5) + Linear()]
SLACK = 1 << 18


def points(n, d=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)) + 2.0


def in_form(X, form):
    return sp.csr_array(X * (np.abs(X) < 1.5)) if form == "csr" else X


def dense(X):
    return X.toarray() if sp.issparse(X) else X


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("d", [5, 40])  # sparse points of few features are made dense
def test_values_products_and_sweeps_equal_dense_algebra(kernel, form, d):
    Z, X = in_form(points(30, d), form), in_form(points(700, d, seed=1), form)
    rng = np.random.default_rng(2)
    A = kernel(dense(X), dense(Z))
    size = np.abs(A).max()
    columns = KernelColumns(kernel, Z)
    np.testing.assert_allclose(columns.values(X), A, atol=1e-9 * size)
    c = rng.normal(size=(30, 2))
    blocks, parts = [slice(0, 30), slice(7, 19)], [c, c[7:19, :1]]
    for found, block, part in zip(columns.expand(X, blocks, parts), blocks, parts):
        np.testing.assert_allclose(found, A[:, block] @ part, atol=1e-8 * size)
    Y, v = rng.normal(size=(700, 2)), rng.uniform(size=700)
    for k in (1, 2):
        W, T = np.ascontiguousarray(c[:, :k]), np.ascontiguousarray(Y[:, :k])
        E = T - A @ W
        tolerance = 1e-9 * size**2 * 700
        normal, sums, totals = np.zeros((30, k)), np.zeros((30, k + 1)), np.zeros(1 + 2 * k)
        columns.sweep_normal(X, v, W, normal)
        np.testing.assert_allclose(normal, A.T @ (v[:, None] * (A @ W)), atol=tolerance)
        columns.sweep_residuals(X, T, v, W, sums, totals)
        np.testing.assert_allclose(sums, A.T @ np.column_stack([v[:, None] * E, v]), atol=tolerance)
        np.testing.assert_allclose(totals, [v.sum(), *(v @ E), *(v @ E**2)], atol=tolerance)
        other, counted = np.zeros((30, k)), np.zeros(1)
        columns.sweep(X, W, lambda F, rows: (np.tanh(F), np.array([np.abs(F).sum()])), other, counted)
        np.testing.assert_allclose(other, A.T @ np.tanh(A @ W), atol=tolerance)
        np.testing.assert_allclose(counted, np.abs(A @ W).sum(), atol=tolerance)


def test_points_of_another_number_of_features_are_refused():
    with pytest.raises(InvalidInput, match="X has 3 features, the points it is compared with have 5"):
        KernelColumns(Gaussian(), points(4)).values(points(2, 3))


def test_an_empty_expansion_is_zero():
    assert not KernelColumns(Gaussian(), points(0)).expand(points(3), [slice(0, 0)], [np.zeros((0, 2))])[0].any()


FUSED, CALLED = Gaussian(sigma=3.0), Custom(lambda x, z: float(x @ z) ** 2)


@pytest.mark.parametrize(
    ("kernel", "form", "n", "m", "d"),
    [(FUSED, "dense", 6000, 3000, 60), (FUSED, "csr", 6000, 3000, 60), (CALLED, "dense", 150, 140, 30)],
    ids=["dense", "csr", "called"],
)
def test_an_expansion_stays_in_its_budget_and_gives_the_same_values(measured, kernel, form, n, m, d):
    Z, X = (in_form(points(count, d, seed=count), form) for count in (m, n))
    c = np.random.default_rng(0).normal(size=(m, 1))
    blocks = [slice(0, m // 3), slice(m // 3, m)]
    parts = [c[block] for block in blocks]
    expected = prediction.expand(kernel, X, Z, blocks, parts, Resources(precision="float64"))
    with pytest.raises(BudgetTooSmall, match="smallest workable budget is memory=") as error:
        prediction.expand(kernel, X, Z, blocks, parts, Resources(1000, "float64"))
    smallest = int(str(error.value).split("memory=")[2].split()[0])
    for budget in (smallest, 2 * smallest, 16 << 20):
        with measured() as peak:
            found = prediction.expand(kernel, X, Z, blocks, parts, Resources(budget, "float64"))
        assert peak.bytes <= budget + 8 * n * len(blocks) + SLACK
        plan = prediction.columns_of(kernel, X, Z, parts, Resources(budget, "float64")).plan(X)
        assert plan.bytes <= budget
        for one, other in zip(found, expected):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * np.abs(other).max())


def test_machines_print_the_plan_of_a_prediction():
    X = points(400)
    y = np.sign(X[:, 0] - 2.0)
    machine = SVC(memory="8 MiB").fit(X, y)
    text = str(machine.prediction_plan(X[:300]))
    for word in (f"300 x {len(machine.support_)}", "of 8 MiB", "300 of 300 new points are prepared at a time"):
        assert word in text
    tight = str(SVC(memory="8 MiB").fit(X, y).prediction_plan(points(200_000)))
    assert "of 200000 new points are prepared at a time" in tight
    assert "one weight vector" in str(SVR(kernel="linear").fit(X, y).prediction_plan(X))
    assert SVC(kernel="precomputed").fit(X @ X.T, y).prediction_plan(X[:3] @ X.T) is None


def test_a_machine_with_a_budget_predicts_what_one_without_does(measured):
    X, new = points(3000, 20), points(5000, 20, seed=1)
    y = np.sign(np.random.default_rng(0).normal(size=3000))  # noise: nearly all points are support vectors
    machine = SVC(gamma=0.02, memory="6 MiB").fit(X, y)
    free = machine.decision_function(new)
    with measured() as peak:
        tight = machine.set_params(memory="4 MiB").decision_function(new)
    assert peak.bytes <= (4 << 20) + 3 * new.nbytes + SLACK
    np.testing.assert_allclose(tight, free, atol=1e-6 * np.abs(free).max())
