"""OutputCode: the theorems about codes, the fast methods against plain retraining, and every odd input."""

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import LSSVC, SVC, Gaussian, losses
from mercer.data import Standardise, sample
from mercer.errors import InvalidInput
from mercer.multiclass import OutputCode
from mercer.multiclass.banks import CloneBank
from mercer.multiclass.codes import make_code
from mercer.multiclass.least_squares_bank import LinearBank, SubsystemBank, class_sets, combination
from mercer.multiclass.support_vector_bank import SupportVectorBank

pytestmark = [
    pytest.mark.filterwarnings("ignore::mercer.errors.Advice"),
    pytest.mark.filterwarnings("ignore:The number of unique classes is greater"),
]


@pytest.fixture(scope="module")
def satimage():
    train, test = sample("satimage", "train"), sample("satimage", "test")
    random = np.random.default_rng(0)
    rows = random.choice(len(train.y), 400, replace=False)
    scale = Standardise.learn(train.X[rows])
    return scale(train.X[rows]), train.y[rows], scale(test.X[:500]), test.y[:500]


def plain(base, code, X, labels, Z, weights=None):
    """Outputs (m, F) of one clone for each column, trained as if nothing were shared."""
    values = []
    for column in code.T:
        signs = column[labels]
        own = signs != 0
        w = None if weights is None else weights[own]
        machine = clone(base).fit(X[own], signs[own].astype(int), sample_weight=w)
        values.append(machine.decision_function(Z))
    return np.stack(values, axis=1)


# Theorems ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", ["free", "none", "penalised"])
def test_complete_is_one_versus_all_under_least_squares_on_every_point(satimage, bias):
    X, y, Z, _ = satimage
    for sigma, C in ((1.0, 1.0), (3.0, 100.0)):
        base = LSSVC(C=C, kernel=Gaussian(sigma), bias=bias)
        ova, complete = (OutputCode(base, code).fit(X, y).predict(Z) for code in ("ova", "complete"))
        assert np.array_equal(ova, complete)
        assert np.array_equal(ova, base.fit(X, y).predict(Z))


@pytest.mark.parametrize("bias", ["free", "none"])
def test_least_squares_decides_by_the_products_of_the_rows(satimage, bias):
    X, y, Z, _ = satimage
    machine = OutputCode(LSSVC(C=10.0, kernel=Gaussian(2.0), bias=bias), "dense", random_state=1).fit(X, y)
    M = machine.code_.astype(float)
    labels = np.searchsorted(machine.classes_, y)
    indicators = np.stack(
        [machine_of(np.where(labels == j, 1.0, 0.0), X, bias).predict(Z) for j in range(len(M))],
        axis=1,
    )
    assert machine.outputs(Z) == pytest.approx(indicators @ M, abs=1e-7)
    assert np.array_equal(machine.predict(Z), machine.classes_[np.argmax(indicators @ (M @ M.T), axis=1)])


def machine_of(targets, X, bias):
    from mercer import LSSVR

    return LSSVR(C=10.0, kernel=Gaussian(2.0), bias=bias).fit(X, targets)


def test_relabelling_swaps_the_winner():
    # If a code prefers j although f^i is the largest, then with the rows of i and j exchanged it chooses i.
    random = np.random.default_rng(0)
    seen = 0
    while seen < 300:
        k = int(random.integers(3, 8))
        M = random.choice([-1.0, 1.0], size=(k, int(random.integers(k, 20))))
        f = random.normal(size=k)
        chosen, largest = int(np.argmax(M @ M.T @ f)), int(np.argmax(f))
        if chosen == largest or len(np.unique(M, axis=0)) < k:
            continue
        seen += 1
        tau = np.arange(k)
        tau[[chosen, largest]] = largest, chosen
        N = M[tau]
        assert (N @ N.T @ f)[largest] >= (N @ N.T @ f).max() - 1e-9


