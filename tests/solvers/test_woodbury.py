"""Woodbury's identity against the dense saddle-point system."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.gram import Gram
from mercer.kernels import Gaussian, Linear
from mercer.problems.least_squares import LeastSquares
from mercer.solvers import cholesky, woodbury


@pytest.mark.parametrize("bias", ["free", "none", "penalised"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_thin_factor_gives_the_solution_of_the_full_system(bias, sparse, weighted):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((70, 8)) < 0.4, rng.standard_normal((70, 8)), 0.0)
    Y, w = rng.standard_normal((70, 3)), rng.uniform(0.3, 2.0, 70) * (np.arange(70) % 9 > 0)
    w = w if weighted else None
    points = sp.csr_array(X) if sparse else X
    thin = LeastSquares(Gram(Linear(), points, storage="lowrank"), Y, 2.0, w, bias, X[:, :1] ** 2)
    full = LeastSquares(Gram(Linear(), X, storage="dense"), Y, 2.0, w, bias, X[:, :1] ** 2)
    found, expected = woodbury.solve(thin), cholesky.solve(full)
    np.testing.assert_allclose(found.coefficients, expected.coefficients, atol=1e-11)
    np.testing.assert_allclose(found.bias, expected.bias, atol=1e-11)
    assert found.relative_gap < 1e-20
    assert found.details["rank"] == 8 + (bias == "penalised")


def test_factor_of_a_smooth_kernel_is_as_good_as_its_rank():
    X = np.linspace(0, 1, 90)[:, None]
    Y = np.sin(5 * X)
    found = woodbury.solve(LeastSquares(Gram(Gaussian(sigma=1.0), X, storage="lowrank"), Y, 10.0))
    expected = cholesky.solve(LeastSquares(Gram(Gaussian(sigma=1.0), X), Y, 10.0))
    assert found.details["rank"] < 15
    np.testing.assert_allclose(
        Gaussian(sigma=1.0)(X) @ found.coefficients, Gaussian(sigma=1.0)(X) @ expected.coefficients, atol=1e-6
    )


def test_what_it_cannot_take_is_refused_by_name():
    X, Y = np.eye(4)[:, :2], np.arange(4.0)
    with pytest.raises(InvalidInput, match="thin factors"):
        woodbury.solve(LeastSquares(Gram(Linear(), X, storage="dense"), Y))
    with pytest.raises(InvalidInput, match="C = inf"):
        woodbury.solve(LeastSquares(Gram(Linear(), X, storage="lowrank"), Y, np.inf))
    with pytest.raises(NotPositiveDefinite, match="singular"):
        woodbury.solve(LeastSquares(Gram(Linear(), X, storage="lowrank"), Y, 1.0, basis=np.ones((4, 1))))
