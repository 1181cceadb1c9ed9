"""What a user hands to a machine: the kernel by any of its names, points, targets and weights.

`kernel` may be a Kernel object, one of scikit-learn's names with `gamma`, `degree` and `coef0`, "precomputed", or any
function of two sets of points.  gamma = "scale" is 1 / (d Var X) with the variance over all entries of X, each row
counted by its weight; "auto" is 1 / d.

Weights mean what they say: weight m is m copies of the point, weight zero is leaving it out.  Sample weights and class
weights multiply; the product scales the box of the point's dual variable, whichever the machine.  Points of weight zero
are taken out before anything else looks at the data, so that they touch neither the width of the default kernel nor the
balance of the classes, and copies are merged (`mercer.machine.repeated_rows`).
"""

from numbers import Real
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import compute_class_weight
from sklearn.utils.validation import _check_sample_weight, _num_samples, check_consistent_length, validate_data

from mercer.errors import BudgetTooSmall, InvalidInput
from mercer.gram import is_symmetric
from mercer.kernels import Kernel, Precomputed, median_sigma
from mercer.parameters import Value
from mercer.resources import parse, show

Vector = NDArray[np.float64]
Kind = Literal["features", "objects", "function", "precomputed"]

ASYMMETRY = 1e-4  # a given matrix this close to its transpose is meant to be symmetric

NAMES = {"linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", "additive_chi2", "cosine", "precomputed"}
# Sparse data of no more than this many entries are trained on as dense ones: it is faster, and the fit is the same to
# the last digit as that of the dense data.
DENSE_ENTRIES = 1 << 20
LARGEST_BOUND = 1e20
# The form of points in scikit-learn's words.
FORM = {"dtype": np.float64, "order": "C", "accept_sparse": "csr", "accept_large_sparse": True}