def test_all_pairs_with_hamming_is_the_vote_of_the_support_vector_machine(satimage):
    X, y, Z, _ = satimage
    base = SVC(C=5.0, kernel=Gaussian(3.0))
    ours = OutputCode(base, "ava", "hamming").fit(X, y)
    assert isinstance(ours.bank_, SupportVectorBank)
    assert np.array_equal(ours.predict(Z), base.fit(X, y).predict(Z))


def test_one_versus_all_is_the_largest_output_of_scikit_learns(satimage):
    X, y, Z, _ = satimage
    base = SVC(C=5.0, kernel="rbf", gamma=0.05, tol=1e-6)
    ours = OutputCode(base, "ova").fit(X, y)
    theirs = OneVsRestClassifier(base).fit(X, y)
    assert ours.outputs(Z) == pytest.approx(theirs.decision_function(Z), abs=1e-3)
    assert np.mean(ours.predict(Z) == theirs.predict(Z)) > 0.995


# Shared work against machines trained one by one ------------------------------------------------------------------


@pytest.mark.parametrize("code", ["ova", "ava", "complete", "dense", "sparse", "bch"])
@pytest.mark.parametrize(("bias", "weighted"), [("free", False), ("penalised", True)])
def test_least_squares_machines_from_shared_systems_are_the_plain_ones(satimage, code, bias, weighted):
    X, y, Z, _ = satimage
    X, y = X[:150], y[:150]
    base = LSSVC(C=3.0, kernel=Gaussian(2.0), bias=bias)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, size=len(y)) if weighted else None
    ours = OutputCode(base, code, random_state=0).fit(X, y, sample_weight=weights)
    assert isinstance(ours.bank_, LinearBank if ours.code_.all() else SubsystemBank)
    labels = np.searchsorted(ours.classes_, y)
    assert ours.outputs(Z) == pytest.approx(plain(base, ours.code_, X, labels, Z, weights), abs=1e-7)


@pytest.mark.parametrize("code", ["ova", "ava", "dense", "sparse"])
def test_support_vector_machines_on_one_matrix_are_the_plain_ones(satimage, code):
    X, y, Z, _ = satimage
    base = SVC(C=3.0, kernel=Gaussian(3.0), tol=1e-6)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, size=len(y))
    ours = OutputCode(base, code, random_state=0).fit(X, y, sample_weight=weights)
    assert isinstance(ours.bank_, SupportVectorBank)
    labels = np.searchsorted(ours.classes_, y)
    assert ours.outputs(Z) == pytest.approx(plain(base, ours.code_, X, labels, Z, weights), abs=2e-3)


def test_outputs_combine_exactly_for_one_versus_all():
    for k in (3, 5, 10):
        assert np.array_equal(combination(make_code("ova", k)), np.eye(k))


def test_columns_that_use_the_same_classes_share_a_system():
    sets = class_sets(np.array([[1, 1, 0, 1], [-1, 0, 1, -1], [0, -1, -1, 0]]))
    assert sets == {(0, 1): [0, 3], (0, 2): [1], (1, 2): [2]}


@pytest.mark.parametrize("code", ["ova", "dense", "ava", "sparse"])
@pytest.mark.parametrize("bias", ["free", "none", "penalised"])
def test_leave_one_out_outputs_are_those_of_retraining(satimage, code, bias):
    X, y, _, _ = satimage
    X, y = X[:40], y[:40] % 3
    base = LSSVC(C=3.0, kernel=Gaussian(2.0), bias=bias)
    machine = OutputCode(base, code, random_state=0).fit(X, y)
    exact = machine.bank_.leave_one_out()
    for i in (0, 7, 23, 39):
        rest = np.arange(40) != i
        again = OutputCode(base, machine.code_).fit(X[rest], y[rest])
        assert again.outputs(X[i : i + 1])[0] == pytest.approx(exact[i], abs=1e-8)


def test_kernel_values_of_one_versus_all_and_all_pairs_are_computed_once(satimage):
    X, y, _, _ = satimage
    asked = []

    def kernel(A, B):
        asked.append(len(A) * len(B))
        return np.exp(-0.05 * ((A[:, None] - B[None]) ** 2).sum(axis=2))

    for code in ("ova", "ava", "sparse"):
        asked.clear()
        OutputCode(SVC(kernel=kernel), code, random_state=0).fit(X, y)
        assert sum(asked) <= len(y) ** 2


