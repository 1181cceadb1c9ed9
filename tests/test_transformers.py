"""Standardise and KernelFeatures as steps of a pipeline: their numbers, their names, their place in a search."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import decomposition
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import (
    LSSVR,
    FixedSize,
    Gaussian,
    IncompleteCholesky,
    KernelFeatures,
    KernelPCA,
    Nystrom,
    OrthogonalFourier,
    Polynomial,
    Precomputed,
    RandomFourier,
    ReducedBasis,
    Standardise,
)
from mercer.errors import InvalidInput

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 4)) * [1.0, 2.0, 3.0, 4.0] + 5.0
Y = np.sin(X[:, 0]) + X[:, 1]
NEW = RNG.normal(size=(20, 4)) + 5.0
FRAME = pd.DataFrame(X, columns=["height", "width", "length", "mass"])
KERNEL = Gaussian(sigma=3.0)

APPROXIMATIONS = [
    Nystrom(30, landmarks="kmeans++"),
    Nystrom(30, rank=8),
    FixedSize(12),
    IncompleteCholesky(30),
    KernelPCA(80, rank=5),
    ReducedBasis(9, ridge="identity"),
    RandomFourier(20),
    OrthogonalFourier(20),
]
pytestmark = pytest.mark.filterwarnings("ignore::mercer.errors.Advice")


@parametrize_with_checks(
    [
        KernelFeatures(approximation=RandomFourier(10)),
        KernelFeatures(approximation=KernelPCA(50, rank=3)),
    ]
)
def test_scikit_learn_estimator_check(estimator, check) -> None:
    check(estimator)


# Standardise ----------------------------------------------------------------------------------------------------


def test_a_fitted_standardisation_is_the_learnt_one_and_that_of_scikit_learn() -> None:
    fitted, theirs = Standardise().fit(FRAME), StandardScaler().fit(FRAME)
    np.testing.assert_allclose(fitted.transform(FRAME), theirs.transform(FRAME), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(fitted.transform(FRAME), Standardise.learn(X)(X))
    np.testing.assert_array_equal(Standardise.learn(X).transform(NEW), fitted(NEW))
    assert fitted.get_feature_names_out().tolist() == list(FRAME.columns)


def test_sparse_points_stay_sparse() -> None:
    points = sp.random_array((40, 6), density=0.4, rng=np.random.default_rng(0)).tocsr()
    transformed = Standardise().fit_transform(points)
    assert sp.issparse(transformed)
    expected = StandardScaler(with_mean=False).fit_transform(points).toarray()
    np.testing.assert_allclose(transformed.toarray(), expected, rtol=1e-12)


# KernelFeatures -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("approximation", APPROXIMATIONS, ids=repr)
def test_features_are_those_of_the_map_inside_the_machines(approximation) -> None:
    features = KernelFeatures(KERNEL, approximation=approximation).fit(X)
    machine = LSSVR(C=7.0, kernel=KERNEL, approximation=approximation, bias="none").fit(X, Y)
    Z = features.transform(X)
    assert Z.shape == (80, machine.feature_map_.dimension)
    linear = Ridge(alpha=1.0 / 7.0, fit_intercept=False, solver="cholesky").fit(Z, Y)
    np.testing.assert_allclose(linear.predict(features.transform(NEW)), machine.predict(NEW), rtol=1e-6, atol=1e-8)


def test_products_of_features_are_the_kernel_where_all_points_are_landmarks() -> None:
    for kernel in (KERNEL, Polynomial(degree=2)):
        Z = KernelFeatures(kernel, approximation=Nystrom(80)).fit(X).transform(X)
        np.testing.assert_allclose(Z @ Z.T, kernel(X), rtol=1e-7, atol=1e-7 * kernel(X).max())


def test_principal_components_are_those_of_scikit_learn() -> None:
    ours = KernelFeatures(KERNEL, approximation=KernelPCA(80, rank=4)).fit(X)
    theirs = decomposition.KernelPCA(4, kernel="rbf", gamma=0.5 / 9.0, eigen_solver="dense").fit(X)
    for points in (X, NEW):
        a, b = ours.transform(points), theirs.transform(points)
        signs = np.sign(np.sum(ours.transform(X) * theirs.transform(X), axis=0))
        np.testing.assert_allclose(a * signs, b, atol=1e-9)


@pytest.mark.parametrize("approximation", [Nystrom(30), RandomFourier(20), KernelPCA(30, rank=4)], ids=repr)
def test_sparse_and_dense_points_have_the_same_features(approximation) -> None:
    features = KernelFeatures(KERNEL, approximation=approximation).fit(X)
    sparse = KernelFeatures(KERNEL, approximation=approximation).fit(sp.csr_array(X))
    expected = features.transform(NEW)
    for made, points in ((features, sp.csr_array(NEW)), (sparse, NEW), (sparse, sp.csr_array(NEW))):
        np.testing.assert_allclose(made.transform(points), expected, atol=1e-9)


def test_frames_come_out_with_names_when_asked_for() -> None:
    features = KernelFeatures(approximation=Nystrom(6)).set_output(transform="pandas")
    frame = make_pipeline(Standardise().set_output(transform="pandas"), features).fit_transform(FRAME)
    assert list(frame.columns) == [f"kernelfeatures{i}" for i in range(6)]
    assert list(features.feature_names_in_) == list(FRAME.columns)
    assert frame.index.equals(FRAME.index)
    np.testing.assert_array_equal(features.get_feature_names_out(), frame.columns)


def test_a_pipeline_searches_width_and_number_of_landmarks() -> None:
    labels = np.where(X[:, 1] > 5.0, "long", "short")
    features = KernelFeatures(Gaussian(sigma=1.0), approximation=Nystrom(5))
    steps = make_pipeline(Standardise(), features, RidgeClassifier())
    grid = {"kernelfeatures__kernel__sigma": [0.01, 2.0], "kernelfeatures__approximation__m": [2, 40]}
    found = GridSearchCV(steps, grid, cv=3).fit(X, labels)
    assert found.best_params_ == {"kernelfeatures__kernel__sigma": 2.0, "kernelfeatures__approximation__m": 40}
    assert found.best_score_ > 0.8
    assert features.kernel == Gaussian(sigma=1.0)


def test_landmarks_chosen_by_the_targets_see_them_and_others_do_not() -> None:
    labels = np.where(X[:, 1] > 5.0, "long", "short")
    by_targets = Nystrom(8, landmarks="orthogonal_least_squares")
    by_classes = KernelFeatures(KERNEL, approximation=by_targets).fit(X, labels)
    columns = np.where(labels[:, None] == ["long", "short"], 1.0, -1.0)
    expected = by_targets.feature_map(KERNEL, X, y=columns, seed=0)
    np.testing.assert_array_equal(by_classes.feature_map_.points, expected.points)
    with pytest.raises(InvalidInput, match="y"):
        KernelFeatures(KERNEL, approximation=by_targets).fit(X)
    with_targets, without = (KernelFeatures(KERNEL, approximation=Nystrom(8)).fit(X, y) for y in (labels, None))
    np.testing.assert_array_equal(with_targets.feature_map_.points, without.feature_map_.points)


def test_seeds_make_fits_repeatable_and_different() -> None:
    def landmarks(**options):
        return KernelFeatures(KERNEL, approximation=Nystrom(8), **options).fit(X).feature_map_.points

    np.testing.assert_array_equal(landmarks(), landmarks(random_state=0))
    assert not np.array_equal(landmarks(), landmarks(random_state=1))
    state = np.random.RandomState(3)
    assert not np.array_equal(landmarks(random_state=state), landmarks(random_state=state))


def test_kernels_without_points_are_refused() -> None:
    with pytest.raises(ValueError, match="kernel"):
        KernelFeatures("precomputed").fit(X)
    with pytest.raises(InvalidInput, match="landmarks are points"):
        KernelFeatures(Precomputed()).fit(X[:, :4])
