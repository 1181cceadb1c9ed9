"""Max-margin Markov networks in their marginals, held against the problem over all labellings, written out."""

from itertools import pairwise, product

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp

from mercer import Gaussian, Linear
from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.problems.markov_networks import Marginals, MarkovNetworks
from mercer.solvers.monitor import Monitor
from mercer.solvers.structured import marginals


class Drawn:
    """Small examples: chains, trees, a single node, and an example without nodes."""

    def __init__(self, seed, k=3, kinds=2, C=0.7):
        random = np.random.default_rng(seed)
        self.sizes = np.array([3, 1, 0, 3, 4])
        edges = [(0, 1), (2, 1), (4, 5), (5, 6), (7, 8), (9, 7), (7, 10)]
        self.edges, self.tables = np.array(edges), np.arange(len(edges)) % kinds
        self.k, self.kinds, self.C = k, kinds, C
        self.X = random.standard_normal((11, 2))
        self.y = random.integers(k, size=11)
        self.weights = np.array([1.0, 2.0, 1.0, 0.5, 1.0])

    def problem(self, kernel):
        return MarkovNetworks(
            Gram(kernel, self.X), self.y, self.sizes, self.edges,
            k=self.k, tables=self.tables, kinds=self.kinds, C=self.C, weights=self.weights,
        )  # fmt: skip

    def explicit_optimum(self, K):
        """The dual over all labellings: one variable for each, a simplex for each example, by a general solver."""
        starts = np.concatenate(([0], np.cumsum(self.sizes)))
        L = np.linalg.cholesky(K + 1e-12 * np.eye(len(K)))  # f_j = L'c_j: features whose products are K
        psi, losses, owner = [], [], []
        for i, (a, b) in enumerate(pairwise(starts)):
            right = self.features(L, self.y, a, b)
            for z in product(range(self.k), repeat=b - a):
                full = self.y.copy()
                full[a:b] = z
                psi.append(right - self.features(L, full, a, b))
                losses.append(np.count_nonzero(full != self.y))
                owner.append(i)
        psi, losses, owner = np.array(psi), np.array(losses, dtype=float), np.array(owner)
        costs = self.C * self.weights
        # Variables w and alpha (mass C_i): min 1/2 |w|^2 - losses'alpha with w = psi'alpha.
        d, m = psi.shape[1], len(psi)
        P = sp.block_diag([sp.eye(d), sp.csc_matrix((m, m))], format="csc")
        q = np.concatenate((np.zeros(d), -losses))
        simplex = sp.csc_matrix((np.ones(m), (owner, np.arange(m))), shape=(len(self.sizes), m))
        A = sp.vstack(
            [
                sp.hstack([sp.eye(d), -sp.csc_matrix(psi.T)]),
                sp.hstack([sp.csc_matrix((len(self.sizes), d)), simplex]),
                sp.hstack([sp.csc_matrix((m, d)), -sp.eye(m)]),
            ],
            format="csc",
        )
        b = np.concatenate((np.zeros(d), costs, np.zeros(m)))
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
        cones = [clarabel.ZeroConeT(d + len(self.sizes)), clarabel.NonnegativeConeT(m)]
        answer = clarabel.DefaultSolver(sp.triu(P, format="csc"), q, A, b, cones, settings).solve()
        return -answer.obj_val

    def features(self, L, labels, a, b):
        nodes = np.zeros((self.k, L.shape[1]))
        for t in range(a, b):
            nodes[labels[t]] += L[t]
        tables = np.zeros((self.kinds, self.k, self.k))
        for (s, t), p in zip(self.edges, self.tables, strict=True):
            if a <= s < b:
                tables[p, labels[s], labels[t]] += 1.0
        return np.concatenate((nodes.ravel(), tables.ravel()))