@pytest.mark.parametrize("code", ["ova", "sparse"])
def test_precomputed_matrices_and_sparse_points_give_the_same_machines(satimage, code):
    X, y, Z, _ = satimage
    kernel = Gaussian(3.0)
    for kind, options in ((LSSVC, {}), (SVC, {"tol": 1e-6})):
        dense = OutputCode(kind(C=2.0, kernel=kernel, **options), code, random_state=0).fit(X, y)
        given = OutputCode(kind(C=2.0, kernel="precomputed", **options), code, random_state=0).fit(kernel(X), y)
        sparse = OutputCode(kind(C=2.0, kernel=kernel, **options), code, random_state=0).fit(csr_matrix(X), y)
        assert given.outputs(kernel(Z, X)) == pytest.approx(dense.outputs(Z), abs=2e-3)
        assert sparse.outputs(csr_matrix(Z)) == pytest.approx(dense.outputs(Z), abs=2e-3)


def test_parameters_chosen_by_leave_one_out_are_the_same_for_all_columns(satimage):
    X, y, Z, t = satimage
    base = LSSVC(C="loo", kernel=Gaussian(3.0))
    pairs = OutputCode(base, "ava").fit(X, y)
    assert pairs.bank_.C == base.fit(X, y).C_
    assert np.mean(pairs.predict(Z) == t) > 0.8


def test_a_given_matrix_with_points_of_weight_zero_is_the_matrix_without_them(satimage):
    X, y, Z, _ = satimage
    K, across = Gaussian(3.0)(X), Gaussian(3.0)(Z, X)
    weights = np.ones(len(y))
    weights[::3] = 0
    kept = np.flatnonzero(weights)
    for kind in (LSSVC, SVC):
        for code in ("ova", "sparse"):
            machine = OutputCode(kind(kernel="precomputed"), code, random_state=0)
            whole = clone(machine).fit(K, y, sample_weight=weights)
            part = clone(machine).fit(K[np.ix_(kept, kept)], y[kept])
            assert whole.outputs(across) == pytest.approx(part.outputs(across[:, kept]), abs=1e-8)


@pytest.mark.parametrize("kind", [LSSVC, SVC])
@pytest.mark.parametrize("code", ["dense", "sparse"])
def test_a_pickled_machine_predicts_the_same(satimage, kind, code):
    X, y, Z, _ = satimage
    machine = OutputCode(kind(kernel=Gaussian(3.0)), code, random_state=0).fit(X, y)
    assert np.array_equal(pickle.loads(pickle.dumps(machine)).outputs(Z), machine.outputs(Z))


# Any scikit-learn classifier --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "base",
    [
        GaussianNB(),
        RandomForestClassifier(5, random_state=0),
        Perceptron(random_state=0),
        KNeighborsClassifier(),
    ],
    ids=lambda base: type(base).__name__,
)
@pytest.mark.parametrize("code", ["ova", "sparse"])
def test_any_binary_classifier_will_do(satimage, base, code):
    X, y, Z, t = satimage
    machine = OutputCode(base, code, random_state=0).fit(X, y)
    assert isinstance(machine.bank_, CloneBank)
    assert np.mean(machine.predict(Z) == t) > 0.7


def test_logistic_pairs_are_those_of_scikit_learn(satimage):
    X, y, Z, _ = satimage
    ours = OutputCode(LogisticRegression(), "ava", "hamming").fit(X, y).outputs(Z)
    theirs = OneVsOneClassifier(LogisticRegression()).fit(X, y)
    # There the second class of a pair is the positive one.
    values = np.stack([machine.decision_function(Z) for machine in theirs.estimators_], axis=1)
    assert ours == pytest.approx(-values, abs=1e-4)


