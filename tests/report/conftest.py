"""Small fitted machines of every kind, and pictures that open no window."""

from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import pytest

from mercer import data
from mercer.kernels import Gaussian
from mercer.least_squares import LSSVC, LSSVR
from mercer.svm import SVC, SVR, NuSVC, OneClassSVM


@pytest.fixture(autouse=True)
def no_window() -> Iterator[None]:
    import matplotlib.pyplot as plt

    mpl.use("Agg")
    yield
    plt.close("all")


def standardised(name: str) -> tuple[Any, Any]:
    found = data.sample(name)
    return data.Standardise.learn(found.X)(found.X), found.y


@pytest.fixture(scope="session")
def heart() -> tuple[Any, Any]:
    return standardised("heart-statlog")


@pytest.fixture(scope="session")
def iris() -> tuple[Any, Any]:
    return standardised("iris")


@pytest.fixture(scope="session")
def yacht() -> tuple[Any, Any]:
    return standardised("yacht")


@pytest.fixture(scope="session")
def svc(heart: Any) -> SVC:
    return SVC(C=1.0, kernel=Gaussian(sigma=3.0), tol=1e-5).fit(*heart)


@pytest.fixture(scope="session")
def lssvc(heart: Any) -> LSSVC:
    return LSSVC(C="loo", kernel=Gaussian(sigma=3.0)).fit(*heart)


@pytest.fixture(scope="session")
def machines(heart: Any, iris: Any, yacht: Any, svc: SVC, lssvc: LSSVC) -> dict[str, tuple[Any, Any, Any]]:
    """Name -> machine, points, targets."""
    regression = {"kernel": Gaussian(sigma=2.0)}
    return {
        "binary": (svc, *heart),
        "least squares": (lssvc, *heart),
        "pairs": (SVC(C=3.0, tol=1e-5).fit(*iris), *iris),
        "one against the rest": (SVC(C=3.0, multiclass="ovr", tol=1e-5).fit(*iris), *iris),
        "nu": (NuSVC(nu=0.2, tol=1e-6).fit(*iris), *iris),
        "least squares, classes": (LSSVC(C=10.0).fit(*iris), *iris),
        "regression": (SVR(C=100.0, epsilon=0.5, tol=1e-5, **regression).fit(*yacht), *yacht),
        "least squares, regression": (LSSVR(C="loo", **regression).fit(*yacht), *yacht),
        "one class": (OneClassSVM(nu=0.1).fit(heart[0]), heart[0], None),
    }
