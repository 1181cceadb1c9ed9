"""The machines on streams as estimators: what they share with all others, and what only a stream has."""

import math
import os
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier, is_outlier_detector
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import Gaussian, OnlineNovelty, OnlineSVC, OnlineSVR, Spectrum
from mercer.data import sample
from mercer.errors import BudgetTooSmall, InvalidInput, ModelFileError
from mercer.machine.outcome import StoppedEarly
from mercer.models import container, load, save
from mercer.online import terms_for

ATTRIBUTES = (
    "kernel_", "solver_", "solution_", "objective_", "dual_objective_", "gap_", "history_", "stopped_", "n_iter_",
    "plan_", "progressive_loss_", "mistakes_", "truncation_error_", "truncation_bound_",
)  # fmt: skip
PARAMETERS = {
    "memory": None, "precision": "auto", "max_iter": 1, "max_time": None, "warm_start": False, "verbose": False,
    "n_jobs": None, "random_state": None, "tol": 1e-3, "shuffle": True,
}  # fmt: skip
SHARED = {"kernel": Gaussian(1.5), "random_state": 0}
MACHINES = [
    OnlineSVC(**SHARED),
    OnlineSVC(**SHARED, loss="nu", regularisation=0.1, schedule="inverse_sqrt"),
    OnlineSVC(**SHARED, loss="perceptron", regularisation=0.0, schedule="constant"),
    OnlineNovelty(**SHARED),
    *(OnlineSVR(**SHARED, loss=loss) for loss in ("squared", "epsilon_insensitive", "huber")),
    OnlineSVR(**SHARED, loss="adaptive_huber"),
]
every = pytest.mark.parametrize("machine", MACHINES, ids=lambda m: f"{type(m).__name__}-{getattr(m, 'loss', '')}")


def data(machine, n=300, seed=0):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, 3))
    scores = np.column_stack([X[:, 0], -X[:, 0] + X[:, 1], np.full(n, 0.3)])
    return X, scores.argmax(axis=1) if not hasattr(machine, "epsilon") else np.sin(X[:, 0])


def answers(machine, X):
    return machine.predict(X) if hasattr(machine, "epsilon") else machine.decision_function(X)


def learn(machine, X, y, **options):
    return machine.partial_fit(X, y, **options)


# What all estimators share -----------------------------------------------------------------------------------------


@every
def test_the_names_of_parameters_and_attributes_are_those_of_all_machines(machine):
    own = type(machine)().get_params()
    for name, value in PARAMETERS.items():
        assert own[name] == value
    assert not any(hasattr(clone(machine), name) for name in ATTRIBUTES)
    found = clone(machine).fit(*data(machine))
    assert all(hasattr(found, name) for name in ATTRIBUTES)
    assert found.kernel_ == Gaussian(1.5)
    assert ": " in found.solver_
    assert found.stopped_ == "seen"
    assert found.n_iter_ == 300
    for word in ("solver", "memory", "float64", "no kernel matrix", "10000 terms"):
        assert word in str(found.plan_)


@every
def test_a_stream_has_no_certificate_and_says_so(machine):
    found = clone(machine).fit(*data(machine))
    assert math.isnan(found.gap_)
    assert math.isnan(found.objective_)
    assert math.isnan(found.dual_objective_)
    assert math.isnan(found.solution_.gap)
    assert math.isfinite(found.progressive_loss_)


@every
def test_copies_and_files_answer_the_same_to_the_bit_and_go_on_learning(machine, tmp_path):
    X, y = data(machine)
    found = clone(machine).set_params(budget=50).fit(X, y)
    save(found, tmp_path / "m")
    copies = [pickle.loads(pickle.dumps(found)), load(tmp_path / "m")]
    found_again = answers(found.partial_fit(X[:100], y[:100]), X)
    for copy in copies:
        assert type(copy) is type(found)
        assert repr(copy.get_params()) == repr(found.get_params())
        assert copy.n_iter_ == 300
        assert copy.plan_.storage.startswith("no kernel matrix")
        copy.partial_fit(X[:100], y[:100])
        np.testing.assert_array_equal(answers(copy, X), found_again)
        for name in ("truncation_error_", "truncation_bound_", "progressive_loss_", "mistakes_", "n_iter_"):
            assert getattr(copy, name) == getattr(found, name), name


