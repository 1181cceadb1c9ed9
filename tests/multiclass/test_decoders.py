"""What decoders must do: theorems of the literature, each against its definition or an independent solver."""

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from mercer import losses
from mercer.errors import InvalidInput
from mercer.machine import pairwise
from mercer.multiclass import coupling, decoders, learnt_decoders
from mercer.multiclass.codes import make_code, random_code
from mercer.selection.bounds.multiclass import training_error
from tests.multiclass.references import continuous_code_objective, divergence, from_pairs

THREE = [losses.Hinge(), losses.Square(), losses.Exponential()]
EVERY = [decoders.loss_of(name) for name in decoders.LOSSES]


def named(loss):
    return type(loss).__name__


def some_code(random, k):
    """A random valid code, with or without zeros."""
    return random_code(k, sparse=bool(random.integers(2)), draws=20, seed=random)


@pytest.mark.parametrize("loss", EVERY, ids=named)
def test_loss_decoding_adds_up_the_losses(loss):
    random = np.random.default_rng(0)
    for name in ("ova", "ava", "dense", "sparse"):
        M = make_code(name, 5, 0)
        f = 2 * random.normal(size=(7, M.shape[1]))
        expected = [[sum(float(loss.value(1.0, m * v)) for m, v in zip(row, x)) for row in M] for x in f]
        assert decoders.loss_based(M, f, loss) == pytest.approx(np.array(expected), rel=1e-12)


@pytest.mark.parametrize("loss", THREE, ids=named)
@settings(max_examples=30, deadline=None)
@given(st.integers(3, 8), st.integers(0, 2**31))
def test_one_versus_all_by_loss_is_the_largest_output(loss, k, seed):
    f = 1.5 * np.random.default_rng(seed).normal(size=(40, k))
    chosen = np.argmin(decoders.loss_based(make_code("ova", k), f, loss), axis=1)
    assert np.array_equal(chosen, np.argmax(f, axis=1))


