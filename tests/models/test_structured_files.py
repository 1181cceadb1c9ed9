"""Structured machines survive a model file; models of one's own need their class, and say so."""

import numpy as np
import pytest

from mercer.errors import InvalidInput, ModelFileError
from mercer.models import load, save
from mercer.structured import Chain, Found, Multiclass, StructuredModel, StructuredPerceptron, StructuredSVM


def sequences():
    random = np.random.default_rng(0)
    X = [random.standard_normal((T, 3)) for T in (3, 1, 0, 4, 5)]
    return X, [np.array(["a", "b", "c"])[np.argmax(x, axis=1)] for x in X]


@pytest.mark.parametrize(
    "machine",
    [StructuredSVM(Chain(), C=0.5), StructuredSVM(Chain(loss="zero-one")), StructuredPerceptron(Chain(), max_iter=2)],
)
def test_a_machine_comes_back_as_it_was(machine, tmp_path):
    X, Y = sequences()
    machine.fit(X, Y)
    save(machine, tmp_path / "chain.mercer", solution=True)
    found = load(tmp_path / "chain.mercer")
    np.testing.assert_array_equal(found.coef_, machine.coef_)
    for one, other in zip(found.predict(X), machine.predict(X)):
        np.testing.assert_array_equal(one, other)
    assert found.score(X, Y) == machine.score(X, Y)
    for name in ("gap_", "objective_", "stopped_", "n_iter_", "solver_", "plan_"):
        np.testing.assert_equal(getattr(found, name), getattr(machine, name))
    assert type(found.model_) is type(machine.model_)


def test_training_goes_on_from_a_file(tmp_path):
    X, Y = sequences()
    machine = StructuredSVM(Chain(), solver="one-slack", warm_start=True).fit(X, Y)
    save(machine, tmp_path / "chain.mercer", solution=True)
    assert load(tmp_path / "chain.mercer").fit(X, Y).n_iter_ == 0


class Halves(Multiclass):
    """A model of one's own: classes, with half the loss."""

    name = "halves"

    def loss(self, y, other):
        return 0.5 * super().loss(y, other)

    def examples(self, X, Y, rescaling):
        return StructuredModel.examples(self, list(X), list(Y), rescaling)

    def loss_augmented(self, w, x, y, rescaling):
        values = [self.value(w, x, y, z, rescaling) for z in range(len(self.labels))]
        return Found(int(np.argmax(values)))


class Unstated(Halves):
    """The same, without a state."""

    state = StructuredModel.state


def test_a_model_of_ones_own_needs_its_class(tmp_path):
    random = np.random.default_rng(0)
    X, y = random.standard_normal((20, 2)), random.integers(0, 3, 20)
    machine = StructuredSVM(Halves(), tol=0.05).fit(X, y)
    save(machine, tmp_path / "own.mercer")
    with pytest.raises(ModelFileError, match=r"'halves', which is not one of mercer's; hand its class over"):
        load(tmp_path / "own.mercer")
    found = load(tmp_path / "own.mercer", model=Halves)
    assert type(found.model_) is Halves
    assert found.predict(X) == machine.predict(X)
    with pytest.raises(InvalidInput, match="has no `state`"):
        save(StructuredSVM(Unstated(), tol=0.05).fit(X, y), tmp_path / "none.mercer")


def test_weights_of_the_wrong_number_are_refused(tmp_path):
    X, Y = sequences()
    machine = StructuredSVM(Chain()).fit(X, Y)
    machine.coef_ = machine.coef_[:-1]
    save(machine, tmp_path / "short.mercer")
    with pytest.raises(ModelFileError, match="coef"):
        load(tmp_path / "short.mercer")