@every
def test_a_file_of_another_version_is_refused(machine, tmp_path, monkeypatch):
    found = clone(machine).fit(*data(machine))
    with monkeypatch.context() as patch:
        patch.setattr(container, "VERSION", container.VERSION + 1)
        save(found, tmp_path / "m")
    with pytest.raises(ModelFileError, match="update mercer"):
        load(tmp_path / "m")


@every
def test_weight_zero_is_left_out(machine):
    X, y = data(machine)
    weights = np.ones(300)
    weights[::4] = 0.0
    X[::4] += 100.0
    kept = weights > 0.0
    weighted = clone(machine).fit(X, y, sample_weight=weights)
    without = clone(machine).fit(X[kept], y[kept])
    np.testing.assert_allclose(answers(weighted, X[kept]), answers(without, X[kept]), atol=1e-10)
    assert weighted.n_iter_ == without.n_iter_


@every
def test_a_budget_that_holds_nothing_is_refused(machine):
    with pytest.raises(BudgetTooSmall):
        clone(machine).set_params(memory=1000).fit(*data(machine))


@every
def test_verbose_and_callbacks_follow_the_stream(machine, capsys):
    clone(machine).set_params(verbose=True).fit(*data(machine))
    assert "objective" in capsys.readouterr().out


# What only a stream has --------------------------------------------------------------------------------------------


@every
def test_one_point_after_the_other_is_the_same_as_all_at_once(machine):
    X, y = data(machine)
    whole, parts, single = (clone(machine).set_params(budget=40, shuffle=False) for _ in range(3))
    classes = {"classes": np.unique(y)} if is_classifier(machine) else {}
    whole.fit(X, y)
    for start in range(0, 300, 75):
        learn(parts, X[start : start + 75], y[start : start + 75], **classes)
    for i in range(300):
        learn(single, X[i : i + 1], y[i : i + 1], **classes)
    np.testing.assert_allclose(answers(parts, X), answers(whole, X), atol=1e-9)
    np.testing.assert_allclose(answers(single, X), answers(whole, X), atol=1e-9)
    assert single.n_iter_ == 300
    np.testing.assert_array_equal(single.support_, whole.support_)
    np.testing.assert_array_equal(whole.support_vectors_, X[whole.support_])


@every
def test_fit_begins_anew_and_warm_start_goes_on(machine):
    X, y = data(machine)
    again = clone(machine).fit(X, y).fit(X, y)
    np.testing.assert_array_equal(answers(again, X), answers(clone(machine).fit(X, y), X))
    warm = clone(machine).set_params(warm_start=True).fit(X, y).fit(X, y)
    assert warm.n_iter_ == 600


@every
def test_sparse_points_give_the_same_answers(machine):
    X, y = data(machine)
    X[np.abs(X) < 0.5] = 0.0
    dense, sparse = clone(machine).fit(X, y), clone(machine).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(answers(sparse, sp.csr_matrix(X)), answers(dense, X), atol=1e-9)


def test_the_answer_is_the_expansion_that_is_shown():
    X, y = data(OnlineSVC())
    found = OnlineSVC(gamma=0.4).fit(X, y == 1)
    values = rbf_kernel(X, found.support_vectors_, gamma=0.4) @ found.dual_coef_[0] + found.intercept_[0]
    np.testing.assert_allclose(found.decision_function(X), values, atol=1e-9)
    np.testing.assert_array_equal(found.predict(X), values > 0.0)


def test_labels_of_any_type_and_number_of_classes_are_learnt():
    digits = sample("optdigits", "train")
    X, y = digits.X[:2000], digits.y[:2000].astype(str)
    found = make_pipeline(StandardScaler(), OnlineSVC(gamma=0.02, max_iter=3, random_state=0)).fit(X, y)
    test = sample("optdigits", "test")
    assert found.score(test.X, test.y.astype(str)) > 0.95
    assert found[-1].decision_function(X[:5]).shape == (5, 10)
    assert found[-1].mistakes_ < 0.03  # of the third pass


def test_a_label_that_was_not_named_is_refused_with_the_remedy():
    X, y = data(OnlineSVC())
    with pytest.raises(InvalidInput, match="name all of them"):
        OnlineSVC().partial_fit(X[y == 0], y[y == 0])
    found = OnlineSVC().partial_fit(X[y < 2], y[y < 2])
    with pytest.raises(InvalidInput, match=r"label .*2.* classes="):
        found.partial_fit(X, y)
    named = OnlineSVC().partial_fit(X[y == 0], y[y == 0], classes=[0, 1, 2])
    assert named.partial_fit(X, y).classes_.tolist() == [0, 1, 2]


