"""Fitted machines of every kind on small data, for the tests of model files."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer import (
    LSSVC,
    LSSVR,
    SVC,
    SVR,
    Gaussian,
    Linear,
    LinearProgrammingSVC,
    LinearProgrammingSVR,
    Matern,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Polynomial,
)
from mercer.data import sample

METHODS = ("predict", "decision_function", "predict_proba", "score_samples")


def points(n: int = 90, d: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three overlapping clouds in d dimensions and their labels 0, 1, 2."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return random.normal(size=(n, d)) + y[:, None] * np.linspace(0.3, 1.2, d), y


def iris() -> tuple[np.ndarray, np.ndarray]:
    data = sample("iris")
    X = data.X.toarray() if sp.issparse(data.X) else data.X
    return X, data.y


def quietly(machine: Any, *data: Any, **options: Any) -> Any:
    """Fit without the advice that small data call forth."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return machine.fit(*data, **options)


MACHINES: dict[str, Callable[[], Any]] = {
    "SVC": lambda: SVC(C=2.0),
    "SVC of a linear kernel": lambda: SVC(kernel="linear"),
    "SVC with probability": lambda: SVC(probability=True, random_state=0),
    "SVC by one versus rest": lambda: SVC(multiclass="ovr", probability=True, random_state=0),
    "SVC with a hard margin": lambda: SVC(C=np.inf, gamma=5.0),
    "SVC of a composed kernel": lambda: SVC(kernel=0.5 * Gaussian(1.5) + Linear() ** 2),
    "SVC with class weights": lambda: SVC(class_weight={0: 2.0, 1: 1.0, 2: 0.5}, bias="penalised"),
    "SVC in float32": lambda: SVC(precision="float32"),
    "NuSVC": lambda: NuSVC(nu=0.3),
    "LinearProgrammingSVC": lambda: LinearProgrammingSVC(C=2.0),
    "LinearProgrammingSVR": lambda: LinearProgrammingSVR(norm="linf"),
    "SVR": lambda: SVR(epsilon=0.05),
    "SVR of one width per feature": lambda: SVR(kernel=Gaussian((0.5, 1.0, 2.0, 4.0))),
    "NuSVR": lambda: NuSVR(kernel="poly", degree=2, coef0=1.0),
    "OneClassSVM": lambda: OneClassSVM(nu=0.2),
    "OneClassSVM by the median rule": lambda: OneClassSVM(nu=0.2, kernel=Gaussian("median")),
    "LSSVC": lambda: LSSVC(C=3.0),
    "LSSVC of a linear kernel": lambda: LSSVC(kernel="linear", bias="penalised"),
    "LSSVC that chose": lambda: LSSVC(C="loo", kernel=Gaussian(sigma="loo")),
    "LSSVR": lambda: LSSVR(C=3.0, kernel=Matern(nu=1.5)),
    "LSSVR without bias": lambda: LSSVR(kernel=Polynomial(3), bias=False),
}