@settings(max_examples=20, deadline=None)
@given(st.integers(3, 8), st.integers(0, 2**31))
def test_all_pairs_by_hamming_is_the_majority_vote(k, seed):
    f = np.random.default_rng(seed).normal(size=(50, k * (k - 1) // 2))
    charges = decoders.hamming(make_code("ava", k), f)
    first, second = pairwise.pairs_of(k)
    votes = np.stack([(f[:, first == c] > 0).sum(axis=1) + (f[:, second == c] < 0).sum(axis=1) for c in range(k)], 1)
    assert charges + votes == pytest.approx(np.full_like(charges, charges[0, 0] + votes[0, 0]))


def test_hamming_counts_zero_entries_and_zero_outputs_half():
    M = np.array([[1, 0, -1], [-1, 1, 1]])
    assert decoders.hamming(M, [[2.0, -1.0, 0.0]]) == pytest.approx(np.array([[0 + 0.5 + 0.5, 1 + 1 + 0.5]]))


@pytest.mark.parametrize("loss", THREE, ids=named)
@settings(max_examples=30, deadline=None)
@given(st.integers(3, 6), st.integers(0, 2**31))
def test_training_error_bounds_with_the_number_of_machines_are_never_violated(loss, k, seed):
    random = np.random.default_rng(seed)
    M = some_code(random, k)
    labels = random.integers(0, k, size=25)
    f = M[labels] * random.exponential(size=(25, 1)) + random.normal(size=(25, M.shape[1])) * random.exponential()
    for kind in ("loss", "hamming"):
        charges = decoders.loss_based(M, f, loss) if kind == "loss" else decoders.hamming(M, f)
        own = charges[np.arange(25), labels]
        rivals = np.where(np.arange(k) == labels[:, None], np.inf, charges).min(axis=1)
        assert np.mean(rivals <= own + 1e-12) <= training_error(M, labels, f, loss=loss, decoder=kind).value + 1e-9


def test_exponential_decoding_survives_huge_outputs():
    charges = decoders.loss_based(make_code("ova", 3), [[1e5, -1e5, 3.0]], losses.Exponential())
    assert np.isfinite(charges).all()
    assert np.argmin(charges) == 0


def test_natural_losses_are_those_the_machines_minimise():
    from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    from mercer import LSSVC, SVC

    expected = {
        losses.Hinge: [SVC(), LinearSVC(loss="hinge"), SGDClassifier(), make_pipeline(StandardScaler(), SVC())],
        losses.SquaredHinge: [LinearSVC()],
        losses.Square: [LSSVC(), RidgeClassifier(), GridSearchCV(LSSVC(), {})],
        losses.Logistic: [LogisticRegression(), RandomForestClassifier(), SGDClassifier(loss="log_loss")],
        losses.Exponential: [AdaBoostClassifier()],
    }
    for loss, machines in expected.items():
        for machine in machines:
            assert type(decoders.natural_loss(machine)) is loss
    with pytest.raises(InvalidInput, match="not one of"):
        decoders.loss_of("zero_one")


# Bradley-Terry ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ova", "ava", "sparse", "dense"])
def test_consistent_probabilities_are_recovered(name):
    random = np.random.default_rng(1)
    M = make_code(name, 5, 0)
    p = random.dirichlet(np.ones(5) * 2, size=6)
    r = (p @ (M > 0)) / (p @ (M != 0))
    weights = random.integers(5, 50, size=M.shape[1])
    assert coupling.from_code(M, r, weights, tol=1e-13) == pytest.approx(p, abs=1e-6)


@pytest.mark.parametrize("name", ["ova", "ava", "sparse", "dense"])
def test_every_step_lowers_the_divergence_and_the_end_is_its_minimum(name):
    random = np.random.default_rng(2)
    M = make_code(name, 4, 0)
    r = random.uniform(0.05, 0.95, size=(1, M.shape[1]))
    weights = random.integers(5, 50, size=M.shape[1]).astype(float)
    p = np.full((1, 4), 0.25)
    values = [float(divergence(M, r, p, weights)[0])]
    for _ in range(60):
        p = coupling.from_code(M, r, weights, max_steps=1, start=p)
        values.append(float(divergence(M, r, p, weights)[0]))
    assert np.all(np.diff(values) <= 1e-10)

    def objective(z):
        q = np.exp(z - z.max())
        return float(divergence(M, r, (q / q.sum())[None], weights)[0])

    best = minimize(objective, np.zeros(4), method="BFGS", options={"gtol": 1e-9})
    found = coupling.from_code(M, r, weights)
    assert float(divergence(M, r, found, weights)[0]) == pytest.approx(best.fun, rel=1e-6)
    other = coupling.from_code(M, r, weights, start=random.dirichlet(np.ones(4), size=1))
    assert other == pytest.approx(found, abs=1e-6)


def test_the_general_form_on_all_pairs_is_the_pairwise_form():
    random = np.random.default_rng(3)
    M = make_code("ava", 6)
    r = random.uniform(0.02, 0.98, size=(10, M.shape[1]))
    weights = random.integers(5, 50, size=M.shape[1]).astype(float)
    general = coupling.from_code(M, r, weights, tol=1e-12)
    assert general == pytest.approx(from_pairs(r, 6, weights, tol=1e-12), abs=1e-8)


# Stacking ---------------------------------------------------------------------------------------------------------


def test_the_code_itself_as_combiner_is_linear_decoding():
    random = np.random.default_rng(4)
    for name in ("ova", "ava", "dense", "sparse"):
        M = make_code(name, 5, 0)
        f = random.normal(size=(30, M.shape[1]))
        scores = np.sign(f) @ M.T
        assert scores == pytest.approx(M.shape[1] - 2 * decoders.hamming(M, f))
        if M.all():  # (1 - Mf)^2 = const - 2 Mf
            chosen = np.argmin(decoders.loss_based(M, f, losses.Square()), axis=1)
            assert np.array_equal(np.argmax(f @ M.T, axis=1), chosen)


@pytest.mark.parametrize("F", [4, 60])
def test_stacking_is_ridge_regression_on_indicators(F):
    from sklearn.linear_model import Ridge

    random = np.random.default_rng(5)
    Z, labels = random.normal(size=(40, F)), random.integers(0, 3, size=40)
    weights = random.uniform(0.5, 2, size=40)
    reference = Ridge(alpha=0.7, fit_intercept=False).fit(Z, np.eye(3)[labels], sample_weight=weights)
    assert learnt_decoders.stack(Z, labels, 3, 0.7, weights) == pytest.approx(reference.coef_.T, abs=1e-8)
    with pytest.raises(InvalidInput, match="penalty"):
        learnt_decoders.stack(Z, labels, 3, 0.0)


# Continuous codes -------------------------------------------------------------------------------------------------


def problem(seed=6):
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(3), 8)
    return random.normal(size=(24, 4)) + np.eye(4)[labels] * 1.5, labels


@pytest.mark.parametrize("norm", ["1", "inf"])
def test_linear_programs_reach_the_optimum_of_a_dense_formulation(norm):
    Z, labels = problem()
    n, F, k, penalty = 24, 4, 3, 0.8
    M = learnt_decoders.continuous_code(Z, labels, k, norm=norm, penalty=penalty)
    # The same program stated with epigraph variables t >= |M|, one for each entry or one for all.
    rows, right = [], []
    entries = 1 if norm == "inf" else k * F
    for i in range(n):
        for r in range(k):
            if r != labels[i]:
                row = np.zeros(k * F + n + entries)
                row[r * F : (r + 1) * F] += Z[i]
                row[labels[i] * F : (labels[i] + 1) * F] -= Z[i]
                row[k * F + i] = -1
                rows.append(row)
                right.append(-1.0)
    for entry in range(k * F):
        for sign in (1.0, -1.0):
            row = np.zeros(k * F + n + entries)
            row[entry] = sign
            row[k * F + n + (0 if norm == "inf" else entry)] = -1
            rows.append(row)
            right.append(0.0)
    cost = np.concatenate([np.zeros(k * F), np.ones(n), np.full(entries, penalty)])
    bounds = [(None, None)] * (k * F) + [(0, None)] * (n + entries)
    best = linprog(cost, A_ub=np.array(rows), b_ub=right, bounds=bounds, method="highs-ipm")
    assert continuous_code_objective(M, Z, labels, norm, penalty) == pytest.approx(best.fun, rel=1e-7)


def test_the_quadratic_program_reaches_the_optimum_of_clarabel():
    Z, labels = problem()
    n, F, k, penalty = 24, 4, 3, 0.8
    M = learnt_decoders.continuous_code(Z, labels, k, norm="2", penalty=penalty)
    size = k * F + n
    P = sp.diags(np.concatenate([np.full(k * F, 2 * penalty), np.zeros(n)])).tocsc()
    rows, right = [], []
    for i in range(n):
        for r in range(k):
            row = np.zeros(size)
            row[k * F + i] = -1
            if r != labels[i]:
                row[r * F : (r + 1) * F] += Z[i]
                row[labels[i] * F : (labels[i] + 1) * F] -= Z[i]
            rows.append(row)
            right.append(0.0 if r == labels[i] else -1.0)
    settings_ = clarabel.DefaultSettings()
    settings_.verbose = False
    q = np.concatenate([np.zeros(k * F), np.ones(n)])
    cones = [clarabel.NonnegativeConeT(len(right))]
    best = clarabel.DefaultSolver(P, q, sp.csc_matrix(np.array(rows)), np.array(right), cones, settings_).solve()
    assert continuous_code_objective(M, Z, labels, "2", penalty) == pytest.approx(best.obj_val, rel=1e-5)
    assert pytest.approx(np.array(best.x[: k * F]).reshape(k, F), abs=1e-3) == M


def test_wrong_norms_and_penalties_are_refused():
    Z, labels = problem()
    with pytest.raises(InvalidInput, match="norm"):
        learnt_decoders.continuous_code(Z, labels, 3, norm="3")
    with pytest.raises(InvalidInput, match="penalty"):
        learnt_decoders.continuous_code(Z, labels, 3, penalty=-1.0)
