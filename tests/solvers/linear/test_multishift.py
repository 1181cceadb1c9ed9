"""Multi-shift conjugate gradients: the whole path from one Krylov space."""

import numpy as np
import pytest

from mercer.errors import InvalidInput
from mercer.kernels import Linear
from mercer.solvers.linear import cholesky, conjugate_gradient, multishift

from .linear_system_cases import make, points, weights

CS = [0.01, 100.0, 1.0, 0.1, 10.0]


@pytest.mark.parametrize("bias", ["free", "none", "penalised"])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_value_equals_its_own_direct_solution(bias, weighted):
    problem = make(k=2, bias=bias, weights=weights() if weighted else None)
    path = multishift.solve_path(problem, CS, tol=1e-14)
    for C, solution in zip(CS, path, strict=True):
        direct = cholesky.solve(problem.with_C(C))
        assert solution.relative_gap <= 1e-14
        assert solution.primal == pytest.approx(direct.primal, rel=1e-10)
        np.testing.assert_allclose(
            solution.coefficients, direct.coefficients, atol=1e-4 * np.abs(direct.coefficients).max()
        )
        np.testing.assert_allclose(solution.bias, direct.bias, atol=1e-5)


def test_the_path_costs_the_steps_of_its_largest_C():
    problem = make(k=1)
    path = multishift.solve_path(problem, CS, tol=None, residual=1e-9)
    hardest = conjugate_gradient.solve(problem.with_C(100.0), tol=None, residual=1e-9)
    steps = {C: s.iterations for C, s in zip(CS, path, strict=True)}
    assert abs(steps[100.0] - hardest.iterations) <= 2
    assert steps[0.01] < steps[0.1] < steps[1.0] < steps[10.0] < steps[100.0]
    assert path[0].details["passes"] <= steps[100.0] + 1


def test_a_semiparametric_path():
    problem = make(basis=points()[0][:, :1])
    for C, solution in zip(CS, multishift.solve_path(problem, CS), strict=True):
        assert solution.primal == pytest.approx(cholesky.solve(problem.with_C(C)).primal, rel=1e-9)


def test_an_ill_conditioned_value_is_finished_by_itself():
    problem = make(Linear(), d=2, C=1.0)
    for solution in multishift.solve_path(problem, [1e-3, 1e8], tol=1e-10):
        assert solution.relative_gap <= 1e-10


@pytest.mark.parametrize("values", [[], [0.0], [np.inf, 1.0]])
def test_values_that_make_no_sense_are_refused(values):
    with pytest.raises(InvalidInput, match="Cs must be positive"):
        multishift.solve_path(make(), values)
