"""`solver=` reaches every registered solver from the machines, and refuses a mismatch with the reason and a remedy."""

import numpy as np
import pytest

from mercer import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from mercer.errors import InvalidInput
from mercer.gram import Gram
from mercer.kernels import Gaussian
from mercer.losses import EpsilonInsensitive, Hinge
from mercer.problems import NuClassification, NuRegression, OneClass, RegularisedRisk
from mercer.solvers import catalogue, fitting

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
LABELS = np.where(X[:, 0] + 0.4 * RNG.normal(size=90) > 0, "yes", "no")
TARGETS = np.sin(2 * X[:, 0]) + 0.2 * RNG.normal(size=90)
MACHINES = {
    "SVC": (SVC, LABELS),
    "SVR": (SVR, TARGETS),
    "NuSVC": (NuSVC, LABELS),
    "NuSVR": (NuSVR, TARGETS),
    "OneClassSVM": (OneClassSVM, None),
}

GRAM = Gram(Gaussian(sigma=1.0), X)
SIGNS = np.where(LABELS == "yes", 1.0, -1.0)
STATED = {
    "SVC": RegularisedRisk(GRAM, SIGNS, Hinge()),
    "SVR": RegularisedRisk(GRAM, TARGETS, EpsilonInsensitive(0.1)),
    "NuSVC": NuClassification(GRAM, SIGNS, 0.5),
    "NuSVR": NuRegression(GRAM, TARGETS),
    "OneClassSVM": OneClass(GRAM),
}
TAKERS = {machine: fitting(problem) for machine, problem in STATED.items()}


@pytest.mark.parametrize("solver", catalogue.NAMES)
@pytest.mark.parametrize("machine", MACHINES)
def test_a_machine_is_trained_by_the_solver_it_names_or_says_which_would(machine, solver):
    kind, y = MACHINES[machine]
    reference, asked = kind(tol=1e-5).fit(X, y), kind(solver=solver, tol=1e-5)
    if solver not in TAKERS[machine]:
        with pytest.raises(InvalidInput, match=rf"solver='{solver}' cannot take this problem: .*use solver="):
            asked.fit(X, y)
        return
    found = asked.fit(X, y)
    assert found.stopped_ == "converged"
    # Few points go to the compiled form of decomposition.
    assert found.solution_.solver.replace(" ", "_") in (solver, "pairs" if solver == "decomposition" else solver)
    assert found.objective_ == pytest.approx(reference.objective_, rel=1e-4)
    values = [m.predict(X) if y is TARGETS else m.decision_function(X) for m in (found, reference)]
    assert np.abs(values[0] - values[1]).max() < 5e-3


@pytest.mark.parametrize("solver", TAKERS["OneClassSVM"])
@pytest.mark.parametrize(("nu", "tol"), [(0.1, 1e-3), (0.35, 1e-4), (0.5, 1e-5)])
def test_the_offset_of_one_class_is_as_good_as_the_gap_and_keeps_the_share_of_outliers(solver, nu, tol):
    weights = RNG.integers(1, 4, size=90).astype(float)
    found = OneClassSVM(nu=nu, solver=solver, tol=tol, gap_tol=tol).fit(X, sample_weight=weights)
    values = found.score_samples(X)
    offsets = np.concatenate((found.offset_, values))
    costs = [np.maximum(rho - values, 0.0) @ weights - nu * weights.sum() * rho for rho in offsets]
    # The best rho is one of the values; to lower it until the edge is inside may cost as much as the gap.
    assert costs[0] - min(costs) <= found.gap_ + 1e-6 * abs(found.objective_)
    assert weights[found.predict(X) < 0].sum() <= nu * weights.sum()


@pytest.mark.parametrize("machine", ["NuSVC", "NuSVR", "OneClassSVM"])
@pytest.mark.parametrize("solver", ["gradient", "newton", "irwls", "nearest_point"])
def test_bias_and_margin_or_tube_attain_the_primal_value_that_is_stated(machine, solver):
    problem = STATED[machine]
    if solver not in TAKERS[machine]:
        assert not catalogue.by_name(solver).accepts(problem)
        return
    found = catalogue.by_name(solver).solve(problem, tol=1e-5)
    reference = catalogue.by_name("interior_point").solve(problem, tol=1e-10)
    here = problem.primal(found.coefficients, found.bias, **found.multipliers)
    assert here == pytest.approx(found.primal, rel=1e-5)
    assert here - reference.dual <= 2e-5 * abs(reference.dual)
    for name, value in reference.multipliers.items():
        assert found.multipliers[name] == pytest.approx(value, rel=1e-2, abs=1e-3)


def test_several_classes_and_weights_reach_the_solver_too():
    y = np.digitize(TARGETS, [-0.4, 0.4])
    weights = RNG.integers(1, 4, size=90).astype(float)
    one = SVC(solver="osuna", tol=1e-5).fit(X, y, sample_weight=weights)
    other = SVC(tol=1e-5).fit(X, y, sample_weight=weights)
    assert np.abs(one.decision_function(X) - other.decision_function(X)).max() < 1e-2
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-4)


def test_a_basis_is_refused_by_solvers_of_sums_with_the_name_of_one_that_takes_it():
    machine = SVR(solver="svmlight", basis=lambda points: points[:, :1])
    with pytest.raises(InvalidInput, match=r"solver='svmlight' cannot take this problem.*use solver='interior_point'"):
        machine.fit(X, TARGETS)


def test_a_memory_budget_bounds_the_rows_that_are_kept():
    found = SVC(solver="svmlight", memory="300 KiB").fit(X, LABELS)
    assert found.stopped_ == "converged"


@pytest.mark.parametrize("solver", TAKERS["OneClassSVM"])
@pytest.mark.parametrize("nu", [0.1, 0.5])
def test_no_more_than_a_share_nu_are_outliers_whatever_the_solver(solver, nu):
    """Solvers that stop at a gap have variables inside their bounds far from the edge, which must not set rho."""
    machine = OneClassSVM(nu=nu, solver=solver, kernel=Gaussian(sigma=1.0)).fit(X)
    assert machine.stopped_ == "converged"
    share = np.mean(machine.predict(X) < 0)
    assert nu - 0.1 <= share <= nu


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_copies_on_the_edge_are_no_outliers_in_either_precision(precision):
    rng = np.random.default_rng(103)
    for _ in range(10):
        grid = np.round(rng.normal(size=(40, 2)))
        outliers = OneClassSVM(nu=0.5, kernel=Gaussian(sigma=1.0), precision=precision).fit(grid).predict(grid) < 0
        assert outliers.mean() <= 0.5
