"""Machines on graphs and through kernels predict the same after they were saved and loaded."""

import numpy as np
import pytest

from mercer import Gaussian, Nystrom, models
from mercer.structured import Chain, GridModel, LabelPairs, StructuredSVM, TreeModel, WithKernel


def drawn(kind):
    random = np.random.default_rng(0)
    if kind is LabelPairs:
        return random.standard_normal((6, 2)), random.integers(2, size=(6, 3))
    if kind is GridModel:
        return [random.standard_normal((2, 2, 2)) for _ in range(6)], [
            random.integers(2, size=(2, 2)) for _ in range(6)
        ]
    X, Y = [random.standard_normal((3, 2)) for _ in range(6)], [random.permutation(list("abc")) for _ in range(6)]
    return (X if kind is Chain else [(x, [(0, 1), (0, 2)]) for x in X]), Y


@pytest.mark.parametrize("through_kernel", [False, True])
@pytest.mark.parametrize("kind", [TreeModel, GridModel, LabelPairs, Chain])
def test_predictions_survive_a_file(kind, through_kernel, tmp_path):
    X, Y = drawn(kind)
    model = WithKernel(kind(), Gaussian(sigma=1.0), Nystrom(4)) if through_kernel else kind()
    machine = StructuredSVM(model, C=0.5, tol=0.1).fit(X, Y)
    models.save(machine, tmp_path / "machine.mercer")
    again = models.load(tmp_path / "machine.mercer")
    for one, other in zip(machine.predict(X), again.predict(X), strict=True):
        np.testing.assert_array_equal(one, other)
    assert again.score(X, Y) == machine.score(X, Y)
