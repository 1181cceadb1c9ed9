"""Decoding is that of the loss at any size of the outputs: machines on unscaled features answer in thousands."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.linear_model import Perceptron

from mercer import losses
from mercer.multiclass import OutputCode, decoders
from mercer.multiclass.codes import make_code

FALLING = [losses.Hinge(), losses.SquaredHinge(), losses.Square(), losses.Logistic(), losses.Exponential()]
FALLING += [losses.Perceptron(), losses.SquaredEpsilonInsensitive(0.1)]
EVERY = [
    *FALLING,
    losses.Huber(),
    losses.Absolute(),
    losses.EpsilonInsensitive(0.1),
    losses.Quantile(0.3),
    losses.Expectile(0.3),
]


@pytest.mark.parametrize("loss", FALLING, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("size", [1.0, 600.0, 3e4, 1e6])
def test_one_versus_all_is_the_largest_output_however_large(loss, size):
    # All outputs positive and distinct: the true side of a class is flat for some losses, its rivals' are not.
    f = size * (1.0 + np.random.default_rng(0).permuted(np.tile(np.arange(5.0), (40, 1)), axis=1))
    charges = decoders.loss_based(make_code("ova", 5), f, loss)
    assert np.isfinite(charges).all()
    assert np.array_equal(np.argmin(charges, axis=1), np.argmax(f, axis=1))


@pytest.mark.parametrize("loss", EVERY, ids=lambda loss: type(loss).__name__)
def test_every_loss_adds_up_over_every_code(loss):
    random = np.random.default_rng(1)
    for name in ("ova", "ava", "sparse"):
        M = make_code(name, 4, 0)
        f = 3.0 * random.normal(size=(5, M.shape[1]))
        by_hand = [[sum(float(loss.value(1.0, m * v)) for m, v in zip(row, x)) for row in M] for x in f]
        assert decoders.loss_based(M, f, loss) == pytest.approx(np.array(by_hand), rel=1e-12)


def test_large_exponential_charges_keep_their_order_and_count_idle_machines():
    M = np.array([[1, 0, -1], [-1, 1, 0], [0, -1, 1]])
    f = np.array([[900.0, -700.0, 650.0], [5000.0, 5001.0, 4999.0], [0.5, -0.2, 0.1]])
    charges = decoders.loss_based(M, f, losses.Exponential())
    for row, values in zip(charges, f):
        # Logarithms of the sums, by their largest terms.
        terms = -M * values
        logs = terms.max(axis=1) + np.log(np.exp(terms - terms.max(axis=1, keepdims=True)).sum(axis=1))
        assert np.array_equal(np.argsort(row), np.argsort(logs))
    assert charges[2] == pytest.approx(np.exp(-M * f[2]).sum(axis=1))


def test_a_perceptron_on_raw_features_is_decoded_by_its_largest_output():
    X, y = load_wine(return_X_y=True)
    machine = OutputCode(Perceptron(random_state=0)).fit(100 * X, y)
    values = machine.outputs(100 * X)
    assert np.abs(values).max() > 1e6
    assert np.array_equal(machine.predict(100 * X), values.argmax(axis=1))
