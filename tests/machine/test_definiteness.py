"""No certificate is claimed where the kernel is not positive definite, and none is withheld where it is."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigvalsh, null_space

from mercer.errors import InvalidInput, NoCertificate, NotPositiveDefinite
from mercer.gram import Gram
from mercer.kernels import Custom, Gaussian, Linear, Power, Precomputed, Sigmoid, ThinPlate
from mercer.least_squares import LSSVC, LSSVR
from mercer.machine import definiteness
from mercer.machine.definiteness import doubt
from mercer.models import load, save
from mercer.multiclass import (
    BredensteinerBennettSVC,
    CrammerSingerSVC,
    KernelLogistic,
    LeeLinWahbaSVC,
    OutputCode,
    WestonWatkinsSVC,
)
from mercer.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

MACHINES = [
    SVC,
    NuSVC,
    SVR,
    NuSVR,
    OneClassSVM,
    LSSVC,
    LSSVR,
    CrammerSingerSVC,
    WestonWatkinsSVC,
    LeeLinWahbaSVC,
    BredensteinerBennettSVC,
    KernelLogistic,
]
random = np.random.default_rng(7)
X = random.normal(size=(36, 4))
labels = np.arange(36) % 3
numbers = np.sin(X[:, 0])


def thin(shift=0.0, seed=0, n=36):
    """A positive semidefinite matrix of rank 4, less a multiple of the identity."""
    A = np.random.default_rng(seed).normal(size=(n, 4))
    return A @ A.T - shift * np.eye(n)


def targets_of(machine):
    return numbers if machine in (SVR, NuSVR, LSSVR) else labels


def fit(machine, matrix):
    """The fitted machine and the classes of the warnings it gave."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = machine.fit(matrix, targets_of(type(machine)))
    return fitted, [warning.category for warning in caught]


def highest_dual(K, y, random, starts=30):
    """The largest sum(a) - 1/2 (ya)'K(ya) over 0 <= a <= 1 that exact steps on one variable reach."""
    best = -np.inf
    for _ in range(starts):
        a = random.uniform(size=len(y))
        for _ in range(20):
            for i in range(len(y)):
                rest = 1.0 - y[i] * (K[i] @ (y * a) - K[i, i] * y[i] * a[i])  # slope at a_i = 0
                ends = [0.0, 1.0] + ([np.clip(rest / K[i, i], 0.0, 1.0)] if K[i, i] > 0 else [])
                a[i] = max(ends, key=lambda t: rest * t - 0.5 * K[i, i] * t * t)
        best = max(best, a.sum() - 0.5 * (y * a) @ K @ (y * a))
    return best


def test_forty_indefinite_matrices_claim_nothing_and_a_claim_would_have_been_false():
    random, above = np.random.default_rng(0), 0
    for _ in range(40):
        A = random.normal(size=(14, 14))
        K, y = A + A.T, np.where(random.uniform(size=14) < 0.5, -1.0, 1.0)
        y[:2] = -1.0, 1.0
        with pytest.warns(NoCertificate, match="not positive semidefinite"):
            machine = SVC(kernel="precomputed", bias="none").fit(K, y)
        assert np.isfinite(machine.objective_)
        assert np.isnan(machine.gap_)
        assert np.isnan(machine.dual_objective_)
        assert machine.stopped_ == "stationary"
        assert machine.fit_status_ == 0
        above += highest_dual(K, y, random) > machine.objective_ * (1 + 1e-9)
    assert above >= 10


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.__name__)
def test_every_machine_says_when_it_has_no_certificate(machine):
    fitted, said = fit(machine(kernel="precomputed"), thin(shift=0.02))
    assert said.count(NoCertificate) == 1
    assert np.isnan(fitted.gap_)
    assert np.isnan(fitted.dual_objective_)
    assert np.isfinite(fitted.objective_)
    assert fitted.stopped_ == "stationary"
    fitted.predict(thin())
    fitted, said = fit(machine(kernel="precomputed"), thin())
    assert NoCertificate not in said
    assert fitted.gap_ >= 0.0
    assert fitted.stopped_ == "converged"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("machine", MACHINES)
def test_a_matrix_with_negative_values_on_its_diagonal_ends_in_a_word(machine, seed):
    """Steps divide by K_ii: what is not a number is no progress."""
    A = np.random.default_rng(seed).normal(size=(36, 36))
    try:
        fitted, caught = fit(machine(kernel="precomputed"), A + A.T)
    except (NotPositiveDefinite, InvalidInput):
        return
    assert np.isnan(fitted.gap_)
    assert NoCertificate in caught


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.__name__)
def test_every_machine_refuses_a_matrix_that_is_not_symmetric(machine):
    with pytest.raises(InvalidInput, match="not symmetric"):
        machine(kernel="precomputed").fit(thin() + np.triu(np.ones((36, 36))), targets_of(machine))


@pytest.mark.parametrize("base", [SVC, LSSVC])
@pytest.mark.parametrize("code", ["ova", "ava", "sparse"])
def test_codes_of_machines_say_it_too(base, code):
    with pytest.warns(NoCertificate):
        OutputCode(base(kernel="precomputed"), code=code, random_state=0).fit(thin(shift=0.02), labels)
    with pytest.raises(InvalidInput, match="not symmetric"):
        OutputCode(base(kernel="precomputed"), code=code, random_state=0).fit(thin() + np.triu(np.ones(36)), labels)


@pytest.mark.parametrize("machine", [SVC, SVR, LSSVC, LSSVR, KernelLogistic])
def test_sigmoid_and_functions_are_judged_by_their_values(machine):
    for kernel in (Sigmoid(gamma=1.0, offset=-1.0), lambda a, b: np.tanh(a @ b.T - 1.0)):
        with pytest.warns(NoCertificate):
            assert np.isnan(machine(kernel=kernel, C=1e-3).fit(X, targets_of(machine)).gap_)
    fitted, said = fit(machine(kernel=lambda a, b: a @ b.T), X)
    assert NoCertificate not in said
    assert fitted.gap_ >= 0.0


