"""Standardisation equals scikit-learn's StandardScaler and uses the training points only."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from mercer.data import Standardise
from mercer.errors import InvalidInput

RNG = np.random.default_rng(0)
TRAIN = np.column_stack([RNG.normal(1e6, 1e-2, 50), RNG.normal(0, 3, 50), np.full(50, 0.1), np.zeros(50)])
TEST = RNG.standard_normal((7, 4))


def test_dense_points_are_moved_and_scaled() -> None:
    learnt = Standardise.learn(TRAIN)
    reference = StandardScaler().fit(TRAIN)
    np.testing.assert_allclose(learnt(TRAIN), reference.transform(TRAIN), atol=1e-6)
    np.testing.assert_allclose(learnt(TEST)[:, 1:], reference.transform(TEST)[:, 1:], atol=1e-12)
    np.testing.assert_allclose(learnt(TRAIN)[:, 2:], 0, atol=1e-15)


def test_sparse_points_are_scaled_only() -> None:
    train = sparse.random(60, 8, 0.3, format="csr", random_state=1)
    learnt = Standardise.learn(train)
    reference = StandardScaler(with_mean=False).fit(train)
    np.testing.assert_allclose(learnt.scale_, reference.scale_, rtol=1e-12)
    assert (abs(learnt(train) - reference.transform(train)) > 1e-12).nnz == 0
    np.testing.assert_allclose(learnt(train.toarray()), learnt(train).toarray())


def test_mismatches_are_named() -> None:
    learnt = Standardise.learn(TRAIN)
    with pytest.raises(InvalidInput, match="has 3 features where 4"):
        learnt(TEST[:, :3])
    with pytest.raises(InvalidInput, match="X is sparse"):
        learnt(sparse.csr_matrix(TEST))
    with pytest.raises(InvalidInput, match="too many to standardise"):
        Standardise.learn(sparse.csr_matrix(([1.0], ([0], [10**12 - 1])), shape=(1, 10**12)))
