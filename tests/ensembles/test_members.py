"""Members on samples: the kernel values they share, who trains them, and outputs at points they have not seen."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from mercer import LSSVC, LSSVR, SVC, SVR, Bagging, Committee, Custom, Gaussian, Linear, Stacking
from mercer.ensembles import combining
from mercer.ensembles.sampled import targets_of
from mercer.ensembles.views import OwnPoints, SharedMatrix
from mercer.errors import Advice, InvalidInput
from mercer.machine.callbacks import observed

KERNEL = Gaussian(sigma=1.5)


def points(n: int = 80, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points (n, 2) in an order in which they are their own distinct points, classes (n,) and values (n,)."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, 2))
    y = (X[:, 0] + X[:, 1] ** 2 + 0.3 * random.standard_normal(n) > 0.6).astype(int)
    return X, y, np.sin(X[:, 0]) + 0.1 * random.standard_normal(n)


def samples_of(ensemble, X, y):
    """Rows of X in each sample; members number the distinct points in an order of their own."""
    data = ensemble._data(X, y, None).merged()
    place = np.empty(data.n, dtype=int)
    place[data.point] = np.arange(len(X))
    return [(place[sample.rows], sample.counts) for sample in ensemble.bank_.samples]


# Kernel values -----------------------------------------------------------------------------------------------------


def counting() -> tuple[Custom, list[int]]:
    calls = [0]

    def similarity(x, z) -> float:
        calls[0] += 1
        return float(np.exp(-0.5 * np.sum((x - z) ** 2)))

    return Custom(similarity), calls


@pytest.mark.parametrize("base", [LSSVC, SVC])
def test_members_on_overlapping_samples_compute_every_kernel_value_once(base):
    X, y, _ = points(40)
    kernel, calls = counting()
    found = Bagging(base(kernel=kernel), members=8, random_state=0).fit(X, y)
    assert isinstance(found.bank_.view, SharedMatrix)
    assert calls[0] <= 40 * 40
    calls[0] = 0
    found.predict(X[:10])
    assert calls[0] <= 10 * 40


def test_disjoint_parts_compute_only_their_own():
    X, y, _ = points(40)
    kernel, calls = counting()
    found = Bagging(LSSVC(kernel=kernel), members=4, sample="disjoint", random_state=0)
    found.fit(X, y)
    assert isinstance(found.bank_.view, OwnPoints)
    own = 4 * 10 * 11 // 2
    # Training, where a function of the user is looked at twice to see whether it is definite, and out-of-bag outputs.
    assert calls[0] <= 2 * own + 40 * 40


@pytest.mark.parametrize("base", [LSSVC(kernel=KERNEL), SVC(kernel=KERNEL, tol=1e-8)])
def test_sharing_changes_no_member(base):
    X, y, _ = points()
    found = Bagging(base, members=4, random_state=0).fit(X, y)
    outputs = found.member_outputs(X)[:, :, 0]
    for output, (rows, counts) in zip(outputs, samples_of(found, X, y)):
        alone = clone(base).fit(X[rows], y[rows], sample_weight=counts)
        np.testing.assert_allclose(output, alone.decision_function(X), atol=1e-5)


def test_a_kernel_matrix_of_the_user_is_cut():
    X, y, _ = points()
    by_points = Bagging(LSSVC(kernel=KERNEL), members=4, sample="subsample", size=0.5, random_state=0)
    by_matrix = clone(by_points).set_params(base__kernel="precomputed")
    weights = np.ones(80)
    weights[::5] = 0.0
    by_matrix.fit(KERNEL(X), y, sample_weight=weights)
    assert by_matrix.score(KERNEL(X), y) > 0.8
    np.testing.assert_allclose(by_matrix.decision_function(KERNEL(X)).shape, (80,))
    other = KERNEL(X).copy()
    other[:, ::5] = 1e9  # columns of points that were left out
    np.testing.assert_array_equal(by_matrix.predict(other), by_matrix.predict(KERNEL(X)))


def test_a_linear_kernel_is_trained_from_points():
    X, y, _ = points()
    assert isinstance(Bagging(SVC(kernel=Linear()), members=4).fit(X, y).bank_.view, OwnPoints)


# Who trains --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_executor_does_not_change_the_answer(pool, n_jobs):
    X, y, _ = points()
    reference = Bagging(LSSVC(kernel=KERNEL), members=4, random_state=0, n_jobs=n_jobs).fit(X, y)
    with pool(2) as executor:
        found = clone(Bagging(LSSVC(kernel=KERNEL), members=4, random_state=0, executor=executor))
        assert found.executor is executor
        found.fit(X, y)
    np.testing.assert_array_equal(found.decision_function(X), reference.decision_function(X))


def test_progress_tells_of_every_member_and_can_end_the_training():
    X, y, _ = points()
    heard = []
    with observed(lambda record, _: heard.append(record.facts.get("members"))):
        Bagging(LSSVC(kernel=KERNEL), members=5, random_state=0, n_jobs=1).fit(X, y)
    assert [number for number in heard if number is not None] == [1, 2, 3, 4, 5]
    with observed(lambda record, _: record.facts.get("members") == 3):
        found = Bagging(LSSVC(kernel=KERNEL), members=5, random_state=0, n_jobs=1).fit(X, y)
    assert len(found.members_) == 3
    assert found.stopped_ == "interrupted"
    assert found.score(X, y) > 0.8


def test_the_certificate_is_that_of_all_members():
    X, y, _ = points()
    found = Bagging(SVC(kernel=KERNEL), members=4, random_state=0).fit(X, y)
    assert found.objective_ == pytest.approx(sum(member.objective_ for member in found.members_))
    assert found.gap_ == pytest.approx(sum(member.gap_ for member in found.members_))
    assert "one kernel matrix for all members" in str(found.plan_)


# Points that members have not seen -----------------------------------------------------------------------------------


def test_out_of_bag_outputs_are_the_means_of_members_that_did_not_draw_the_point():
    X, _, t = points()
    found = Bagging(LSSVR(kernel=KERNEL), members=6, random_state=0).fit(X, t)
    outputs, samples = found.member_outputs(X)[:, :, 0], samples_of(found, X, t)
    seen = np.array([np.isin(np.arange(80), rows) for rows, _ in samples])
    for i in range(80):
        expected = outputs[~seen[:, i], i].mean() if not seen[:, i].all() else np.nan
        assert found.oob_outputs_[i, 0] == pytest.approx(expected, nan_ok=True)
    known = np.isfinite(found.oob_outputs_[:, 0])
    assert found.oob_error_ == pytest.approx(np.mean((found.oob_outputs_[known, 0] - t[known]) ** 2))


@pytest.mark.parametrize("sample", ["disjoint", "bootstrap", "committee"])
def test_leave_one_out_of_a_committee_equals_retraining(sample):
    """Every point is taken out of the members that saw it, and these are trained again."""
    X, _, t = points(40)
    base = LSSVR(C=3.0, kernel=KERNEL)
    found = Committee(base, members=3, sample=sample, weights="equal", random_state=0).fit(X, t)
    samples = samples_of(found, X, t)
    for i in range(0, 40, 5):
        outputs = []
        for rows, counts in samples:
            rest = rows != i
            weights = None if counts is None else counts[rest]
            outputs.append(clone(base).fit(X[rows[rest]], t[rows[rest]], sample_weight=weights).predict(X[[i]])[0])
        assert found.loo_outputs_[i, 0] == pytest.approx(np.mean(outputs), abs=1e-8)


def test_other_machines_are_held_to_outputs_of_folds():
    """An interpolating machine has training outputs without error; those of folds are as wrong as on new points."""
    X, _, t = points(80)
    random = np.random.default_rng(0).standard_normal(80)  # nothing to learn
    found = Committee(SVR(C=1e4, epsilon=0.0, kernel=Gaussian(0.1)), members=2, random_state=0).fit(X, random)
    assert np.mean((found.predict(X) - random) ** 2) < 0.8 * found.loo_error_
    assert found.loo_error_ > 0.8 * random.var()
    assert Committee(SVR(kernel=KERNEL), members=2, random_state=0).fit(X, t).loo_error_ < 0.3 * t.var()


# Combining ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", ["affine", "convex"])
def test_learnt_weights_are_no_worse_than_equal_ones_where_they_were_learnt(weights):
    X, _, t = points(120)
    bases = [LSSVR(C=c, kernel=Gaussian(s)) for c, s in ((1.0, 0.3), (10.0, 2.0), (0.1, 1.0))]
    found = Committee(bases, weights=weights, ridge=0.0).fit(X, t)
    equal = Committee(bases, weights="equal").fit(X, t)
    assert found.loo_error_ <= equal.loo_error_ + 1e-12
    assert found.loo_error_ <= found.loo_member_errors_.min() + 1e-12
    assert found.loo_error_ == pytest.approx(found.weights_ @ found.error_products_ @ found.weights_)


def test_the_bayesian_committee_of_one_member_is_the_machine_itself():
    X, _, t = points(60)
    base = LSSVR(C=5.0, kernel=KERNEL, bias="none")
    found = Committee(base, members=1, weights="bayesian").fit(X, t)
    new = points(10, seed=1)[0]
    np.testing.assert_allclose(found.predict(new), base.fit(X, t).predict(new), atol=1e-5)


def test_the_bayesian_committee_comes_near_the_machine_on_all_points():
    X, _, t = points(200)
    new, _, _ = points(60, seed=1)
    base = LSSVR(C=10.0, kernel=KERNEL, bias="none")
    whole = clone(base).fit(X, t).predict(new)
    bayes, equal = (
        Committee(base, members=5, weights=weights, random_state=0).fit(X, t).predict(new)
        for weights in ("bayesian", "equal")
    )
    assert np.mean((bayes - whole) ** 2) < 0.2 * np.mean((equal - whole) ** 2)
    with pytest.raises(InvalidInput, match="bayesian"):
        Committee(LSSVR(), weights="bayesian").fit(X, t)


def test_one_wild_member_ruins_the_mean_and_not_the_median():
    """A member whose width was tuned on other points may interpolate noise (Hamers 2004, figures 6.1 and 6.2)."""
    X, _, t = points(100)
    new, _, truth = points(100, seed=1)
    bases = [LSSVR(C=10.0, kernel=KERNEL)] * 4
    outputs = np.stack([base.fit(X[i::5], t[i::5]).predict(new) for i, base in enumerate(bases)])
    wild = np.vstack([outputs, 50.0 * np.ones(100)])[:, :, None]
    errors = {name: np.mean((rule(wild)[:, 0] - truth) ** 2) for name, rule in combining.RULES.items()}
    assert errors["median"] < 0.1 < 10.0 < errors["mean"]
    assert np.mean((combining.trimmed(wild, 0.2)[:, 0] - truth) ** 2) < 0.1


def test_stacking_trains_its_second_machine_on_unseen_outputs():
    X, _, t = points(60)
    bases = [LSSVR(C=3.0, kernel=KERNEL), LSSVR(C=100.0, kernel=Gaussian(0.05))]
    found = Stacking(bases, random_state=0).fit(X, t)
    expected = np.column_stack([base.fit(X, t).loo_predictions_ for base in bases])
    np.testing.assert_allclose(found.member_outputs_, expected, atol=1e-8)
    learnt_by_heart = bases[1].fit(X, t)
    assert np.mean((learnt_by_heart.predict(X) - t) ** 2) < 1e-3 * t.var()
    assert found.loo_member_errors_[1] > 0.5 * t.var()  # what the second machine was shown
    assert found.loo_error_ < 1.05 * found.loo_member_errors_.min()


def test_any_machine_of_scikit_learn_may_be_a_member():
    X, y, t = points(80)
    for base in (DecisionTreeClassifier(random_state=0), LogisticRegression(), KNeighborsClassifier(3)):
        found = Bagging(base, members=3, random_state=0).fit(X, y)
        assert found.score(X, y) > 0.6
        assert 0.0 <= found.oob_error_ <= 1.0
    assert Bagging(DecisionTreeRegressor(), members=5, random_state=0).fit(X, t).score(X, t) > 0.8
    with pytest.raises(InvalidInput, match="sample_weight"):
        Bagging(KNeighborsClassifier(), members=2).fit(X, y, sample_weight=np.arange(1.0, 81.0))


def test_features_and_noise_make_members_differ():
    random = np.random.default_rng(0)
    X = random.standard_normal((60, 5))
    y = (X[:, 0] > 0).astype(int)
    found = Bagging(LSSVC(), members=4, features=2, random_state=0).fit(X, y)
    assert all(member.n_features_in_ == 2 for member in found.members_)
    noisy = Bagging(LSSVC(), members=2, sample="subsample", size=1.0, noise=0.5, random_state=0).fit(X, y)
    first, second = noisy.member_outputs(X)
    assert np.abs(first - second).max() > 0.01
    assert np.abs(np.subtract(*Bagging(LSSVC(), members=2, sample="subsample").fit(X, y).member_outputs(X))).max() == 0


def test_parts_that_would_lack_a_class_are_fewer():
    X, y, _ = points(60)
    few = np.flatnonzero(y)[3:]
    X, y = np.delete(X, few, axis=0), np.delete(y, few)
    with pytest.warns(Advice, match="smallest class has 3 points"):
        found = Committee(members=10, random_state=0).fit(X, y)
    assert len(found.members_) == 3


def test_targets_of_classes_are_signs():
    found = Committee(members=2)
    X, y, _ = points(20)
    data = found._data(X, np.where(y, "a", "b"), None)
    np.testing.assert_array_equal(targets_of(data, 1)[:, 0], np.where(y, -1.0, 1.0))