def test_a_declared_function_is_not_taken_at_its_word():
    with pytest.warns(NoCertificate, match="not positive definite on these points"):
        SVC(kernel=Custom(lambda x, z: -float(x @ z))).fit(X, labels)


def test_conditionally_definite_kernels_need_their_polynomials():
    for machine in (SVC(kernel=Power(1.0)), WestonWatkinsSVC(kernel=Power(1.0)), LSSVC(kernel=Power(1.0))):
        fitted, said = fit(machine, X)
        assert NoCertificate not in said
        assert 0.0 <= fitted.gap_ < 0.01 * fitted.objective_
    with pytest.warns(NoCertificate, match='use bias="free"'):
        assert np.isnan(SVC(kernel=Power(1.0), bias="none").fit(X, labels).gap_)
    with pytest.warns(NoCertificate, match="polynomials of degree < 2"):
        assert np.isnan(SVR(kernel=ThinPlate()).fit(X, numbers).gap_)
    with pytest.raises(NotPositiveDefinite, match="polynomials of degree < 2"):
        LSSVR(kernel=ThinPlate(), C=10.0).fit(X, numbers)
    with pytest.warns(NoCertificate, match="polynomials of degree < 2"):
        LSSVR(kernel=ThinPlate(), C=1e-6).fit(X, numbers)
    plane, said = fit(LSSVR(kernel=ThinPlate(), basis=lambda points: points), X)
    assert NoCertificate not in said
    assert plane.gap_ <= 1e-9 * plane.objective_


def test_points_of_weight_zero_do_not_matter():
    K, weights = thin(), np.ones(36)
    K[0, 0], weights[0] = -100.0, 0.0
    for machine in (SVC, LSSVC):
        with warnings.catch_warnings():
            warnings.simplefilter("error", NoCertificate)
            machine(kernel="precomputed").fit(K, labels, sample_weight=weights)


def test_kernels_known_by_their_flags_cost_nothing(monkeypatch):
    def forbidden(*arguments):
        raise AssertionError("looked at the matrix of a kernel that is known")

    monkeypatch.setattr(definiteness, "_negative_curvature", forbidden)
    for machine in (SVC(), SVC(kernel="poly"), LSSVC(kernel=Gaussian(sigma=1.0) + Linear()), KernelLogistic()):
        assert machine.fit(X, labels).gap_ >= 0.0


def judged(K, bias):
    columns, constant = np.ones((len(K), 1 if bias == "free" else 0)), 1.0 if bias == "penalised" else 0.0
    return doubt(Precomputed(), len(K), None, columns, constant, lambda: Gram(Precomputed(), K)) is None


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 50),
    bias=st.sampled_from(["free", "none", "penalised"]),
    power=st.sampled_from([-9, -6, -2]),
    unit=st.sampled_from([1e-20, 1.0, 1e20]),
)
def test_the_judgement_is_that_of_the_eigenvalues(seed, n, bias, power, unit):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, rng.integers(1, n + 1)))
    K = A @ A.T
    if bias == "free":
        u = rng.normal(size=n)
        K += u[:, None] + u  # no curvature for coefficients of sum zero
    assert judged(unit * K, bias)
    B = null_space(np.ones((1, n))) if bias == "free" else np.eye(n)
    constant = 1.0 if bias == "penalised" else 0.0
    d = B @ rng.normal(size=B.shape[1])
    d /= np.linalg.norm(d)
    # Curvature along d becomes negative, by a share of the norm.
    worse = K - (d @ K @ d + constant * d.sum() ** 2 + 10.0**power * np.linalg.norm(K)) * np.outer(d, d)
    assert eigvalsh(B.T @ (worse + constant) @ B)[0] < 0.0
    if unit == 1.0 or bias != "penalised":
        assert not judged(unit * 0.5 * (worse + worse.T), bias)


def test_rounding_to_single_precision_is_no_negative_curvature():
    K = Gaussian(sigma=2.0)(random.normal(size=(300, 2)))
    assert eigvalsh(K.astype(np.float32).astype(np.float64))[0] < -1e-9
    assert judged(K.astype(np.float32).astype(np.float64), "none")


def test_large_matrices_are_searched_and_kernels_without_promise_are_not_believed(monkeypatch):
    monkeypatch.setattr(definiteness, "LARGEST", 20)
    with pytest.warns(NoCertificate):
        SVC(kernel="precomputed").fit(thin(shift=5.0), labels)
    with pytest.warns(NoCertificate):
        SVC(kernel=Sigmoid(gamma=1e-6)).fit(X, labels)
    for K in (thin(), Gaussian(sigma=1.0)(X)):
        assert judged(K, "none")


def test_a_model_file_and_early_stops_keep_the_absence(tmp_path):
    with pytest.warns(NoCertificate):
        machine = SVC(kernel=Sigmoid(gamma=1.0, offset=-1.0)).fit(X, labels)
    save(machine, tmp_path / "machine.mercer")
    again = load(tmp_path / "machine.mercer")
    assert np.isnan(again.gap_)
    assert again.stopped_ == "stationary"
    assert again.fit_status_ == 0
    with pytest.warns(NoCertificate), pytest.warns(match="best solution so far is kept.$"):
        stopped = SVC(kernel=Sigmoid(gamma=1.0, offset=-1.0), max_iter=1).fit(X, labels)
    assert stopped.stopped_ == "iterations"
    assert np.isnan(stopped.gap_)