def test_class_weights_and_sample_weights_of_a_stream_multiply_its_steps():
    X, y = data(OnlineSVC())
    by_class = OnlineSVC(class_weight={1: 3.0}, shuffle=False).fit(X, y)
    by_point = OnlineSVC(gamma=by_class.kernel_.gamma, shuffle=False)
    by_point.fit(X, y, sample_weight=np.where(y == 1, 3.0, 1.0))
    np.testing.assert_allclose(by_class.decision_function(X), by_point.decision_function(X), atol=1e-10)


# Passes of `fit` in random order -------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_weights_copies_and_any_order_of_the_rows_are_the_same_fit_to_the_last_bit(machine, form):
    X, y = data(machine, 90)
    random = np.random.default_rng(1)
    weights = random.integers(0, 4, 90)
    copies = random.permutation(np.repeat(np.arange(90), weights))
    weighted = clone(machine).set_params(max_iter=3).fit(form(X), y, sample_weight=weights)
    repeated = clone(machine).set_params(max_iter=3).fit(form(X[copies]), y[copies])
    np.testing.assert_array_equal(answers(weighted, form(X)), answers(repeated, form(X)))
    assert weighted.n_iter_ == repeated.n_iter_ == 3 * len(copies)
    for name in ("mistakes_", "progressive_loss_", "truncation_error_"):
        assert getattr(weighted, name) == getattr(repeated, name), name


def test_widths_that_follow_the_points_are_the_same_for_weights_and_copies():
    X, y = data(OnlineSVC(), 60)
    weights = np.random.default_rng(1).integers(0, 4, 60)
    weighted = OnlineSVC(random_state=0).fit(X, y, sample_weight=weights)
    assert weighted.kernel_ == OnlineSVC(random_state=0).fit(np.repeat(X, weights, 0), np.repeat(y, weights)).kernel_


def test_objects_are_merged_as_rows_are():
    texts = ["abab" * k + "c" for k in range(1, 12)] + ["cdcd" * k + "b" for k in range(1, 12)]
    y = np.repeat([0, 1], 11)
    machine = OnlineSVC(kernel=Spectrum(2), rate=0.01, random_state=0)
    twice = clone(machine).fit([*texts, *texts[::-1]], np.concatenate([y, y[::-1]]))
    weighted = clone(machine).fit(texts, y, sample_weight=np.full(22, 2.0))
    np.testing.assert_array_equal(twice.decision_function(texts), weighted.decision_function(texts))


@every
def test_without_shuffling_every_pass_is_the_stream_as_it_was_given(machine):
    X, y = data(machine)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 300)
    passed = clone(machine).set_params(shuffle=False, max_iter=2).fit(X, y, sample_weight=weights)
    stream = clone(machine)
    for _ in range(2):
        learn(stream, X, y, sample_weight=weights)
    np.testing.assert_array_equal(answers(passed, X), answers(stream, X))
    assert passed.n_iter_ == stream.n_iter_ == 600


@every
def test_the_seed_draws_the_order_and_the_terms_are_rows_of_the_data(machine):
    X, y = data(machine)
    first, again, other = (clone(machine).set_params(random_state=seed).fit(X, y) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.support_, again.support_)
    assert list(first.support_) != list(other.support_)
    np.testing.assert_array_equal(first.support_vectors_, X[first.support_])
    twice = clone(machine).set_params(max_iter=2).fit(X, y)
    np.testing.assert_array_equal(twice.support_vectors_, X[twice.support_ % 300])
    assert twice.shape_fit_ == (600, X.shape[1])


def test_classes_in_the_order_of_the_file_are_learnt_as_well_as_mixed_ones():
    train, test = sample("satimage", "train"), sample("satimage", "test")
    scale = StandardScaler().fit(train.X)
    order = np.argsort(train.y, kind="stable")
    sorted_by_class = OnlineSVC(gamma=0.1, random_state=0).fit(scale.transform(train.X[order]), train.y[order])
    assert sorted_by_class.score(scale.transform(test.X), test.y) > 0.87


