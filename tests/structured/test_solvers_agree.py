"""Marginals, cutting planes and Frank-Wolfe reach one optimum, on chains, on trees, with and without a kernel."""

from itertools import pairwise, product

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp

from mercer import Gaussian, Linear
from mercer.gram import Gram
from mercer.problems.markov_networks import MarkovNetworks
from mercer.problems.structured import StructuredProblem
from mercer.solvers.structured import frank_wolfe, marginals, n_slack, one_slack
from mercer.structured.chains import Chain
from mercer.structured.grids import GridModel
from mercer.structured.label_pairs import LabelPairs
from mercer.structured.trees import TreeModel
from mercer.structured.with_kernel import WithKernel

SOLVERS = {"n-slack": n_slack, "one-slack": one_slack, "Frank-Wolfe": frank_wolfe}
TOL = 1e-3


@pytest.fixture(scope="module")
def words():
    """Twelve sequences of up to five points with three labels."""
    random = np.random.default_rng(3)
    lengths = [1, 5, 0, 3, 4, 2, 5, 3, 1, 4, 2, 3]
    Y = [random.integers(3, size=T) for T in lengths]
    return [np.eye(3)[y] + 0.8 * random.standard_normal((len(y), 3)) for y in Y], Y


def network(kernel, X, Y, C):
    """The same data as one problem in marginals."""
    ends = np.cumsum([0, *map(len, X)])
    edges = [(t, t + 1) for a, b in pairwise(ends) for t in range(a, b - 1)]
    return MarkovNetworks(Gram(kernel, np.concatenate(X)), np.concatenate(Y), np.diff(ends), edges, k=3, C=C)


def problem(model, X, Y, C):
    ready = model.prepared(X, Y)
    return StructuredProblem(ready.examples(*ready.check(X, Y), "margin"), C)


def overlap(one, other):
    """Whether the optimum may lie between the bounds of both."""
    return max(one.dual, other.dual) <= min(one.primal, other.primal) * (1 + 1e-9)


@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
@pytest.mark.parametrize("kernel", [None, Gaussian(sigma=1.0)], ids=["linear", "Gaussian"])
def test_chains_have_one_optimum(words, solver, kernel):
    X, Y = words
    best = marginals.solve(network(Linear() if kernel is None else kernel, X, Y, 0.5), tol=1e-7)
    model = Chain() if kernel is None else WithKernel(Chain(), kernel)
    found = solver.solve(problem(model, X, Y, 0.5), tol=TOL)
    assert best.converged
    assert found.converged
    assert overlap(best, found)
    assert found.primal == pytest.approx(best.primal, rel=2 * TOL)


def test_a_chain_is_a_tree(words):
    X, Y = words
    trees = [(x, [(t, t + 1) for t in range(len(x) - 1)]) for x in X]
    best = marginals.solve(network(Linear(), X, Y, 0.5), tol=1e-7)
    found = one_slack.solve(problem(TreeModel([0, 1, 2]), trees, Y, 0.5), tol=TOL)
    assert found.converged
    assert overlap(best, found)


@pytest.mark.parametrize("solver", [one_slack, frank_wolfe], ids=["one-slack", "Frank-Wolfe"])
def test_relaxed_machines_bound_the_exact_one(solver):
    """The relaxed problem has the larger optimum; where inference is exact the two are the same."""
    random = np.random.default_rng(0)
    Y = [random.integers(2, size=(3, 3)) for _ in range(5)]
    X = [np.stack((y + random.standard_normal(y.shape), np.ones(y.shape)), axis=2) for y in Y]
    exact, relaxed = (
        solver.solve(problem(GridModel(inference=name), X, Y, 0.3), tol=1e-2) for name in ("exact", "relaxed")
    )
    assert exact.converged
    assert relaxed.primal >= exact.dual * (1 - 1e-9)
    messages = solver.solve(problem(GridModel(inference="messages"), X, Y, 0.3), tol=1e-2, max_iter=30)
    assert messages.primal >= exact.dual * (1 - 1e-9)
    assert messages.dual <= exact.primal * (1 + 1e-9)


def explicit_optimum(model, X, Y, structures, C):
    """min 1/2 |w|^2 + C sum xi with a row for every structure of every example, by a general solver."""
    d, n = model.size(), len(Y)
    rows, right = [], []
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        for z in structures(y):
            rows.append(np.concatenate((model.joint_features(x, z) - model.joint_features(x, y), -np.eye(n)[i])))
            right.append(-model.loss(y, z))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    P = sp.diags_array(np.concatenate((np.ones(d), np.zeros(n))), format="csc")
    q = np.concatenate((np.zeros(d), np.full(n, C)))
    cones = [clarabel.NonnegativeConeT(len(rows))]
    return clarabel.DefaultSolver(P, q, sp.csc_matrix(np.array(rows)), np.array(right), cones, settings).solve().obj_val


@pytest.mark.parametrize("kind", ["trees", "grids", "pairs of labels"])
def test_the_optimum_is_that_of_the_problem_written_out(kind):
    random = np.random.default_rng(2)
    if kind == "pairs of labels":
        model, X, Y = LabelPairs(), random.standard_normal((8, 2)), random.integers(2, size=(8, 3))
    elif kind == "grids":
        model, X = GridModel(inference="exact"), [random.standard_normal((2, 2, 2)) for _ in range(6)]
        Y = [random.integers(2, size=(2, 2)) for _ in X]
    else:
        model, X = TreeModel(), [(random.standard_normal((4, 2)), [(0, 1), (2, 1), (1, 3)]) for _ in range(6)]
        Y = [random.integers(2, size=4) for _ in X]
    ready = model.prepared(X, Y)
    inputs, right = ready.check(X, Y)
    optimum = explicit_optimum(ready, inputs, right, every, 0.4)
    for solver in SOLVERS.values():
        found = solver.solve(StructuredProblem(ready.examples(inputs, right, "margin"), 0.4), tol=TOL)
        assert found.converged
        assert found.dual <= optimum * (1 + 1e-7)
        assert found.primal >= optimum * (1 - 1e-7)


def every(y):
    """All structures of two labels in the shape of y."""
    return [np.array(z, dtype=np.intp).reshape(y.shape) for z in product(range(2), repeat=y.size)]
