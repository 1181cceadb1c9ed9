"""Solvers ask a kernel matrix for blocks, products and its diagonal, and for nothing else.

An operator on another device, or one whose rows lie on other machines, needs no more than the class below.
"""

import numpy as np
import pytest

from mercer.gram import Gram
from mercer.kernels import Gaussian
from mercer.losses import EpsilonInsensitive, Hinge
from mercer.problems import RegularisedRisk
from mercer.problems.multiclass import CrammerSinger, WestonWatkins
from mercer.solvers.multiclass import decomposition as multiclass_decomposition
from mercer.solvers.quadratic import decomposition

KERNEL = Gaussian(sigma=1.5)


class StandIn:
    """K by plain NumPy, in float32 as the operators have it."""

    def __init__(self, X):
        self.exact = KERNEL(X)
        self.K = self.exact.astype(np.float32)
        self.dtype, self.shape = self.K.dtype, self.K.shape

    def block(self, rows, columns):
        everything = np.arange(len(self.K))
        rows, columns = (everything if i is None else everything[i] for i in (rows, columns))
        return self.K[np.ix_(rows, columns)]

    def dot(self, V):
        return self.K @ V

    def columns_dot(self, index, V):
        return self.K[:, index] @ V

    def exact_dot(self, rows, columns, V):
        rows, columns = (slice(None) if i is None else i for i in (rows, columns))
        return self.exact[rows][:, columns] @ V

    def diagonal(self):
        return np.diagonal(self.K)


def data(n, k=2):
    rng = np.random.default_rng(n)
    y = rng.integers(0, k, size=n)
    return rng.normal(size=(n, 4)) + 1.2 * np.eye(k, 4)[y], y


@pytest.mark.parametrize("n", [300, 1800])  # one working set, and several
@pytest.mark.parametrize("bias", ["free", "penalised", "none"])
def test_decomposition_reaches_the_objective_of_the_real_operator(n, bias):
    X, labels = data(n)
    y = 2.0 * labels - 1.0
    real = decomposition.solve(RegularisedRisk(Gram(KERNEL, X), y, Hinge(), bias=bias), tol=1e-4)
    found = decomposition.solve(RegularisedRisk(StandIn(X), y, Hinge(), bias=bias), tol=1e-4)
    assert found.converged
    assert found.primal == pytest.approx(real.primal, rel=1e-5)
    assert found.dual <= real.primal * (1 + 1e-9)
    assert found.gap >= found.primal - real.primal - 1e-9 * real.primal


def test_crowded_working_sets_of_a_stand_in_may_become_the_whole_problem():
    X, _ = data(1500)
    targets = np.sin(3.0 * X[:, 0])
    problem = RegularisedRisk(StandIn(X), targets, EpsilonInsensitive(1e-2), 10.0)
    real = decomposition.solve(RegularisedRisk(Gram(KERNEL, X), targets, EpsilonInsensitive(1e-2), 10.0), tol=1e-3)
    assert decomposition.solve(problem, tol=1e-3).primal == pytest.approx(real.primal, rel=1e-3)


@pytest.mark.parametrize("n", [200, 1600])
@pytest.mark.parametrize("problem", [CrammerSinger, WestonWatkins])
def test_machines_with_one_problem_for_all_classes_need_no_more(n, problem):
    X, y = data(n, 3)
    real = multiclass_decomposition.solve(problem(Gram(KERNEL, X), y, 1.0), tol=1e-4)
    found = multiclass_decomposition.solve(problem(StandIn(X), y, 1.0), tol=1e-4)
    assert found.converged
    assert found.primal == pytest.approx(real.primal, rel=3e-4)
    assert found.dual <= real.primal * (1 + 1e-9)
