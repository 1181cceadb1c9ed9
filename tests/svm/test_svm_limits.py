"""The ends of the parameters: the hard margin, very large C and weights, vanishing margins, and scales of any size."""

import warnings

import numpy as np
import pytest
import sklearn.svm

from mercer.errors import Infeasible, InvalidInput, NoMargin, NotConverged
from mercer.least_squares import LSSVC, LSSVR
from mercer.lowrank import Nystrom
from mercer.multiclass import CrammerSingerSVC, KernelLogistic, OutputCode
from mercer.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

random = np.random.default_rng(0)
X = random.normal(size=(120, 3))
noisy = np.where(X[:, 0] + 0.5 * random.normal(size=120) > 0, 1, -1)
apart = np.where(X[:, 0] > 0, 1, -1)
separable = X + np.outer(0.3 * apart, [1.0, 0.0, 0.0])


def widest_margin(points, y):
    """1/2 |w|^2 of the widest margin of a linear machine, by a general solver of quadratic programs."""
    cvxopt = pytest.importorskip("cvxopt")
    n, d = points.shape
    P, q = np.zeros((d + 1, d + 1)), np.zeros(d + 1)
    P[:d, :d] = np.eye(d)
    G = -y[:, None] * np.hstack([points, np.ones((n, 1))])
    options = {"show_progress": False, "abstol": 1e-12, "reltol": 1e-12, "feastol": 1e-12}
    found = cvxopt.solvers.qp(*map(cvxopt.matrix, (P, q, G.astype(float), -np.ones(n))), options=options)
    return float(found["primal objective"])


@pytest.mark.parametrize("solver", ["auto", "decomposition", "interior_point"])
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_infinite_C_is_the_hard_margin_with_its_certificate(solver, unit):
    expected = widest_margin(separable, apart) / unit**2
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # and no advice that C is too small
        machine = SVC(C=np.inf, kernel="linear", solver=solver).fit(unit * separable, apart)
    assert machine.stopped_ == "converged"
    assert machine.dual_objective_ <= expected * (1 + 1e-9)
    assert machine.objective_ >= expected * (1 - 1e-9)
    assert machine.gap_ <= 1e-2 * expected
    assert (apart * machine.decision_function(unit * separable)).min() == pytest.approx(1.0, abs=1e-9)
    assert 0.5 * float((machine.coef_**2).sum()) == pytest.approx(machine.objective_, rel=1e-6)


@pytest.mark.parametrize("solver", ["auto", "decomposition", "interior_point"])
def test_infinite_C_on_classes_that_overlap_is_infeasible(solver):
    with pytest.raises(Infeasible, match=r"cannot be separated.*finite C"):
        SVC(C=np.inf, kernel="linear", solver=solver).fit(X, noisy)


def test_infinite_C_works_for_several_classes_codes_and_approximations():
    labels = np.argmax(X, axis=1)
    for machine in (SVC(C=np.inf, gamma=2.0), SVC(C=np.inf, gamma=2.0, multiclass="ovr")):
        fitted = machine.fit(X, labels)
        assert fitted.score(X, labels) == 1.0
        assert 0.0 <= fitted.gap_ <= 1e-2 * fitted.objective_
    assert OutputCode(SVC(C=np.inf, gamma=2.0), code="ova").fit(X, labels).score(X, labels) == 1.0
    assert SVC(C=np.inf, gamma=2.0, approximation=Nystrom(110)).fit(X, apart).score(X, apart) == 1.0


def test_infinite_C_is_refused_where_nothing_solves_it():
    with pytest.raises(InvalidInput, match="bias='free' only"):
        SVC(C=np.inf, bias="none").fit(separable, apart)
    with pytest.raises(InvalidInput, match="finite"):
        NuSVR(C=np.inf).fit(X, X[:, 0])


def test_infinite_C_keeps_every_point_of_a_regression_within_the_tube():
    machine = SVR(C=np.inf, epsilon=0.1, gamma=0.5).fit(X, np.sin(X[:, 0]))
    assert np.abs(machine.predict(X) - np.sin(X[:, 0])).max() <= 0.1 + 1e-3
    both = np.vstack([X, X])  # one point, two targets further apart than the tube is wide
    with pytest.raises(Infeasible, match="larger epsilon"):
        SVR(C=np.inf, epsilon=0.1, max_time=5).fit(both, np.repeat([0.0, 1.0], len(X)))


def test_no_other_C_is_put_in_the_place_of_the_one_asked_for():
    # With u X and C / u^2 the machine is the same; 1e-8 X needs C = 1e16.
    expected = SVC(kernel="linear", C=1.0, tol=1e-6).fit(X, noisy)
    found = SVC(kernel="linear", C=1e16, tol=1e-6).fit(1e-8 * X, noisy)
    assert found.objective_ * 1e-16 == pytest.approx(expected.objective_, rel=1e-5)
    with pytest.raises(InvalidInput, match=r"1e\+25.*float64"):
        SVC(C=1e25).fit(X, noisy)
    with pytest.raises(InvalidInput, match="float64"):
        OneClassSVM().fit(X, sample_weight=np.full(120, 1e160))


