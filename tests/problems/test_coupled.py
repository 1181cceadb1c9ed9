"""Claims about the problem of members that are trained together."""

import cvxopt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.problems.coupled import GRAPHS, CoupledMembers, laplacian, laplacian_of

RIDGE = 0.2


def problem(
    nu: float = 0.7, graph: str = "ring", q: int = 5, seed: int = 0, outputs: int = 1, m: int = 4
) -> CoupledMembers:
    """Members of different sizes, weights, ridges and bases."""
    random = np.random.default_rng(seed)
    sizes = random.integers(3, 7, q)
    widths = random.integers(5, 9, q)
    return CoupledMembers(
        [random.standard_normal((g, p)) for g, p in zip(sizes, widths)],
        [random.standard_normal((g, outputs)) for g in sizes],
        [random.uniform(0.5, 2.0, g) for g in sizes],
        [random.standard_normal((m, p)) for p in widths],
        RIDGE * random.uniform(1.0, 2.0, q),
        laplacian(graph, q),
        nu,
    )


def by_definition(found: CoupledMembers, A: np.ndarray) -> float:
    """The objective written out, sum by sum and edge by edge."""
    total = 0.0
    outputs = []
    for j, (K, Y, w, F, r) in enumerate(zip(found.values, found.targets, found.weights, found.coupled, found.ridges)):
        own = A[found.borders[j] : found.borders[j + 1]]
        for i in range(len(K)):
            total += 0.5 * w[i] * np.sum((K[i] @ own - Y[i]) ** 2)
        total += 0.5 * r * np.sum(own**2)
        outputs.append(F @ own)
    for i in range(len(outputs)):
        for j in range(i):
            total += 0.5 * found.nu * -found.laplacian[i, j] * np.sum((outputs[i] - outputs[j]) ** 2)
    return total


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("nu", [0.0, 0.7, -0.002])
def test_the_objective_is_its_definition(graph, nu):
    found = problem(nu, graph)
    A = np.random.default_rng(1).standard_normal((found.size, 1))
    assert found.primal(A) == pytest.approx(by_definition(found, A), rel=1e-12)


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_system_is_the_gradient_of_the_objective(graph):
    found = problem(0.7, graph)
    random = np.random.default_rng(1)
    A, D = random.standard_normal((2, found.size, 1))
    step = 1e-4
    slope = (by_definition(found, A + step * D) - by_definition(found, A - step * D)) / (2.0 * step)
    assert np.sum((found.dot(A) - found.right) * D) == pytest.approx(slope, rel=1e-6)
    np.testing.assert_allclose(found.dense() @ A, found.dot(A), rtol=1e-10, atol=1e-10)


def test_the_printed_system_is_not_the_gradient():
    """Each member of a ring sits in two constraints; with one part of the Laplacian the matrix loses definiteness."""
    found = problem(5.0, "ring")
    printed = found.dense()
    for j, F in enumerate(found.coupled):
        printed[found.part(j), found.part(j)] -= found.nu * F.T @ F
    assert np.linalg.eigvalsh(printed)[0] < 0.0
    assert np.linalg.eigvalsh(found.dense())[0] >= found.ridges.min() - 1e-10


def test_the_minimum_is_that_of_a_general_quadratic_program():
    found = problem(0.7, "ring")
    answer = cvxopt.solvers.qp(
        cvxopt.matrix(found.dense()), cvxopt.matrix(-found.right[:, 0]), options={"show_progress": False}
    )
    A = np.array(answer["x"])
    certificate = found.certificate(A)
    assert certificate.gap <= 1e-10 * certificate.primal
    constant = 0.5 * sum(np.sum(w[:, None] * Y**2) for w, Y in zip(found.weights, found.targets))
    assert certificate.primal == pytest.approx(answer["primal objective"] + constant, rel=1e-10)


@given(seed=st.integers(0, 200), nu=st.sampled_from([0.0, 0.1, 3.0, None]), graph=st.sampled_from(GRAPHS))
@settings(max_examples=60, deadline=None)
def test_the_dual_value_is_a_lower_bound_at_any_point(seed, nu, graph):
    if nu is None:  # negative, and as far as is safe for these data
        nu = 0.9 * problem(-1.0, graph, seed=seed, outputs=2).least_nu()
        assert nu < 0.0
    found = problem(nu, graph, seed=seed, outputs=2)
    best = np.linalg.solve(found.dense(), found.right)
    A = best + np.random.default_rng(seed).standard_normal(best.shape)
    certificate = found.certificate(A)
    assert certificate.dual <= by_definition(found, best) + 1e-9
    assert certificate.gap >= by_definition(found, A) - by_definition(found, best) - 1e-9
    assert found.certificate(best).gap <= 1e-12 * max(1.0, certificate.primal)


@pytest.mark.parametrize("graph", GRAPHS)
def test_negative_coupling_is_refused_exactly_where_the_minimum_is_lost(graph):
    safe = problem(-1.0, graph).least_nu()
    lowest = 0.0
    for factor in (0.99, 2.0, 5.0, 20.0, 100.0, 1000.0):
        found = problem(factor * safe, graph)
        lowest = float(np.linalg.eigvalsh(found.dense())[0])
        if lowest > 0.0:
            np.testing.assert_allclose(found.curvature, lowest, rtol=1e-6)
        else:
            with pytest.raises(NotPositiveDefinite, match="is safe, whatever the data"):
                _ = found.curvature
    assert lowest < 0.0
    assert problem(0.99 * safe, graph).guaranteed() > 0.0


def test_a_ring_of_two_is_refused():
    with pytest.raises(InvalidInput, match="at least three members"):
        laplacian("ring", 2)


@pytest.mark.parametrize("weights", [np.ones((2, 2)), -1.0 + np.eye(2), np.triu(np.ones((3, 3)), 1), np.ones((2, 3))])
def test_weights_that_are_no_graph_are_refused(weights):
    with pytest.raises(InvalidInput, match="the weights of edges"):
        laplacian_of(weights)


def test_an_unknown_graph_is_refused():
    with pytest.raises(InvalidInput, match="ring, chain, star, complete"):
        laplacian("torus", 4)