class HoldsValues(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """An estimator some of whose parameters may be kernels, approximations or losses: values that have parameters.

    scikit-learn changes such a part in place.  A kernel does not change, and may be shared with other estimators; here
    the estimator replaces it by another one.  Parts that are estimators themselves are left to scikit-learn.
    """

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; `kernel__sigma` replaces the kernel by one with another sigma."""
        own = self.get_params(deep=False)
        nested: dict[str, dict[str, Any]] = {}
        for name in list(params):
            head, separator, tail = name.partition("__")
            part = params.get(head, own.get(head))
            if separator and isinstance(part, str):
                raise InvalidInput(f"{head}={part!r} is a name and has no parameters: give an object to set {name}")
            if separator and isinstance(part, Value):
                nested.setdefault(head, {})[tail] = params.pop(name)
        super().set_params(**params)
        for head, parts in nested.items():
            setattr(self, head, getattr(self, head).with_parameters(**parts))
        return self


class HasKernel(HoldsValues):
    """An estimator with a kernel between its points, or with their kernel matrix in the place of the points."""

    kernel: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        given = self.kernel == "precomputed" if isinstance(self.kernel, str) else isinstance(self.kernel, Precomputed)
        tags.input_tags.pairwise, tags.input_tags.sparse = given, not given
        return tags


def kind_of(kernel: Any, X: Any) -> Kind:
    """What a kernel works on: rows of features, arbitrary objects, whole sets (a plain function), or a given matrix."""
    if isinstance(kernel, Precomputed):
        return "precomputed"
    if isinstance(kernel, Kernel):
        numbers = sp.issparse(X) or (np.ndim(X) == 2 and np.asarray(X).dtype.kind in "fiub")
        return "objects" if kernel.objects and not numbers else "features"
    if callable(kernel):
        return "function"
    return "precomputed" if kernel == "precomputed" else "features"


def is_linear(kernel: Kernel | None) -> bool:
    """Whether k(x, z) = <x, z>, so that a machine has a weight vector."""
    profile = None if kernel is None else kernel.profile
    return profile is not None and profile.name == "linear" and profile.scale is None


def variance(X: Any, weights: NDArray[np.float64] | None) -> float:
    """Variance of all entries of X (n, d), dense or CSR; a row counts with its weight."""
    if not sp.issparse(X) and (weights is None or weights.min() == weights.max()):
        return float(X.var())
    w = np.ones(X.shape[0]) if weights is None else weights
    total = float(np.sum(w)) * int(X.shape[1])
    if not sp.issparse(X):
        mean = float(np.sum(w @ X)) / total
        return float(np.sum(w @ (X - mean) ** 2)) / total
    of_entry = np.repeat(w, np.diff(X.indptr))
    mean = float(np.dot(of_entry, X.data)) / total
    return float(np.dot(of_entry, X.data**2)) / total - mean**2


def gamma_of(gamma: Any, X: Any, weights: NDArray[np.float64] | None) -> float:
    """The number behind gamma = "scale", "auto" or a number."""
    if isinstance(gamma, Real):
        return float(gamma)
    if gamma == "auto":
        return 1.0 / int(X.shape[1])
    spread = float(X.var()) if weights is None and isinstance(X, np.ndarray) else variance(X, weights)
    if not np.isfinite(spread):
        raise InvalidInput(
            "The dual coefficients or intercepts are not finite, as the variance of X is not: X holds huge values; "
            "scale the features, for instance with StandardScaler"
        )
    return 1.0 / (int(X.shape[1]) * spread) if spread != 0.0 else 1.0


def with_widths(kernel: Kernel, X: Any, *, searched: bool = False) -> Kernel:
    """The kernel, where widths given by the rule "median" are read off X (n, d).

    Other rules, such as "loo", stay as they are where the machine searches for the width, and are refused elsewhere.
    """
    resolved = kernel
    for name, rule in kernel.placeholders.items():
        if rule == "median":
            resolved = resolved.with_parameters(**{name: median_sigma(X)})
        elif not searched:
            raise InvalidInput(f'{name}={rule!r} is not a rule of this machine; give a number, or "median"')
    return resolved


def evaluate_all(function: Any, X: Any, n: int, memory: int | str | None) -> NDArray[np.float64]:
    """The matrix (n, n) of a plain function on the training points, refused where it passes a stated budget."""
    if memory is not None and 8 * n * n > parse(memory):
        raise BudgetTooSmall(
            f"a plain function gives the kernel values of {n} points as one matrix of {show(8 * n * n)}, and "
            f"memory={memory!r} was given: raise memory, or wrap a function of two points in mercer.Custom"
        )
    return evaluate(function, X, X, n, n)


def symmetrised(K: NDArray[np.float64]) -> NDArray[np.float64]:
    """A given matrix (n, n) freed from rounding in its symmetry; one that is not symmetric is refused."""
    if is_symmetric(K):
        return K
    middle: NDArray[np.float64] = 0.5 * (K + K.T)
    if np.abs(K - middle).max() > ASYMMETRY * np.abs(middle).max():
        raise InvalidInput("the kernel matrix is not symmetric: k(x, z) and k(z, x) must be the same")
    return middle


def evaluate(function: Any, X: Any, Z: Any, rows: int, columns: int) -> NDArray[np.float64]:
    """Values (rows, columns) of a plain function of two sets of points, checked for their shape."""
    values = function(X, Z)
    if sp.issparse(values):
        values = values.toarray()
    matrix = np.ascontiguousarray(values, dtype=np.float64)
    if matrix.shape != (rows, columns):
        raise InvalidInput(
            f"the kernel function returned an array of shape {matrix.shape} for {rows} and {columns} points; "
            "it must return one value for every pair"
        )
    return matrix


def is_plain(values: Any, n: int | None = None) -> bool:
    """Whether these are points (n, d) of which scikit-learn's checks would change nothing, or n targets.

    On a few hundred points those checks take as long as the training.
    """
    if type(values) is not np.ndarray or values.size == 0:
        return False
    numbers = values.dtype.kind == "f"
    if n is None and not (values.ndim == 2 and values.dtype == np.float64 and values.flags.c_contiguous):
        return False
    if n is not None and (values.shape != (n,) or not (numbers or values.dtype.kind in "biuUS")):
        return False
    if not numbers:
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()))


def training_data(
    estimator: Any,
    kind: Kind,
    X: Any,
    y: Any = None,
    *,
    supervised: bool = True,
    numeric: bool = False,
    several: bool = False,
) -> tuple[Any, Any]:
    """X and y for `fit`: features as float64 (n, d), dense or CSR; objects as a list; a kernel matrix as (n, n).

    Machines without targets are not `supervised`; `numeric` targets are real numbers, `several` are (n, k).
    """
    wanted = {"y_numeric": numeric, "multi_output": several}
    if kind in ("objects", "function"):
        if supervised:
            y = validate_data(estimator, y=y, **wanted)
            check_consistent_length(X, y)
        if kind == "objects":
            X = list(X)
        if _num_samples(X) == 0:
            raise InvalidInput("X holds no points; at least one is needed")
        return X, y
    if kind == "precomputed" and sp.issparse(X):
        raise TypeError("Sparse precomputed kernels are not supported.")
    if is_plain(X) and (is_plain(y, len(X)) if supervised else y is None):
        estimator.n_features_in_ = X.shape[1]
        vars(estimator).pop("feature_names_in_", None)
    elif supervised:
        X, y = validate_data(estimator, X, y, **wanted, **FORM)
    else:
        X = validate_data(estimator, X, **FORM)
    if kind == "precomputed" and X.shape[0] != X.shape[1]:
        raise InvalidInput(f"Precomputed matrix must be a square matrix. Input is a {X.shape[0]}x{X.shape[1]} matrix.")
    if sp.issparse(X):
        X.sort_indices()
    return X, y


def prediction_data(estimator: Any, kind: Kind, X: Any, trained_on: int) -> Any:
    """X for prediction, in the same form."""
    if kind == "function":
        return X
    if kind == "objects":
        return list(X)
    known = vars(estimator)
    if not is_plain(X) or "feature_names_in_" in known or known.get("n_features_in_") != X.shape[1]:
        X = validate_data(estimator, X, **FORM, reset=False)
    if kind == "precomputed" and X.shape[1] != trained_on:
        raise InvalidInput(
            f"X.shape[1] = {X.shape[1]} should be equal to {trained_on}, the number of samples at training time"
        )
    return X


def refuse_flat(X: Any) -> None:
    """One point, or one feature, given as a vector to a machine that was trained on rows of features."""
    if getattr(X, "ndim", 2) == 1:
        raise InvalidInput(
            "Expected 2D array, got 1D array instead. Reshape your data: X.reshape(1, -1) for a single point, "
            "X.reshape(-1, 1) for a single feature"
        )


def working_form(X: Any) -> Any:
    """Small CSR data as a dense array, all else as it is."""
    if sp.issparse(X) and X.shape[0] * X.shape[1] <= DENSE_ENTRIES:
        return X.toarray()
    return X


def points_at(kind: Kind, X: Any, kept: NDArray[np.intp] | None) -> Any:
    """The points at `kept` (None: all) as machines train on them; of a given matrix their rows and columns."""
    if kind == "precomputed":
        return X if kept is None else X[np.ix_(kept, kept)]
    points = X if kept is None else take(X, kept)
    return working_form(points) if sp.issparse(points) and kind == "features" else points


def take(X: Any, index: NDArray[np.intp]) -> Any:
    """Points at `index` of an array, a CSR matrix or a sequence of objects."""
    if isinstance(X, np.ndarray) or sp.issparse(X):
        return X[index]
    return [X[i] for i in index]


def sample_weights(weights: Any, X: Any) -> Vector | None:
    """Weights (n,) as given by the caller, checked; None when all points count alike by default."""
    if weights is None:
        return None
    w: Vector = np.asarray(_check_sample_weight(weights, X, dtype=np.float64, allow_all_zero_weights=True))
    if w.size and w.max() <= 0.0:
        raise InvalidInput("Invalid input - all samples have zero or negative weights.")
    return w


def refuse_negative(weights: Vector) -> None:
    """A negative weight would reward mistakes, and the problem would have no minimum."""
    if weights.min() < 0.0:
        worst = int(weights.argmin())
        raise InvalidInput(
            f"sample_weight[{worst}] = {weights[worst]:g} is negative; use 0 to leave a point out of the training"
        )


def refuse_huge(C: float, weights: Vector | None) -> None:
    """Bounds C w of dual variables beyond `LARGEST_BOUND` leave no digit for the rest; infinity is another problem."""
    largest = C * (1.0 if weights is None else float(weights.max()))
    if np.isfinite(C) and not largest <= LARGEST_BOUND:
        raise InvalidInput(
            f"C times the largest weight is {largest:.3g}, beyond the {LARGEST_BOUND:g} that float64 can resolve: "
            "scale the weights to mean one and lower C (SVC takes C=inf, the hard margin)"
        )


def classes_of(y: NDArray[Any], weights: Vector | None) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Labels that occur with a positive weight, and the class 0..k-1 of every point (n,).

    The class of a point of weight zero may have no label left; its number then means nothing.
    """
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise InvalidInput(f"The number of classes has to be greater than one; got {len(classes)} class")
    if weights is not None and weights.min() <= 0.0:
        present = np.bincount(codes[weights > 0.0], minlength=len(classes)) > 0
        codes, classes = (np.cumsum(present) - 1)[codes], classes[present]
    return classes, np.asarray(codes, dtype=np.intp)


def class_weights(class_weight: Any, classes: NDArray[Any], y: NDArray[Any], weights: Vector | None) -> Vector:
    """Weight of each class (k,); "balanced" counts points by their sample weights."""
    return np.asarray(compute_class_weight(class_weight, classes=classes, y=y, sample_weight=weights))


def with_class_weights(
    class_weight: Any, classes: NDArray[Any], y: NDArray[Any], codes: NDArray[np.intp], weights: Vector | None
) -> tuple[Vector, Vector | None]:
    """Weight of each class (k,), and of every point (n,) its sample weight times that: None when all are one."""
    if class_weight is None:
        return np.ones(len(classes)), weights
    of_class = class_weights(class_weight, classes, y, weights)
    if weights is None:
        return of_class, None if (of_class == 1.0).all() else of_class[codes]
    return of_class, weights * of_class[codes]
