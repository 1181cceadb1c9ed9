"""The reduced-set support vector machine against a quadratic program stated in its primal variables."""

from typing import Any

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.kernels import Gaussian
from mercer.lowrank import Nystrom, reduced_set
from mercer.svm import SVC

Array = NDArray[np.float64]
KERNEL = Gaussian(sigma=1.0)
RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 2))
Y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * RNG.standard_normal(60) > 0, 1.0, -1.0)
INDEX = np.arange(0, 60, 6)
A, B = KERNEL(X, X[INDEX]), KERNEL(X[INDEX])


def primal_program(C: float) -> tuple[float, Array, float]:
    """min 1/2 a'Ba + C 1'xi with y (A a + b) >= 1 - xi, xi >= 0, as one quadratic program: (value, a, b)."""
    n, m = A.shape
    P = sp.block_diag([B, sp.csc_matrix((1 + n, 1 + n))], format="csc")
    q = np.concatenate([np.zeros(m + 1), C * np.ones(n)])
    margins = np.hstack([-(Y[:, None] * A), -Y[:, None], -np.eye(n)])
    signs = np.hstack([np.zeros((n, m + 1)), -np.eye(n)])
    G = sp.csc_matrix(np.vstack([margins, signs]))
    h = np.concatenate([-np.ones(n), np.zeros(n)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solver = clarabel.DefaultSolver(sp.triu(P, format="csc"), q, G, h, [clarabel.NonnegativeConeT(2 * n)], settings)
    found = solver.solve()
    x = np.asarray(found.x)
    return float(found.obj_val), x[:m], float(x[m])


@pytest.mark.parametrize("solver", ["interior_point", "linear_dual"])
@pytest.mark.parametrize("C", [0.5, 20.0])
def test_primal_and_dual_equal_the_quadratic_program(solver: Any, C: float) -> None:
    value, a, b = primal_program(C)
    found = reduced_set.solve(KERNEL, X, Y, INDEX, C=C, solver=solver)
    assert found.primal == pytest.approx(value, rel=1e-6)
    assert found.dual == pytest.approx(value, rel=1e-6)
    assert np.allclose(A @ found.coefficients + found.bias, A @ a + b, atol=1e-3)


def test_outputs_at_the_training_points_are_those_of_the_low_rank_kernel() -> None:
    reduced = reduced_set.solve(KERNEL, X, Y, INDEX, C=2.0)
    plain = reduced_set.solve(KERNEL, X, Y, INDEX, C=2.0, evaluation="full")
    assert plain.coefficients.shape == (60,)
    K = A @ np.linalg.solve(B, A.T)
    assert np.allclose(A @ reduced.coefficients, K @ plain.coefficients, atol=1e-8)
    assert np.allclose(B @ reduced.coefficients, A.T @ plain.coefficients, atol=1e-8)


def test_the_estimator_is_this_machine() -> None:
    found = reduced_set.solve(KERNEL, X, Y, X[INDEX], C=2.0)
    machine = SVC(C=2.0, kernel=KERNEL, approximation=Nystrom(10, landmarks=X[INDEX]), solver="interior_point")
    outputs = machine.fit(X, Y).decision_function(X)
    assert np.allclose(outputs, A @ found.coefficients + found.bias, atol=1e-5)


def test_real_targets_stay_within_the_tube_where_c_is_large() -> None:
    target = A @ RNG.standard_normal(10)
    found = reduced_set.solve(KERNEL, X, target, INDEX, C=1e4, epsilon=0.05)
    assert np.abs(A @ found.coefficients + found.bias - target).max() < 0.0501


def test_senseless_arguments_are_refused() -> None:
    with pytest.raises(InvalidInput, match="evaluation"):
        reduced_set.solve(KERNEL, X, Y, INDEX, evaluation="exact")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="solver"):
        reduced_set.solve(KERNEL, X, Y, INDEX, solver="simplex")  # type: ignore[arg-type]