def test_many_copies_of_noisy_labels_are_learnt_as_their_majority():
    """Copies are spread over a pass: in a row, the label that happens to come last would win."""
    X = np.arange(12.0)[:, None]
    truth = np.arange(12) % 2
    share = np.where(truth == 1, 700, 300)
    rows = np.repeat(np.arange(12), 1000)
    y = (np.arange(12000) % 1000 < share[rows]).astype(int)
    for seed in range(5):
        found = OnlineSVC(kernel=Gaussian(0.3), schedule="inverse_sqrt", random_state=seed).fit(X[rows], y)
        np.testing.assert_array_equal(found.predict(X), truth)


def test_a_pass_ends_however_large_the_weights(monkeypatch):
    monkeypatch.setattr("mercer.online.batch.LONGEST_PASS", 1000)
    X, y = data(OnlineSVC())
    found = OnlineSVC(random_state=0).fit(X, y, sample_weight=np.full(300, 1e9))
    assert found.n_iter_ == 1200
    light = OnlineSVC(random_state=0).fit(X, y, sample_weight=np.full(300, 0.25))
    assert light.n_iter_ == 300


def test_class_weights_make_steps_longer_not_more():
    X, y = data(OnlineSVC())
    plain, heavy = (OnlineSVC(random_state=0, class_weight=w).fit(X, y == 1) for w in (None, {True: 100.0}))
    assert heavy.n_iter_ == plain.n_iter_ == 300
    assert heavy.predict(X).sum() > plain.predict(X).sum()


def test_several_passes_lower_the_loss_until_it_no_longer_falls():
    X, y = data(OnlineSVC(), 600)
    once, often = OnlineSVC(random_state=0).fit(X, y), OnlineSVC(random_state=0, max_iter=8).fit(X, y)
    until = OnlineSVC(random_state=0, max_iter=-1, tol=0.2).fit(X, y)
    assert often.n_iter_ == 4800
    assert often.progressive_loss_ < once.progressive_loss_
    assert until.n_iter_ % 600 == 0
    assert until.n_iter_ >= 1200


def test_the_end_of_the_time_keeps_what_was_learnt():
    X, y = data(OnlineSVC(), 5000)
    found = OnlineSVC(max_time=1e-9).fit(X, y)
    assert found.stopped_ == "time"
    assert 0 < found.n_iter_ < 5000


def test_novelties_of_a_stream_are_a_share_nu_and_lie_where_there_are_few_points():
    random = np.random.default_rng(0)
    X = random.standard_normal((5000, 2))
    found = OnlineNovelty(nu=0.1, kernel=Gaussian(1.0)).fit(X)
    assert found.mistakes_ == pytest.approx(0.1, abs=0.01)
    assert is_outlier_detector(found)
    far, near = 6.0 * np.eye(2), 0.1 * np.eye(2)
    assert found.predict(far).tolist() == [-1, -1]
    assert found.predict(near).tolist() == [1, 1]
    np.testing.assert_allclose(found.score_samples(X) - found.offset_, found.decision_function(X))


def test_the_perceptron_begins_to_learn_and_makes_no_more_mistakes_than_novikoffs_bound():
    X = np.random.default_rng(0).standard_normal((400, 2))
    X = X[np.abs(X[:, 0]) > 0.4]
    y = X[:, 0] > 0.0
    machine = OnlineSVC(kernel="linear", loss="perceptron", regularisation=0.0, schedule="constant", bias="none")
    machine.partial_fit(X, y)
    assert 1 <= len(machine.support_) <= (X**2).sum(axis=1).max() / 0.4**2
    assert machine.score(X, y) > 0.9


@pytest.mark.parametrize("loss", ["squared", "epsilon_insensitive", "huber", "adaptive_huber"])
def test_every_loss_learns_a_sine(loss):
    random = np.random.default_rng(0)
    X = random.uniform(-3.0, 3.0, (4000, 1))
    y = np.sin(X[:, 0]) + 0.1 * random.standard_normal(4000)
    found = OnlineSVR(loss=loss, kernel=Gaussian(0.7)).fit(X, y)
    assert np.abs(found.predict(X) - np.sin(X[:, 0])).mean() < 0.08


