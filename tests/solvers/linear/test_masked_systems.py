"""Machines of a code with zeros solved together, against a factorisation of each."""

import numpy as np
import pytest

from mercer import LSSVC, Gaussian, threads
from mercer.data import sample
from mercer.multiclass import OutputCode, make_code
from mercer.multiclass.least_squares_bank import SubsystemBank
from mercer.solvers.linear.class_panels import Panels
from mercer.solvers.linear.masked_systems import LEAST_TOL, Layout, Stalled, solve, worthwhile

C = 10.0


@pytest.fixture(scope="module")
def digits():
    """1,500 points of ten classes in the order of their classes, and their kernel matrix."""
    data = sample("optdigits", "train")
    X, y = np.asarray(data.X, dtype=np.float64)[:1500], np.unique(data.y, return_inverse=True)[1][:1500]
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    return X, y, np.asarray(Gaussian(6.0)(X, X))


def direct(K, targets, weights, bias):
    """Coefficients (n,) and bias of one machine from the whole bordered system of its points."""
    n = len(K)
    A = K + (bias == "penalised") + np.diag(1.0 / (C * weights))
    if bias != "free":
        c = np.linalg.solve(A, targets)
        return c, c.sum() if bias == "penalised" else 0.0
    bordered = np.block([[A, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    found = np.linalg.solve(bordered, np.append(targets, 0.0))
    return found[:-1], found[-1]


@pytest.mark.parametrize("bias", ["free", "none", "penalised"])
@pytest.mark.parametrize("weighted", [False, True])
def test_all_machines_solve_their_own_systems(digits, bias, weighted):
    _, y, K = digits
    code = make_code("sparse", 10, 0)[:, :12]
    Y = code[y].astype(np.float64)
    weights = np.random.default_rng(0).uniform(0.2, 3.0, size=len(y)) if weighted else np.ones(len(y))
    roots = np.sqrt(weights) if weighted else None
    found = solve(K, Layout(y, code), Y, C, roots=roots, bias=bias, tol=1e-10)
    for a in range(code.shape[1]):
        used = np.flatnonzero(Y[:, a])
        c, b = direct(K[np.ix_(used, used)], Y[used, a], weights[used], bias)
        assert np.all(found.coefficients[Y[:, a] == 0, a] == 0.0)
        assert found.coefficients[used, a] == pytest.approx(c, abs=2e-5 * np.abs(c).max())
        assert found.biases[a] == pytest.approx(b, abs=1e-5)


@pytest.mark.parametrize("tol", [1e-3, LEAST_TOL])
def test_the_gap_it_states_is_above_the_distance_to_the_optimum_and_below_the_tolerance(digits, tol):
    _, y, K = digits
    code = make_code("sparse", 10, 3)[:, :10]
    Y = code[y].astype(np.float64)
    found = solve(K, Layout(y, code), Y, C, roots=None, bias="none", tol=tol)
    assert np.all(found.gaps <= tol)
    for a in range(code.shape[1]):
        used = np.flatnonzero(Y[:, a])
        part, t = K[np.ix_(used, used)], Y[used, a]

        def primal(c, part=part, t=t):
            f = part @ c
            return 0.5 * C * np.sum((t - f) ** 2) + 0.5 * c @ f

        best = primal(direct(part, t, np.ones(len(t)), "none")[0])
        excess = primal(found.coefficients[used, a]) / best - 1.0
        assert -1e-12 <= excess <= found.gaps[a] * (1.0 + tol) + 1e-12


def test_iterations_give_up_where_c_makes_them_many(digits):
    _, y, K = digits
    code = make_code("sparse", 10, 0)
    with pytest.raises(Stalled):
        solve(K, Layout(y, code), code[y].astype(np.float64), 1e9, roots=None, bias="free", tol=1e-8)


@pytest.mark.parametrize("C", [1.0, 1e7])
def test_the_machine_is_the_factorised_one_whichever_road_it_takes(digits, C):
    X, y, _ = digits
    kernel = Gaussian(6.0)
    ours = OutputCode(LSSVC(C=C, kernel=kernel), "sparse", random_state=0).fit(X, y)
    exact = OutputCode(LSSVC(C=C, kernel=kernel, solver="cholesky"), "sparse", random_state=0).fit(X, y)
    assert isinstance(ours.bank_, SubsystemBank)
    assert exact.bank_.gaps is None
    assert (ours.bank_.gaps is None) == (C == 1e7)
    assert ours.outputs(X) == pytest.approx(exact.outputs(X), abs=5e-3)
    assert np.mean(ours.predict(X) == exact.predict(X)) > 0.998


def test_few_points_absent_classes_and_pairs_are_factorised(digits):
    _, y, _ = digits
    sparse = make_code("sparse", 10, 0)
    assert worthwhile(Layout(y, sparse))
    assert not worthwhile(Layout(y, make_code("ava", 10)))
    assert not worthwhile(Layout(y[::5], sparse))
    assert not worthwhile(Layout(y[y != 4], sparse))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_products_by_panels_are_dense_products_with_the_rest_struck_out(seed, workers):
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 700, size=5)
    y = np.repeat(np.arange(5), sizes)
    n = len(y)
    K = random.standard_normal((n, n))
    K = K + K.T
    code = random.integers(-1, 2, size=(5, 9)).astype(np.int8)
    used = (code[y] != 0).T
    p = (random.standard_normal((9, n)) * used).astype(np.float32)
    scale = random.uniform(0.5, 2.0, size=n).astype(np.float32)
    borders = Layout(y, code).borders
    out = np.empty_like(p)
    with threads.limit(workers):
        Panels.pack(K, borders, code, 0.5, scale).product(p, np.float32(0.25), out)
    expected = p.astype(np.float64) @ ((K + 0.5) * scale[:, None] * scale) + 0.25 * p
    assert out[used] == pytest.approx(expected[used], abs=2e-3)
    assert np.all(out[~used] == 0.0)