def test_parallel_training_is_serial_training(satimage):
    X, y, Z, _ = satimage
    for base in (GaussianNB(), SVC(), LSSVC()):
        one, two = (OutputCode(base, "ava", random_state=0, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
        assert one.outputs(Z) == pytest.approx(two.outputs(Z), abs=1e-10)


# Decoders ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [LSSVC(C=10.0), SVC(C=10.0)], ids=lambda b: type(b).__name__)
@pytest.mark.parametrize("code", ["ova", "ava", "sparse"])
@pytest.mark.parametrize("decoder", ["hamming", "loss", "bradley-terry", "stacking", "continuous"])
def test_every_decoder_classifies(satimage, base, code, decoder):
    X, y, Z, t = satimage
    machine = OutputCode(base, code, decoder, random_state=0, folds=3).fit(X, y)
    scores = machine.decision_function(Z)
    assert scores.shape == (len(Z), 6)
    assert np.array_equal(machine.predict(Z), machine.classes_[np.argmax(scores, axis=1)])
    assert np.mean(machine.predict(Z) == t) > (0.5 if (code, decoder) == ("ova", "hamming") else 0.7)


@pytest.mark.parametrize("code", ["ova", "ava", "dense"])
def test_probabilities_sum_to_one_and_are_calibrated_better_than_chance(satimage, code):
    X, y, Z, t = satimage
    machine = OutputCode(SVC(C=5.0), code, "bradley-terry", random_state=0).fit(X, y)
    p = machine.predict_proba(Z)
    assert p.sum(axis=1) == pytest.approx(np.ones(len(Z)))
    assert p.min() > 0
    truth = np.searchsorted(machine.classes_, t)
    assert -np.mean(np.log(p[np.arange(len(t)), truth])) < 0.8 < np.log(6)
    assert machine.predict_log_proba(Z) == pytest.approx(np.log(p))
    with pytest.raises(AttributeError, match="predict_proba"):
        OutputCode(SVC()).fit(X, y).predict_proba(Z)


def test_stacking_on_unseen_outputs_beats_stacking_on_fitted_ones():
    from mercer.multiclass import learnt_decoders

    random = np.random.default_rng(0)
    labels = random.integers(0, 4, size=240)
    X = random.normal(size=(240, 6)) + 0.8 * np.eye(6)[labels]
    inside, outside = np.arange(120), np.arange(120, 240)
    base = LSSVC(C=1e4, kernel=Gaussian(1.0))  # fits the training points almost exactly
    machine = OutputCode(base, "sparse", "stacking", penalty=1e-3, random_state=0).fit(X[inside], labels[inside])
    fitted = learnt_decoders.stack(machine.outputs(X[inside]), labels[inside], 4, 1e-3)
    of_fitted = np.mean(np.argmax(machine.outputs(X[outside]) @ fitted, axis=1) == labels[outside])
    assert np.mean(machine.predict(X[outside]) == labels[outside]) >= of_fitted


def test_the_loss_of_the_decoder_can_be_named(satimage):
    X, y, Z, _ = satimage
    assert OutputCode(LSSVC()).fit(X, y).loss_ == losses.Square()
    assert OutputCode(SVC()).fit(X, y).loss_ == losses.Hinge()
    by_name = OutputCode(SVC(), "dense", loss="exponential", random_state=0).fit(X, y)
    by_object = OutputCode(SVC(), "dense", loss=losses.Exponential(), random_state=0).fit(X, y)
    assert np.array_equal(by_name.predict(Z), by_object.predict(Z))


# Odd inputs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [LSSVC(), SVC(), GaussianNB()], ids=lambda b: type(b).__name__)
@pytest.mark.parametrize("decoder", ["loss", "bradley-terry", "stacking", "continuous"])
@pytest.mark.parametrize("code", ["ova", "ava", "dense"])
def test_a_class_with_one_sample_is_learnt_though_absent_from_a_fold(base, decoder, code):
    random = np.random.default_rng(0)
    X = random.normal(size=(41, 2)) + 6 * np.array([[0, 0]] * 20 + [[1, 0]] * 20 + [[5, 5]])
    y = np.array(["a"] * 20 + ["b"] * 20 + ["single"])
    machine = OutputCode(base, code, decoder, random_state=0).fit(X, y)
    assert list(machine.classes_) == ["a", "b", "single"]
    assert np.mean(machine.predict(X) == y) > 0.9


@pytest.mark.parametrize("code", ["ova", "dense", "bch"])
@pytest.mark.parametrize("kind", [LSSVC, SVC])
def test_a_thousand_classes(code, kind):
    random = np.random.default_rng(0)
    y = np.arange(1000)
    X = 10 * random.normal(size=(1000, 5))
    machine = OutputCode(kind(C=1000.0, kernel=Gaussian(2.0)), code, random_state=0).fit(X, y)
    assert machine.code_.shape[0] == 1000
    assert np.mean(machine.predict(X + 0.05 * random.normal(size=X.shape)) == y) > 0.95


@pytest.mark.parametrize("base", [LSSVC(), SVC(), LogisticRegression()], ids=lambda b: type(b).__name__)
@pytest.mark.parametrize("decoder", ["hamming", "loss", "bradley-terry", "stacking"])
def test_two_classes_are_the_binary_machine(base, decoder):
    heart = sample("heart-statlog")
    X = Standardise.learn(heart.X)(heart.X)
    machine = OutputCode(base, "bch", decoder, random_state=0).fit(X, heart.y)
    values = machine.decision_function(X)
    assert values.shape == (len(X),)
    assert np.array_equal(machine.predict(X), np.where(values > 0, 1, -1))
    if decoder in ("hamming", "loss"):
        assert np.array_equal(machine.predict(X), clone(base).fit(X, heart.y).predict(X))


def test_an_invalid_code_matrix_is_refused(satimage):
    X, y, _, _ = satimage
    for matrix, complaint in (
        (np.ones((6, 3)), "no -1"),
        (np.eye(5), "5 rows for 6 classes"),
        (np.full((6, 2), 0.5), "0 only"),
        ([[1, 1], [1, 1], [-1, 1], [-1, -1], [1, -1], [0, 1]], "equal"),
    ):
        with pytest.raises(InvalidInput, match=complaint):
            OutputCode(LSSVC(), matrix).fit(X, y)
    with pytest.raises(ValueError, match="code"):
        OutputCode(LSSVC(), "hadamard").fit(X, y)


def test_what_cannot_be_done_is_said(satimage):
    X, y, _, _ = satimage
    with pytest.raises(InvalidInput, match="greater than one"):
        OutputCode(SVC()).fit(X, np.ones(len(y)))
    with pytest.raises(InvalidInput, match="neither decision_function nor predict_proba"):
        OutputCode(LinearRegression()).fit(X, y)
    with pytest.raises(InvalidInput, match="sample_weight"):
        OutputCode(KNeighborsClassifier()).fit(X, y, sample_weight=np.ones(len(y)))


def test_points_of_weight_zero_take_no_part(satimage):
    X, y, Z, _ = satimage
    weights = np.ones(len(y))
    weights[y == 7] = 0
    for base in (LSSVC(), SVC(tol=1e-8), LogisticRegression()):
        machine = OutputCode(base, "sparse", random_state=0).fit(X, y, sample_weight=weights)
        assert 7 not in machine.classes_
        left = OutputCode(base, "sparse", random_state=0).fit(X[y != 7], y[y != 7])
        assert machine.outputs(Z) == pytest.approx(left.outputs(Z), abs=1e-4)


def test_class_weights_balance_every_column(satimage):
    X, y, Z, _ = satimage
    base = LSSVC(C=1.0, kernel=Gaussian(3.0), class_weight="balanced")
    machine = OutputCode(base, "ova").fit(X, y)
    assert isinstance(machine.bank_, CloneBank)
    labels = np.searchsorted(machine.classes_, y)
    assert machine.outputs(Z) == pytest.approx(plain(base, machine.code_, X, labels, Z), abs=1e-8)


@parametrize_with_checks(
    [
        OutputCode(SVC(tol=1e-10)),
        OutputCode(LSSVC(), "sparse", random_state=0),
        OutputCode(LogisticRegression(tol=1e-10), "ava", "bradley-terry"),
    ]
)
def test_scikit_learn_estimator_check(estimator, check):
    check(estimator)
