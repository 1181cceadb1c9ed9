"""Kernels, approximations and losses as parameters: nested names, and values that never change."""

import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import (
    LSSVC,
    SVC,
    CrammerSingerSVC,
    Gaussian,
    Laplacian,
    Linear,
    Nystrom,
    OutputCode,
    Polynomial,
    RandomFourier,
    TunedSVC,
    losses,
)
from mercer.errors import InvalidInput
from tests.kernels.catalogue import NUMERIC

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.where(X[:, 0] + np.sin(3 * X[:, 1]) > 0, "yes", "no")

ALGEBRA = 2.0 * Gaussian(sigma=1.5) + Linear() * Laplacian(sigma=0.5)


@pytest.mark.parametrize("kernel", NUMERIC, ids=repr)
def test_the_parameters_of_a_kernel_build_it_again(kernel) -> None:
    assert type(kernel)(**kernel.get_params(deep=False)) == kernel
    deep = kernel.get_params()
    assert kernel.with_parameters(**deep) == kernel
    assert {name: deep[name] for name in kernel.parameters} == kernel.parameters
    assert clone(kernel) == kernel


def test_parts_of_kernels_are_named_in_every_depth() -> None:
    deep = ALGEBRA.get_params()
    assert deep["left__factor"] == 2.0
    assert deep["left__kernel"] == Gaussian(sigma=1.5)
    assert deep["left__kernel__sigma"] == 1.5
    assert deep["right__right__sigma"] == 0.5
    assert set(ALGEBRA.get_params(deep=False)) == {"left", "right"}
    changed = ALGEBRA.with_parameters(left__kernel__sigma=3.0, left__factor=4.0, right__right__sigma=0.25)
    assert changed == 4.0 * Gaussian(sigma=3.0) + Linear() * Laplacian(sigma=0.25)


def test_a_part_may_be_replaced_and_changed_at_once() -> None:
    assert ALGEBRA.with_parameters(right=Gaussian(sigma=1.0), right__sigma=7.0).right == Gaussian(sigma=7.0)
    with pytest.raises(InvalidInput, match=r"Sum has no parameter 'sigma'; it has .*left__kernel__sigma"):
        ALGEBRA.with_parameters(sigma=1.0)
    with pytest.raises(InvalidInput, match="Gaussian has no parameter 'width'"):
        Gaussian(sigma=1.0).with_parameters(width=1.0)


@pytest.mark.parametrize("value", [ALGEBRA, Gaussian(sigma=1.0), Nystrom(50), losses.Huber(threshold=0.5)], ids=repr)
def test_values_refuse_to_change_and_say_what_to_do(value) -> None:
    before, key = repr(value), hash(value)
    assert value.set_params() is value
    name = next(iter(value.get_params(deep=False)))
    with pytest.raises(InvalidInput, match=rf"with_parameters\({name}=1"):
        value.set_params(**{name: 1})
    assert (repr(value), hash(value)) == (before, key)
    assert clone(value) == value
    assert pickle.loads(pickle.dumps(value)) == value


def test_a_foreign_estimator_cannot_lose_a_change_of_a_kernel_in_silence() -> None:
    class Foreign(BaseEstimator):
        def __init__(self, kernel=None) -> None:
            self.kernel = kernel

    holder = Foreign(Gaussian(sigma=1.0))
    assert holder.get_params()["kernel__sigma"] == 1.0
    with pytest.raises(InvalidInput, match="does not change"):
        holder.set_params(kernel__sigma=2.0)
    assert holder.set_params(kernel=Gaussian(sigma=2.0)).kernel == Gaussian(sigma=2.0)


@pytest.mark.parametrize("machine", [SVC, LSSVC, CrammerSingerSVC, TunedSVC])
def test_setting_a_nested_parameter_replaces_the_kernel_and_leaves_the_old_one_alone(machine) -> None:
    kernel = Gaussian(sigma=1.0)
    key, estimator = hash(kernel), machine(kernel=kernel)
    assert estimator.get_params()["kernel__sigma"] == 1.0
    copy = clone(estimator)
    assert repr(copy) == repr(estimator)
    assert copy.set_params(kernel__sigma=3.0) is copy
    assert copy.kernel == Gaussian(sigma=3.0)
    assert estimator.kernel is kernel
    assert kernel == Gaussian(sigma=1.0)
    assert hash(kernel) == key
    assert estimator.set_params(kernel=ALGEBRA, kernel__left__factor=9.0).kernel.left.factor == 9.0


def test_approximations_and_losses_are_set_by_their_parts_too() -> None:
    machine = SVC(approximation=Nystrom(10, seed=1)).set_params(approximation__m=20, C=3.0)
    assert (machine.approximation, machine.C) == (Nystrom(20, seed=1), 3.0)
    coded = OutputCode(SVC(kernel=Gaussian(sigma=1.0)), loss=losses.Huber(threshold=0.5))
    coded.set_params(loss__threshold=0.25, base__kernel__sigma=2.0, base__C=5.0)
    assert coded.loss == losses.Huber(threshold=0.25)
    assert (coded.base.kernel, coded.base.C) == (Gaussian(sigma=2.0), 5.0)


def test_unknown_nested_names_are_errors_that_say_what_there_is() -> None:
    with pytest.raises(InvalidInput, match=r"kernel='rbf' is a name and has no parameters: give an object"):
        SVC().set_params(kernel__sigma=1.0)
    with pytest.raises(InvalidInput, match=r"Gaussian has no parameter 'width'; it has \['sigma'\]"):
        SVC(kernel=Gaussian(sigma=1.0)).set_params(kernel__width=1.0)
    with pytest.raises(ValueError, match="Invalid parameter 'price'"):
        SVC().set_params(price=1.0)


@pytest.mark.parametrize(
    ("machine", "grid", "built"),
    [
        (
            SVC(kernel=Gaussian(sigma=1.0)),
            {"svc__kernel__sigma": [0.3, 1.0, 3.0]},
            [SVC(kernel=Gaussian(sigma=sigma)) for sigma in (0.3, 1.0, 3.0)],
        ),
        (
            SVC(kernel=2.0 * Gaussian(sigma=1.0) + Linear()),
            {"svc__kernel__left__kernel__sigma": [0.1, 3.0], "svc__C": [1.0]},
            [SVC(kernel=2.0 * Gaussian(sigma=sigma) + Linear()) for sigma in (0.1, 3.0)],
        ),
        (
            SVC(kernel=Linear() * Polynomial(degree=2)),
            {"svc__kernel__right__degree": [1, 3]},
            [SVC(kernel=Linear() * Polynomial(degree=degree)) for degree in (1, 3)],
        ),
        (
            SVC(approximation=RandomFourier(4, seed=0)),
            {"svc__approximation__m": [4, 40]},
            [SVC(approximation=RandomFourier(m, seed=0)) for m in (4, 40)],
        ),
    ],
    ids=["width", "part of a sum", "part of a product", "number of features"],
)
def test_a_search_over_nested_parameters_scores_each_as_a_machine_built_with_it(machine, grid, built) -> None:
    given = repr(machine)
    found = GridSearchCV(make_pipeline(StandardScaler(), machine), grid, cv=3).fit(X, Y)
    expected = [cross_val_score(make_pipeline(StandardScaler(), each), X, Y, cv=3).mean() for each in built]
    assert found.cv_results_["mean_test_score"].tolist() == expected
    assert len(set(expected)) > 1
    assert repr(machine) == given
