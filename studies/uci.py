"""The UCI sets of Hamers 2004 (appendix C): files, hyperparameters, and how they are read and split.

A module that several studies share; it measures nothing of its own.
"""

import csv
import io
import lzma
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.io.arff import loadarff
from sklearn.datasets import load_svmlight_file

Array = NDArray[np.float64]

# name: (file, gamma linear, gamma RBF, sigma^2 RBF) of appendix C.
SETS = {
    "acr": ("australian.svm.xz", 6.74e-3, 9.04e-2, 12.2),
    "bld": ("bupa.svm.xz", 1.08e-1, 1.44, 21.2),
    "ger": ("german.arff.xz", 48.9, 4.29, 16.6),
    "hea": ("heart-statlog.svm.xz", 6.74e-3, 1.12, 5.06),
    "ion": ("ionosphere.svm.xz", 6.74e-3, 2.24, 15.3),
    "pid": ("pima.svm.xz", 542.0, 1.13, 5.68),
    "snr": ("sonar.svm.xz", 6.74e-3, 50.8, 25.4),
    "ttt": ("tic-tac-toe.arff.xz", 6.28e-3, 94.6, 9.96),
    "wbc": ("breast-cancer-wisconsin.svm.xz", 58.8, 0.188, 32.2),
    "adu": ("adult.train.csv.xz", 2.52, 1.11, 30.0),
}


def read(path: Path) -> tuple[Array, Array]:
    """Inputs (n, d) with ordinal codes for categories, labels -1 / +1; rows with missing values are dropped."""
    name = path.name
    if name.endswith(".csv.xz"):
        return _read_adult(path)
    if name.endswith(".arff.xz"):
        with lzma.open(path, "rt") as file:
            rows, meta = loadarff(io.StringIO(file.read()))
        columns = []
        for attribute in meta.names():
            kind, values = meta[attribute]
            column = rows[attribute]
            if kind == "nominal":
                codes = {value: code for code, value in enumerate(values)}
                column = [codes[entry.decode()] for entry in column]
            columns.append(np.asarray(column, dtype=np.float64))
        data = np.column_stack(columns)
        return data[:, :-1], np.where(data[:, -1] > 0, 1.0, -1.0)
    with lzma.open(path, "rb") as file:
        X, y = load_svmlight_file(file, zero_based=False)
    X = X.toarray()
    whole = ~np.isnan(X).any(axis=1)
    X, y = X[whole], y[whole]
    return X[:, X.std(axis=0) > 0], y


def _read_adult(path: Path) -> tuple[Array, Array]:
    with lzma.open(path, "rt") as file:
        rows = [[cell.strip() for cell in row] for row in csv.reader(file) if len(row) == 15]
    rows = [row for row in rows if "?" not in row]
    columns = []
    for cells in zip(*rows, strict=True):
        try:
            columns.append(np.array(cells, dtype=np.float64))
        except ValueError:
            columns.append(np.unique(cells, return_inverse=True)[1].astype(np.float64))
    data = np.column_stack(columns)
    return data[:, :-1], np.where(data[:, -1] > 0, 1.0, -1.0)


def training_part(
    X: Array, y: Array, seed: int, size: int | None = None, scaling: str = "whole set"
) -> tuple[Array, Array]:
    """Two thirds of the rows (or `size` of them), standardised by the moments of the set, of the part, or by none."""
    order = np.random.default_rng(seed).permutation(len(y))[: size or round(2 * len(y) / 3)]
    model = {"whole set": X, "training part": X[order], "raw": X[:0]}[scaling]
    X, y = X[order], y[order]
    if not len(model):
        return X, y
    deviation = model.std(axis=0)
    return (X - model.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0), y


def synthetic() -> tuple[Array, Array]:
    """Sixty points of five features in two classes, for the smoke run."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=60) > 0, 1.0, -1.0)
