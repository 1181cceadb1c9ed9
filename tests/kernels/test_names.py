"""scikit-learn's names and gamma mean here what they mean there."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC

from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.kernels import Constant, Custom, Gaussian, Linear, Polynomial, Precomputed, as_kernel, gamma_value

random = np.random.default_rng(0)
X = np.abs(random.standard_normal((30, 5))) * (random.random((30, 5)) < 0.7)
y = (random.random(30) < 0.5).astype(int)


@pytest.mark.parametrize("gamma", [0.3, None])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "name", ["linear", "poly", "polynomial", "rbf", "sigmoid", "laplacian", "cosine", "chi2", "additive_chi2"]
)
def test_names_agree_with_pairwise_kernels(name: str, sparse: bool, gamma: float | None) -> None:
    arguments = {} if name in ("linear", "cosine", "additive_chi2") else {"gamma": gamma}
    if name == "chi2" and gamma is None:
        arguments = {}
    if name in ("poly", "polynomial", "sigmoid"):
        arguments["coef0"] = 0.4
    if name in ("poly", "polynomial"):
        arguments["degree"] = 2
    expected = pairwise_kernels(X, X[:9], metric=name, **arguments)
    kernel = as_kernel(name, gamma=gamma, degree=2, coef0=0.4, X=X)
    points = sp.csr_matrix(X) if sparse else X
    np.testing.assert_allclose(kernel(points, points[:9]), expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("gamma", ["scale", "auto"])
@pytest.mark.parametrize("points", [X, sp.csr_matrix(X), sp.csr_array(X), X.astype(np.float32)], ids=str)
def test_gamma_is_computed_as_in_scikit_learn(points: object, gamma: str) -> None:
    fitted = SVC(gamma=gamma).fit(points, y)
    assert gamma_value(gamma, points) == pytest.approx(fitted._gamma, rel=1e-12)
    assert as_kernel("rbf", gamma=gamma, X=points).gamma == pytest.approx(fitted._gamma, rel=1e-12)  # type: ignore[attr-defined]


def test_constant_data_have_gamma_one() -> None:
    assert gamma_value("scale", np.full((3, 2), 7.0)) == 1.0
    assert gamma_value("scale", sp.csr_array((3, 2))) == 1.0


def test_gamma_zero_makes_every_kernel_constant() -> None:
    for name in ("rbf", "laplacian", "chi2", "poly", "sigmoid"):
        kernel = as_kernel(name, gamma=0.0, degree=2, coef0=0.5)
        expected = {"poly": 0.25, "sigmoid": np.tanh(0.5)}.get(name, 1.0)
        assert kernel == Constant(float(expected))
    assert as_kernel("poly", gamma=1.0, degree=0) == Constant(1.0)


def test_kernels_and_callables_pass() -> None:
    kernel = Gaussian(2.0)
    assert as_kernel(kernel) is kernel
    assert as_kernel("precomputed") == Precomputed()
    assert as_kernel("linear") == Linear()
    assert as_kernel("poly", gamma=1.0, degree=3.0, coef0=1) == Polynomial(degree=3, offset=1.0)  # type: ignore[arg-type]
    called = as_kernel(lambda A, B: A @ B.T)
    assert isinstance(called, Custom)
    np.testing.assert_allclose(called(X), X @ X.T)


@pytest.mark.parametrize("arguments, message", [
    ({"kernel": "gaussian"}, "kernel='gaussian' is not known"),
    ({"kernel": 3}, "kernel=3 is not known"),
    ({"kernel": Gaussian}, r"give an instance: Gaussian\(\)"),
    ({"kernel": "rbf"}, "give X, or gamma as a number"),
    ({"kernel": "rbf", "gamma": "best"}, "gamma='best' is not known"),
    ({"kernel": "rbf", "gamma": -1.0}, "gamma must not be negative"),
    ({"kernel": "poly", "gamma": 1.0, "degree": 2.5}, "degree must be a whole number"),
    ({"kernel": "poly", "gamma": 1.0, "coef0": np.nan}, "coef0 must be finite"),
])  # fmt: skip
def test_what_is_not_known_is_refused_by_name(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        as_kernel(**arguments)  # type: ignore[arg-type]


def test_a_polynomial_with_negative_coef0_is_refused() -> None:
    with pytest.raises(NotPositiveDefinite, match="coef0 must not be negative"):
        as_kernel("poly", gamma=1.0, coef0=-1.0)
