"""Numbers in LIBSVM's model files keep all bits of float64, whatever they are."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from mercer import SVR, Polynomial
from mercer.models import read_libsvm, write_libsvm

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
POSITIVE = st.floats(1e-8, 1e8)
d, n = 4, 3


def same_bits(found: object, expected: object) -> bool:
    """Equal in every bit; a zero has no sign in the file."""
    a, b = (np.asarray(values, dtype=np.float64) for values in (found, expected))
    return np.where(a == 0, 0.0, a).tobytes() == np.where(b == 0, 0.0, b).tobytes()


@pytest.fixture(scope="module")
def fitted() -> SVR:
    """A polynomial machine whose numbers the test replaces."""
    X = np.random.default_rng(0).normal(size=(n, d))
    return SVR(kernel="poly", degree=2, gamma=1.0, coef0=1.0, epsilon=0.0).fit(X, X[:, 0] ** 2)


@given(
    st.lists(FLOATS, min_size=n * d, max_size=n * d),
    st.lists(FLOATS, min_size=n, max_size=n),
    FLOATS,
    st.booleans(),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_coefficients_vectors_and_threshold_come_back_with_all_their_bits(
    tmp_path: Path, fitted: SVR, vectors: list[float], dual: list[float], intercept: float, packed: bool
) -> None:
    X = np.reshape(vectors, (n, d))
    fitted.support_vectors_ = sparse.csr_matrix(X) if packed else X
    fitted._dual_coef_, fitted._intercept_ = np.array([dual]), np.array([intercept])
    write_libsvm(fitted, tmp_path / "a.model")
    again = read_libsvm(tmp_path / "a.model", n_features=d)
    found = again.support_vectors_
    assert same_bits(found.toarray() if sparse.issparse(found) else found, X)
    assert same_bits(again.dual_coef_.toarray() if sparse.issparse(again.dual_coef_) else again.dual_coef_, [dual])
    assert same_bits(again.intercept_, [intercept])


@given(POSITIVE, POSITIVE)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_parameters_of_the_kernel_come_back_with_all_their_bits(
    tmp_path: Path, fitted: SVR, gamma: float, coef0: float
) -> None:
    fitted.kernel_ = Polynomial(degree=2, gamma=gamma, offset=coef0)
    write_libsvm(fitted, tmp_path / "a.model")
    again = read_libsvm(tmp_path / "a.model", n_features=d)
    assert same_bits([again.gamma, again.coef0], [gamma, coef0])
