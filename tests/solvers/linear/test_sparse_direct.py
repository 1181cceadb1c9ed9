"""Sparse direct solution for compactly supported kernels: orderings, fill, and agreement with dense algebra."""

import numpy as np
import pytest

from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.kernels import CompactGaussian, Gaussian
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.linear import cholesky, conjugate_gradient, sparse_direct

from .linear_system_cases import make, weights

ORDERINGS = ["auto", "reverse_cuthill_mckee", "minimum_degree", "column_counts", "natural"]


def line(n=300, seed=0, **options):
    """Scattered points on a line: neighbours are few, but far apart in the order given."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 100, size=(n, 1))
    Y = np.sin(x) + 0.1 * rng.normal(size=(n, 2))
    gram = Gram(CompactGaussian(sigma=1.0), x, storage="sparse")
    return LeastSquares(gram, Y, C=10.0, **options)


def plane(n=300):
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 12, size=(n, 2))
    return LeastSquares(Gram(CompactGaussian(sigma=0.5), X, storage="sparse"), rng.normal(size=n), C=10.0)


@pytest.mark.parametrize("ordering", ORDERINGS)
@pytest.mark.parametrize("bias", ["free", "none", "penalised"])
def test_every_ordering_gives_the_dense_answer(ordering, bias):
    problem = line(bias=bias, weights=weights(300))
    solution = sparse_direct.solve(problem, ordering=ordering)
    exact = cholesky.solve(problem)
    np.testing.assert_allclose(solution.coefficients, exact.coefficients, atol=1e-10)
    np.testing.assert_allclose(solution.bias, exact.bias, atol=1e-11)
    assert solution.relative_gap < 1e-20


def test_conjugate_gradients_agree_at_the_cost_of_the_nonzeros():
    problem = plane()
    solution = conjugate_gradient.solve(problem, tol=1e-14)
    np.testing.assert_allclose(solution.coefficients, sparse_direct.solve(problem).coefficients, atol=1e-5)


def test_reverse_cuthill_mckee_gives_a_narrow_band_on_a_line():
    problem = line()
    K = problem.gram.matrix
    before = sparse_direct.bandwidth(K)
    solution = sparse_direct.solve(problem, ordering="reverse_cuthill_mckee")
    assert before > 250
    assert solution.details["bandwidth"] < 60
    # Auto sees that the band is hardly larger than the matrix.
    assert sparse_direct.solve(problem).details["ordering"] == "reverse_cuthill_mckee"


def test_the_fill_of_a_band_counts_the_entries_inside_the_matrix():
    problem = line(n=120)
    details = sparse_direct.solve(problem, ordering="reverse_cuthill_mckee").details
    i, j = np.indices((120, 120))
    inside = np.count_nonzero((i >= j) & (i - j <= details["bandwidth"]))
    lower = np.count_nonzero(np.tril(problem.gram.dense()))
    assert details["factor_nonzeros"] == inside
    assert details["fill"] == pytest.approx(inside / lower)


def test_the_fill_of_a_full_matrix_is_one():
    x = np.linspace(0, 0.1, 9)[:, None]
    full = LeastSquares(Gram(CompactGaussian(sigma=1.0), x, storage="sparse"), x, C=10.0)
    for ordering in ORDERINGS:
        assert sparse_direct.solve(full, ordering=ordering).details["fill"] == 1.0


@pytest.mark.parametrize("make_problem", [line, plane])
def test_ordering_cuts_the_fill(make_problem):
    problem = make_problem()
    fill = {o: sparse_direct.solve(problem, ordering=o).details for o in ORDERINGS}
    assert fill["minimum_degree"]["factor_nonzeros"] < 0.7 * fill["natural"]["factor_nonzeros"]
    assert fill["minimum_degree"]["nonzeros"] == problem.gram.matrix.nnz
    for details in fill.values():
        assert details["fill"] >= 1.0


def test_a_dense_matrix_is_refused():
    with pytest.raises(InvalidInput, match="not sparse"):
        sparse_direct.solve(make(Gaussian()))
    with pytest.raises(InvalidInput, match="ordering"):
        sparse_direct.solve(line(), ordering="random")
