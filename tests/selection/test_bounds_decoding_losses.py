"""Bounds of coded classifiers for every loss that decodes: where two ends suffice, and where they do not."""

from itertools import product

import numpy as np
import pytest

from mercer import LSSVC, SVC, Gaussian, losses
from mercer.data import Standardise, sample
from mercer.multiclass import OutputCode
from mercer.selection.bounds import coded_leave_one_out, training_error

GOOD = [
    losses.Hinge(),
    losses.SquaredHinge(),
    losses.Perceptron(),
    losses.Logistic(),
    losses.Exponential(),
    losses.Square(),
    losses.Absolute(),
    losses.EpsilonInsensitive(0.3),
    losses.SquaredEpsilonInsensitive(0.3),
    losses.Huber(0.7),
]
BAD = [losses.Quantile(0.2), losses.ZeroOne()]


@pytest.mark.parametrize("loss", GOOD, ids=lambda loss: type(loss).__name__)
def test_no_value_between_the_ends_helps_a_rival_more_than_an_end(loss):
    random = np.random.default_rng(0)
    for own, rival in product((-1.0, 1.0), (-1.0, 0.0, 1.0)):
        ends = 3.0 * random.standard_normal((200, 2))
        inside = ends[:, :1] + np.linspace(0, 1, 41) * (ends[:, 1:] - ends[:, :1])
        gain = loss.value(1.0, rival * inside) - loss.value(1.0, own * inside)
        assert np.all(gain.min(axis=1) >= gain[:, [0, -1]].min(axis=1) - 1e-9)


def test_losses_for_which_it_is_not_so_are_named():
    arguments = ([[1.0], [-1.0]], [0, 1], np.zeros((2, 1)), np.zeros((2, 1)), np.ones(2))
    assert all(coded_leave_one_out(*arguments, loss=loss).holds for loss in GOOD)
    assert not any(coded_leave_one_out(*arguments, loss=loss).holds for loss in BAD)
    assert coded_leave_one_out(*arguments).holds
    # The zero-one loss is not convex, which decoding by signs does not ask for.
    assert not training_error([[1.0], [-1.0]], [0, 1], np.zeros((2, 1)), loss=losses.ZeroOne()).holds
    assert training_error([[1.0], [-1.0]], [0, 1], np.zeros((2, 1)), loss=losses.ZeroOne(), decoder="hamming").holds


@pytest.mark.filterwarnings("ignore::mercer.errors.Advice")
@pytest.mark.parametrize(
    "base", [LSSVC(kernel=Gaussian(3.0)), SVC(kernel=Gaussian(3.0))], ids=lambda b: type(b).__name__
)
@pytest.mark.parametrize("code", ["ova", "ava", "dense", "sparse"])
def test_training_errors_of_fitted_machines_stay_below_their_bound(base, code):
    data = sample("satimage", "train")
    X, y = Standardise.learn(data.X[:300])(data.X[:300]), data.y[:300]
    for decoder in ("loss", "hamming"):
        machine = OutputCode(base, code, decoder, random_state=0).fit(X, y)
        labels = np.searchsorted(machine.classes_, y)
        bound = training_error(machine.code_, labels, machine.outputs(X), loss=machine.loss_, decoder=decoder)
        assert bound.holds
        assert np.mean(machine.predict(X) != y) <= bound.value
