"""Claims about the systems of members that are trained together."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.linalg import block_diag

from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.problems.coupled import GRAPHS, CoupledMembers, laplacian, laplacian_of
from mercer.solvers.linear import coupled
from mercer.solvers.monitor import Monitor


def problem(nu: float = 0.7, graph: str = "ring", q: int = 6, seed: int = 0, m: int = 5) -> CoupledMembers:
    random = np.random.default_rng(seed)
    sizes, widths = random.integers(3, 7, q), random.integers(5, 12, q)
    return CoupledMembers(
        [random.standard_normal((g, p)) for g, p in zip(sizes, widths)],
        [random.standard_normal((g, 2)) for g in sizes],
        [random.uniform(0.5, 2.0, g) for g in sizes],
        [random.standard_normal((m, p)) for p in widths],
        0.1 * random.uniform(1.0, 2.0, q),
        laplacian(graph, q),
        nu,
    )


def by_elimination(found: CoupledMembers) -> np.ndarray:
    """The system built from its formula and solved as a whole."""
    blocks = [K.T @ np.diag(w) @ K + r * np.eye(K.shape[1])
              for K, w, r in zip(found.values, found.weights, found.ridges)]  # fmt: skip
    F = block_diag(*found.coupled)
    M = block_diag(*blocks) + found.nu * F.T @ np.kron(found.laplacian, np.eye(len(found.coupled[0]))) @ F
    b = np.concatenate([K.T @ np.diag(w) @ Y for K, w, Y in zip(found.values, found.weights, found.targets)])
    return np.linalg.solve(M, b)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("nu", [0.0, 0.7, 50.0])
@pytest.mark.parametrize("method", coupled.SOLVERS)
def test_every_solver_gives_the_solution_of_the_whole_system(graph, nu, method):
    found = problem(nu, graph)
    solution = coupled.solve(found, method=method, tol=1e-14)
    assert solution.converged
    np.testing.assert_allclose(solution.coefficients, by_elimination(found), rtol=1e-6, atol=1e-7)
    assert 0.0 <= solution.gap <= 1e-13 * solution.primal


def test_negative_coupling_within_its_guard_is_solved_too():
    safe = problem().least_nu()
    for graph in GRAPHS:
        found = problem(0.5 * safe if graph in ("ring", "chain") else 0.1 * safe, graph)
        np.testing.assert_allclose(coupled.solve(found).coefficients, by_elimination(found), rtol=1e-6, atol=1e-8)


def test_negative_coupling_beyond_it_is_refused():
    with pytest.raises(NotPositiveDefinite, match="drives the members apart"):
        coupled.solve(problem(-100.0))


def test_without_coupling_every_member_is_its_own_ridge_regression():
    found = problem(0.0)
    A = coupled.solve(found).coefficients
    for j, (K, Y, w, r) in enumerate(zip(found.values, found.targets, found.weights, found.ridges)):
        alone = np.linalg.solve(K.T @ np.diag(w) @ K + r * np.eye(K.shape[1]), K.T @ np.diag(w) @ Y)
        np.testing.assert_allclose(A[found.part(j)], alone, rtol=1e-8)


def test_the_ridge_identity_holds():
    found = problem(0.0)
    K, Y, w, r = found.values[0], found.targets[0], found.weights[0], found.ridges[0]
    other = K.T @ np.linalg.solve(K @ K.T + r * np.diag(1.0 / w), Y)
    np.testing.assert_allclose(coupled.solve(found).coefficients[found.part(0)], other, rtol=1e-8)


def test_the_chain_is_the_ring_with_one_edge_cut():
    ring = problem(0.7, "ring")
    np.testing.assert_array_equal(coupled.opened(ring).laplacian, laplacian("chain", 6))
    np.testing.assert_allclose(
        coupled.solve(coupled.opened(ring)).coefficients, coupled.solve(problem(0.7, "chain")).coefficients
    )


def test_the_ring_is_the_chain_and_a_correction_of_low_rank():
    ring, chain = problem(0.7, "ring"), problem(0.7, "chain")
    W = np.zeros((ring.size, 5))
    W[ring.part(0)], W[ring.part(5)] = ring.coupled[0].T, -ring.coupled[-1].T
    np.testing.assert_allclose(ring.dense(), chain.dense() + 0.7 * W @ W.T, atol=1e-12)
    factor = coupled.factorised(ring)
    assert isinstance(factor, coupled.Ring)
    np.testing.assert_allclose(factor.W, W)
    np.testing.assert_allclose(factor.solve(ring.right), by_elimination(ring), rtol=1e-8, atol=1e-10)


def test_the_pivots_of_the_chain_are_positive_definite_and_its_blocks_are_all_that_is_kept():
    chain = problem(0.7, "chain")
    factor = coupled.factorised(chain)
    assert isinstance(factor, coupled.Chain)
    for j, L in enumerate(factor.factors):
        width = chain.borders[j + 1] - chain.borders[j]
        assert L.shape == (width, width)
        assert (np.diagonal(L) > 0.0).all()


def test_a_graph_with_weights_of_its_own():
    weights = np.zeros((6, 6))
    weights[0, 3] = weights[3, 0] = 2.0
    weights[1, 2] = weights[2, 1] = 0.5
    base = problem()
    found = CoupledMembers(
        base.values, base.targets, base.weights, base.coupled, base.ridges, laplacian_of(weights), 3.0
    )
    assert isinstance(coupled.factorised(found), coupled.Whole)
    np.testing.assert_allclose(coupled.solve(found).coefficients, by_elimination(found), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("graph", GRAPHS)
def test_members_agree_more_and_fit_less_the_stronger_they_are_coupled(graph):
    solved = [(nu, coupled.solve(problem(nu, graph)).coefficients) for nu in (0.0, 0.01, 0.1, 1.0, 10.0, 1e3, 1e5)]
    free = problem(1.0, graph)
    apart = [free.disagreement(A) for _, A in solved]
    fits = [free.fit(A) for _, A in solved]
    assert all(b < a for a, b in pairwise(apart))
    assert all(b > a for a, b in pairwise(fits))
    assert apart[-1] < 1e-6 * apart[0]


def test_a_left_out_target_is_what_solving_without_it_says():
    found = problem(0.7, "ring")
    random = np.random.default_rng(3)
    A, factor = coupled.solve(found).coefficients, coupled.factorised(found)
    for member in (0, 2, 5):
        g = len(found.values[member])
        at = [random.standard_normal((g, K.shape[1])) for K in found.values]
        at[member] = found.values[member]
        outputs = coupled.left_out(found, A, factor, member, at)
        for i in range(g):
            weights = [w.copy() for w in found.weights]
            weights[member][i] = 0.0
            without = CoupledMembers(
                found.values, found.targets, weights, found.coupled, found.ridges, found.laplacian, found.nu
            )
            B = by_elimination(without)
            for other in range(6):
                np.testing.assert_allclose(outputs[other, i], at[other][i] @ B[found.part(other)], rtol=1e-6, atol=1e-9)


def test_a_start_at_the_solution_needs_no_step():
    found = problem()
    first = coupled.solve(found, method="conjugate_gradient", tol=1e-10)
    again = coupled.solve(found, method="conjugate_gradient", tol=1e-9, start=first)
    assert first.iterations > 0
    assert again.iterations == 0


def test_limits_end_the_iteration_with_a_gap():
    found = problem(50.0)
    few = coupled.solve(found, method="conjugate_gradient", max_iter=2)
    assert (few.stopped, few.iterations) == ("iterations", 2)
    best = found.primal(by_elimination(found))
    assert few.dual <= best <= few.primal
    stopped = coupled.solve(
        found, method="conjugate_gradient", monitor=Monitor(callback=lambda record: record.iteration >= 1)
    )
    assert stopped.stopped == "interrupted"


def test_what_is_no_problem_of_members_is_refused():
    assert not coupled.accepts(None)
    with pytest.raises(InvalidInput, match="elimination, conjugate_gradient"):
        coupled.solve(problem(), method="magic")
    with pytest.raises(InvalidInput, match="start has shape"):
        coupled.solve(problem(), method="conjugate_gradient", start=np.zeros((3, 1)))
