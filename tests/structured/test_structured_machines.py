"""StructuredSVM and StructuredPerceptron as a user meets them."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils import get_tags

from mercer import CrammerSingerSVC
from mercer.errors import InvalidInput, NotConverged
from mercer.structured import Chain, Multiclass, StructuredPerceptron, StructuredSVM

SOLVERS = ("n-slack", "one-slack", "frank-wolfe", "subgradient")


def tagged(n=40, d=4, seed=0, noise=0.5):
    """Sequences of noisy points whose labels B, I, O follow one another by rules."""
    random = np.random.default_rng(seed)
    places = random.standard_normal((3, d))
    X, Y = [], []
    for T in random.integers(1, 8, n):
        y = [0]
        for _ in range(T - 1):
            y.append(random.choice(3, p=[[0.1, 0.6, 0.3], [0.3, 0.4, 0.3], [0.4, 0.0, 0.6]][y[-1]]))
        X.append(places[y] + noise * random.standard_normal((T, d)))
        Y.append(np.array(["B", "I", "O"])[y])
    return X, Y


@pytest.mark.parametrize("solver", ["auto", *SOLVERS])
def test_every_solver_gives_labels_of_sequences_it_has_not_seen(solver):
    X, Y = tagged()
    machine = StructuredSVM(Chain(), C=0.1, solver=solver, tol=0.02).fit(X[:30], Y[:30])
    assert machine.gap_ <= 0.02 * machine.objective_
    assert machine.stopped_ == "converged"
    assert machine.dual_objective_ <= machine.objective_
    found = machine.predict(X[30:])
    assert [len(y) for y in found] == [len(y) for y in Y[30:]]
    right = np.mean(np.concatenate(found) == np.concatenate(Y[30:]))
    assert machine.score(X[30:], Y[30:]) == pytest.approx(right)
    assert right > 0.85


def test_without_a_model_points_have_classes():
    random = np.random.default_rng(0)
    X = random.standard_normal((50, 3))
    y = np.argmax(X + 0.3 * random.standard_normal((50, 3)), axis=1)
    machine = StructuredSVM(C=0.1, tol=1e-6).fit(X, y)
    peer = CrammerSingerSVC(kernel="linear", C=0.1, tol=1e-8).fit(X, y)
    assert machine.objective_ == pytest.approx(peer.objective_, rel=1e-5)
    assert machine.predict(X) == list(peer.predict(X))
    assert "planes of all examples" in machine.solver_


def test_a_perceptron_counts_its_mistakes_and_states_no_certificate():
    X, Y = tagged(noise=0.9)
    machine = StructuredPerceptron(Chain(), max_iter=5, random_state=0).fit(X, Y)
    assert np.isnan(machine.gap_)
    assert machine.mistakes_ == machine.history_[-1].facts["mistakes"]
    assert machine.stopped_ == "seen"
    assert machine.score(X, Y) > 0.75
    same = StructuredPerceptron(Chain(), max_iter=5, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(machine.coef_, same.coef_)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_warm_start_goes_on_and_other_data_begin_anew(solver):
    X, Y = tagged()
    machine = StructuredSVM(Chain(), C=0.1, solver=solver, tol=0.02, warm_start=True).fit(X, Y)
    first = machine.n_iter_
    assert machine.fit(X, Y).n_iter_ <= min(1, first)
    cold = StructuredSVM(Chain(), C=0.1, solver=solver, tol=0.02).fit(X[:20], Y[:20])
    assert machine.fit(X[:20], Y[:20]).objective_ == pytest.approx(cold.objective_, rel=0.05)


def test_training_that_was_cut_off_goes_on_from_its_checkpoint(tmp_path):
    X, Y = tagged()
    file = tmp_path / "training.npz"
    machine = StructuredSVM(Chain(), C=0.1, tol=1e-5, max_time=1e-6, checkpoint=file)
    with pytest.warns(NotConverged, match="time limit"):
        machine.fit(X, Y)
    assert file.exists()
    resumed = StructuredSVM(Chain(), C=0.1, tol=1e-2, checkpoint=file).fit(X, Y)
    assert resumed.gap_ <= 1e-2 * resumed.objective_
    with pytest.raises(InvalidInput, match="other data"):
        StructuredSVM(Chain(), C=0.1, checkpoint=file).fit(X[:10], Y[:10])


def test_a_limit_of_rounds_warns_and_keeps_a_certificate():
    X, Y = tagged()
    with pytest.warns(NotConverged, match="max_iter=1"):
        machine = StructuredSVM(Chain(), tol=1e-8, max_iter=1).fit(X, Y)
    assert machine.gap_ > 0.0


def test_callbacks_hear_of_progress_and_end_the_training():
    from mercer.machine.callbacks import observed

    X, Y = tagged()
    heard = []
    with observed(lambda record, snapshot: heard.append(record) or len(heard) >= 3), warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        machine = StructuredSVM(Chain(), tol=1e-9).fit(X, Y)
    assert machine.stopped_ == "interrupted"
    assert len(heard) == 3


def test_machines_are_cloned_pickled_and_searched_over():
    X, Y = tagged(n=24)
    machine = StructuredSVM(Chain(), C=0.1, tol=0.05)
    twin = clone(machine)
    assert isinstance(twin.model, Chain)
    assert twin.get_params()["C"] == 0.1
    fitted = pickle.loads(pickle.dumps(machine.fit(X, Y)))
    np.testing.assert_array_equal(fitted.coef_, machine.coef_)
    search = GridSearchCV(machine, {"C": [0.01, 0.1]}, cv=2)
    search.fit(X, np.array(Y, dtype=object))
    assert 0.0 < search.best_score_ <= 1.0


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"model": "chain"}, "'model' parameter"),
        ({"C": -1.0}, "'C' parameter"),
        ({"solver": "newton"}, "'solver' parameter"),
        ({"rescaling": "both"}, "'rescaling' parameter"),
    ],
)
def test_parameters_that_make_no_sense_are_named(parameters, text):
    X, Y = tagged(n=3)
    with pytest.raises(ValueError, match=text):
        StructuredSVM(**{"model": Chain(), **parameters}).fit(X, Y)


def test_no_data_and_weights_of_the_wrong_shape_are_clear_errors():
    X, Y = tagged(n=3)
    with pytest.raises(InvalidInput, match="nothing to learn from"):
        StructuredSVM(Chain()).fit([], [])
    with pytest.raises(InvalidInput, match="weights must be 3 numbers"):
        StructuredSVM(Chain()).fit(X, Y, sample_weight=[1.0])
    with pytest.raises(InvalidInput, match="at least two different classes"):
        StructuredSVM(Multiclass()).fit(np.ones((3, 2)), [1, 1, 1])


@pytest.mark.parametrize("kind", [StructuredSVM, StructuredPerceptron])
def test_scikit_learn_is_told_that_inputs_are_no_table(kind):
    """Its checks feed tables of points; those that need none are run by tests/test_estimator_checks.py."""
    tags = get_tags(kind(Chain()))
    assert not tags.input_tags.two_d_array
    assert tags.target_tags.required