@pytest.mark.parametrize("huge", [1e100, 1e160, 1e300])
@pytest.mark.parametrize(
    "machine",
    [SVC(), NuSVC(nu=0.3), SVR(), OneClassSVM(), LSSVC(), LSSVR(), LSSVR(C="loo"), LSSVR(approximation=Nystrom(20)),
     KernelLogistic()],
    ids=repr,
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::mercer.errors.MercerWarning")
def test_a_certificate_that_is_not_a_number_is_never_given(machine, huge):
    y = huge * X[:, 0] if isinstance(machine, (SVR, LSSVR)) else noisy
    for weights in (np.full(120, huge), np.where(np.arange(120) < 5, huge, 1.0), None):
        try:
            fitted = machine.fit(X, y, sample_weight=weights)
        except InvalidInput as error:
            assert any(word in str(error) for word in ("finite", "float64", "infeasible", "positive"))  # noqa: PT017
            continue
        assert not np.isnan([fitted.objective_, fitted.dual_objective_, fitted.gap_]).any()
        if fitted.stopped_ == "converged":
            assert np.isfinite(fitted.gap_)


@pytest.mark.parametrize("C", [1e10, 1e13, 1e15, 1e17])
@pytest.mark.parametrize("machine", [SVC, SVR, CrammerSingerSVC, LSSVR], ids=lambda machine: machine.__name__)
def test_nothing_has_converged_where_half_of_the_objective_may_be_missing(machine, C):
    fitted = machine(C=C)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted.fit(X, X[:, 0] if machine in (SVR, LSSVR) else apart)
    if fitted.gap_ > 0.5 * fitted.objective_:
        assert fitted.stopped_ != "converged"
        assert any(issubclass(warning.category, NotConverged) for warning in caught)


def test_a_weight_beyond_the_digits_of_float64_is_not_called_converged():
    weights = np.ones(120)
    weights[3] = 1e160
    with pytest.warns(NotConverged, match="too few digits"):
        machine = CrammerSingerSVC().fit(X, np.digitize(X[:, 0], [-0.5, 0.5]), sample_weight=weights)
    assert machine.stopped_ == "stalled"


@pytest.mark.parametrize("unit", [1e-4, 1e-2, 1e2, 1e4])
def test_nu_machines_converge_alike_at_every_scale(unit):
    for machine, targets in ((NuSVC(nu=0.4, kernel="linear"), noisy), (OneClassSVM(kernel="linear", nu=0.3), None)):
        fitted = machine.fit(unit * (X + 3.0), targets)
        assert fitted.stopped_ == "converged"
        assert fitted.gap_ <= 5e-3 * abs(fitted.objective_)
    small = NuSVR(kernel="linear", C=unit).fit(X, unit * np.sin(X[:, 0]))
    assert small.gap_ <= 2e-2 * abs(small.objective_)
    nu = NuSVC(nu=0.4, kernel="linear", tol=1e-4)
    np.testing.assert_allclose(
        nu.fit(unit * X, noisy).decision_function(unit * X), nu.fit(X, noisy).decision_function(X), atol=1e-2
    )


def test_nu_machines_agree_with_libsvm_at_ordinary_scales():
    theirs, ours = sklearn.svm.NuSVC(nu=0.4).fit(X, noisy), NuSVC(nu=0.4).fit(X, noisy)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=5e-3)


def test_a_vanishing_margin_is_told_and_not_divided_by():
    both, labels = np.vstack([X, X]), np.repeat([0, 1], 120)  # every point in both classes: f = 0
    with pytest.warns(NoMargin, match=r"margin rho is zero to rounding.*raise nu"):
        machine = NuSVC(nu=0.9).fit(both, labels)
    assert np.abs(machine.decision_function(both)).max() <= 1e-8


def test_few_points_that_need_very_many_pair_steps_go_to_the_interior_point_method():
    """Labels without any relation to the points, and a nu that leaves a margin of 4e-7: pair steps took minutes."""
    rng = np.random.RandomState(0)
    X, y = rng.normal(loc=100, size=(100, 2)), rng.randint(0, 2, size=100)
    svc = NuSVC(nu=0.2, tol=1e-8).fit(X, y)
    assert "pair steps did not reach the optimum" in svc.solver_
    assert svc.stopped_ == "converged"
    assert svc.gap_ <= 1e-5 * abs(svc.objective_)
    assert [one.iteration for one in svc.history_] == sorted(one.iteration for one in svc.history_)
    short = NuSVC(nu=0.2, tol=1e-8, max_iter=1000)
    with pytest.warns(NotConverged):
        assert short.fit(X, y).stopped_ == "iterations"