def test_hubers_losses_withstand_outliers_that_squares_do_not():
    random = np.random.default_rng(0)
    X = random.uniform(-3.0, 3.0, (4000, 1))
    y = np.sin(X[:, 0]) + 0.1 * random.standard_normal(4000)
    y[random.random(4000) < 0.1] += 20.0
    errors = {
        loss: np.abs(OnlineSVR(loss=loss, kernel=Gaussian(0.7)).fit(X, y).predict(X) - np.sin(X[:, 0])).mean()
        for loss in ("squared", "huber", "adaptive_huber")
    }
    assert errors["huber"] < 0.25 * errors["squared"]
    assert errors["adaptive_huber"] < 0.5 * errors["squared"]


def test_a_tube_without_nu_stays_as_wide_as_it_was():
    X, y = data(OnlineSVR())
    assert OnlineSVR(epsilon=0.25, nu=None).fit(X, y).epsilon_ == 0.25
    with pytest.raises(InvalidInput, match="loss='huber'"):
        OnlineSVR(loss="adaptive_huber", nu=None).fit(X, y)


def test_strings_are_learnt_by_their_kernel():
    texts = ["abab" * k + "c" for k in range(1, 20)] + ["cdcd" * k + "b" for k in range(1, 20)]
    y = np.repeat([0, 1], 19)
    order = np.random.default_rng(0).permutation(38)
    found = OnlineSVC(kernel=Spectrum(2), rate=0.01).fit([texts[i] for i in order], y[order])
    assert (found.predict(["ababab", "cdcdcd"]) == [0, 1]).all()


@pytest.mark.parametrize("kernel", ["precomputed", rbf_kernel])
def test_kernels_that_need_all_points_at_once_are_refused(kernel):
    with pytest.raises(InvalidInput, match="a stream needs kernel values with points to come"):
        OnlineSVC(kernel=kernel).fit(np.eye(4), [0, 1, 0, 1])


def test_the_terms_that_a_given_error_needs_bound_the_error_of_a_machine():
    X, y = data(OnlineSVC(), 2000)
    rate, regularisation, error = 0.2, 0.2, 0.01
    terms = terms_for(error, rate=rate, regularisation=regularisation)
    found = OnlineSVC(
        kernel=Gaussian(1.5), rate=rate, regularisation=regularisation, schedule="constant", budget=terms
    ).fit(X, y == 1)
    assert found.truncation_error_ <= found.truncation_bound_ <= error


def test_interrupted_fits_do_not_warn_of_a_certificate(recwarn):
    OnlineSVC().fit(*data(OnlineSVC()))
    assert not [w for w in recwarn if issubclass(w.category, StoppedEarly)]


def test_a_long_stream_is_learnt_in_fixed_memory():
    """Ten times as many points do not take more memory: measured in a process of its own."""
    program = textwrap.dedent("""
        import sys
        import numpy as np
        from mercer import Gaussian, OnlineSVC

        random = np.random.default_rng(0)
        machine = OnlineSVC(kernel=Gaussian(3.0), budget=500, schedule="constant", rate=0.2, regularisation=0.02)
        peaks = []
        for block in range(int(sys.argv[1])):
            X = random.standard_normal((2000, 20))
            machine.partial_fit(X, X[:, 0] > X[:, 1] ** 2 - 1.0, classes=[False, True])
            if block in (4, int(sys.argv[1]) - 1):
                peaks.append(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
        print(*peaks, len(machine.support_), machine.n_iter_)
    """)
    run = subprocess.run(
        [sys.executable, "-c", program, "50"], capture_output=True, text=True, env=os.environ, check=True, timeout=120
    )
    early, late, terms, steps = map(int, run.stdout.split())
    assert steps == 100_000
    assert terms == 500
    assert late - early < 4 * 1024  # KiB


@every
@pytest.mark.parametrize("first", [sp.csr_array, sp.csr_matrix, np.asarray])
def test_dense_and_sparse_points_may_come_in_one_stream(machine, first):
    X, y = data(machine, 120)
    second = sp.csr_array if first is np.asarray else np.asarray
    mixed = learn(learn(clone(machine), first(X[:60]), y[:60]), second(X[60:]), y[60:])
    plain = learn(learn(clone(machine), X[:60], y[:60]), X[60:], y[60:])
    np.testing.assert_allclose(answers(mixed, X), answers(plain, X), atol=1e-10)


def test_no_pass_at_all_is_refused():
    with pytest.raises(ValueError, match="max_iter"):
        OnlineSVC(max_iter=0).fit(np.eye(4), [0, 1, 0, 1])