@pytest.mark.parametrize("kernel", [Gaussian(sigma=1.0), Linear()])
@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_is_that_of_the_problem_over_all_labellings(seed, kernel):
    drawn = Drawn(seed)
    found = marginals.solve(drawn.problem(kernel), tol=1e-9)
    optimum = drawn.explicit_optimum(np.asarray(kernel(drawn.X, drawn.X)))
    assert found.stopped == "converged"
    assert found.primal == pytest.approx(optimum, rel=1e-6)
    assert found.dual == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_primal_and_dual_are_those_of_their_definitions(seed):
    """At a point far from the optimum, with every maximum taken over all labellings."""
    drawn = Drawn(seed)
    problem = drawn.problem(Gaussian(sigma=1.0))
    found = marginals.solve(problem, tol=1e-12, max_iter=1)
    K = np.asarray(Gaussian(sigma=1.0)(drawn.X, drawn.X))
    c, W = found.coefficients, found.multipliers["tables"]
    f, starts = K @ c, np.concatenate(([0], np.cumsum(drawn.sizes)))

    def score(z, a, b):
        edges = [(s, t, p) for (s, t), p in zip(drawn.edges, drawn.tables, strict=True) if a <= s < b]
        return sum(f[t, z[t]] for t in range(a, b)) + sum(W[p, z[s], z[t]] for s, t, p in edges)

    hinges = []
    for a, b in pairwise(starts):
        values = []
        for z in product(range(3), repeat=b - a):
            full = drawn.y.copy()
            full[a:b] = z
            values.append(np.count_nonzero(full != drawn.y) + score(full, a, b) - score(drawn.y, a, b))
        hinges.append(max(values))
    norm = np.trace(c.T @ K @ c) + (W**2).sum()
    primal = 0.5 * norm + drawn.C * drawn.weights @ np.array(hinges)
    assert found.primal == pytest.approx(primal, rel=1e-12)
    m = found.variables[: 11 * 3].reshape(11, 3)
    wrong = 1.0 - m[np.arange(11), drawn.y]
    assert found.dual == pytest.approx(drawn.C * np.repeat(drawn.weights, drawn.sizes) @ wrong - 0.5 * norm, rel=1e-12)


def test_marginals_stay_consistent():
    drawn = Drawn(5)
    problem = drawn.problem(Gaussian(sigma=0.5))
    found = marginals.solve(problem, tol=1e-8)
    m = Marginals(found.variables[:33].reshape(11, 3), found.variables[33:].reshape(11, 3, 3))
    assert m.nodes.min() >= 0.0
    assert m.edges.min() >= 0.0
    np.testing.assert_allclose(m.nodes.sum(axis=1), 1.0, atol=1e-10)
    parents = {t: s for s, t in [(0, 1), (4, 5), (5, 6), (7, 8), (7, 9), (7, 10), (1, 2)]}
    given = {tuple(edge) for edge in drawn.edges.tolist()}
    for child, parent in parents.items():
        edge = m.edges[child] if (parent, child) in given else m.edges[child].T
        np.testing.assert_allclose(edge.sum(axis=1), m.nodes[parent], atol=1e-10)
        np.testing.assert_allclose(edge.sum(axis=0), m.nodes[child], atol=1e-10)


def test_a_warm_start_at_the_optimum_needs_no_pass():
    problem = Drawn(1).problem(Gaussian(sigma=1.0))
    found = marginals.solve(problem, tol=1e-6)
    assert marginals.solve(problem, tol=1e-6, start=found).iterations == 0


def test_the_gap_of_every_record_holds_and_time_stops_the_solver():
    problem = Drawn(2, C=10.0).problem(Gaussian(sigma=1.0))
    optimum = marginals.solve(problem, tol=1e-9).primal
    monitor = Monitor()
    marginals.solve(problem, tol=1e-6, monitor=monitor)
    assert len(monitor.history) > 1
    for record in monitor.history:
        assert record.dual <= optimum * (1 + 1e-8)
        assert record.primal >= optimum * (1 - 1e-8)
    assert marginals.solve(problem, tol=1e-12, monitor=Monitor(time_limit=0.0)).stopped == "time"
    assert marginals.solve(problem, tol=1e-12, max_iter=0).stopped == "iterations"


def test_examples_without_nodes_are_allowed():
    empty = MarkovNetworks(np.zeros((0, 0)), np.zeros(0), [0, 0], np.zeros((0, 2)), k=2)
    found = marginals.solve(empty)
    assert found.primal == found.dual == 0.0
    assert found.converged


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"edges": [(0, 1), (1, 2), (2, 0)]}, "close a cycle"),
        ({"edges": [(2, 3)]}, "two examples"),
        ({"sizes": [3, 1]}, "do not go with"),
        ({"tables": [0, 5]}, "kinds"),
        ({"k": 2}, "labels must be numbers"),
        ({"C": -1.0}, "C must be"),
        ({"weights": [1.0]}, "weights"),
    ],
)
def test_what_does_not_fit_is_refused(change, words):
    given = {"y": [0, 1, 2, 0, 1], "sizes": [3, 2], "edges": [(0, 1), (1, 2)], **change}
    with pytest.raises(InvalidInput, match=words):
        MarkovNetworks(np.eye(5), **given)


def test_other_problems_are_not_accepted():
    assert not marginals.accepts(object())
    with pytest.raises(InvalidInput, match="tol"):
        marginals.solve(Drawn(0).problem(Linear()), tol=0.0)
