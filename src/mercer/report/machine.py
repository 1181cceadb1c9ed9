"""What a report reads from a fitted machine, whatever its kind.

A machine may be one of mercer's, a search around one (`best_estimator_`), or a pipeline that ends in one.  Predictions
are those of the whole; coefficients, certificate and history are those of the machine inside.
"""

from copy import copy
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone, is_outlier_detector, is_regressor

from mercer.errors import InvalidInput
from mercer.problems.certificate import relative_gap

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Task = Literal["binary", "classes", "regression", "outliers", "ranks", "order"]

INNER = ("best_estimator_", "machine_", "best_machine_", "estimator_")
AT_BOUND = 1.0 - 1e-6  # a coefficient of this share of its bound counts as bounded
GROUPS = ("not a support vector", "unbounded support vector", "bounded support vector")


def inner(machine: Any) -> Any:
    """The machine inside a search or a pipeline."""
    found = _nested(machine)
    return machine if found is None else inner(found)


def inside(machine: Any, X: Any) -> tuple[Any, Any]:
    """The machine inside a search or a pipeline, and the points as it sees them."""
    found = _nested(machine)
    if found is None:
        return machine, X
    return inside(found, machine[:-1].transform(X) if len(getattr(machine, "steps", ())) > 1 else X)


def _nested(machine: Any) -> Any:
    """The machine that a search or a pipeline ends in, None where it is neither."""
    for name in INNER:
        found = vars(machine).get(name) if hasattr(machine, "__dict__") else None
        if found is not None and hasattr(found, "predict"):
            return found
    return machine.steps[-1][1] if hasattr(machine, "steps") else None


def task_of(machine: Any) -> Task:
    """What the machine is for."""
    if is_outlier_detector(machine):
        return "outliers"
    if is_regressor(machine):
        return "regression"
    if hasattr(inner(machine), "utility"):
        return "ranks" if hasattr(machine, "classes_") else "order"
    classes = getattr(machine, "classes_", None)
    if classes is None:
        raise InvalidInput("machine must be a fitted classifier, regressor or one-class machine: call fit first")
    return "binary" if len(classes) == 2 else "classes"


def outputs(machine: Any, X: Any) -> Array:
    """Real outputs at X: (n,) for regression, two classes and one-class machines, (n, k) for k classes."""
    if task_of(machine) == "regression":
        return np.asarray(machine.predict(X), dtype=np.float64)
    if hasattr(machine, "decision_function"):
        return np.asarray(machine.decision_function(X), dtype=np.float64)
    p = np.asarray(machine.predict_proba(X), dtype=np.float64)
    return p[:, 1] if p.shape[1] == 2 else p


def utility_of(machine: Any, X: Any) -> Array:
    """Values (n,) of the latent function behind ranks or an order."""
    found, points = inside(machine, X)
    return np.asarray(found.utility(points), dtype=np.float64)


def restated(machine: Any) -> Any:
    """An untrained machine with the parameters that were chosen, so that training it again chooses nothing."""
    new = clone(inner(machine))
    chosen = inner(machine)
    given = new.get_params(deep=False)
    fixed = {"C": getattr(chosen, "C_", None), "kernel": getattr(chosen, "kernel_", None)}
    if given.get("kernel") == "precomputed" or _is_foreign(given.get("kernel")):
        fixed.pop("kernel")
    new.set_params(**{name: value for name, value in fixed.items() if value is not None and name in given})
    if machine is not chosen and hasattr(machine, "steps"):
        whole = clone(machine)
        whole.steps[-1] = (whole.steps[-1][0], new)
        return whole
    return new


def _is_foreign(kernel: Any) -> bool:
    from mercer.kernels import Kernel

    return callable(kernel) and not isinstance(kernel, Kernel)


# The expansion ---------------------------------------------------------------------------------------------------


def has_bounds(machine: Any) -> bool:
    """Whether the machine is a support vector machine, whose coefficients live in a box."""
    return hasattr(inner(machine), "support_") and hasattr(inner(machine), "n_support_")


def coefficients(machine: Any) -> tuple[Index, Array]:
    """Training points that carry coefficients (m,), and their coefficients (m, rows)."""
    found = inner(machine)
    dual = found.dual_coef_
    dual = np.asarray(dual.toarray() if sp.issparse(dual) else dual, dtype=np.float64)
    if has_bounds(found):
        return np.asarray(found.support_, dtype=np.intp), np.atleast_2d(dual).T
    dual = dual[:, None] if dual.ndim == 1 else dual
    return np.asarray(getattr(found, "support_", np.arange(len(dual))), dtype=np.intp), dual


def bounds(machine: Any, y: Any, sample_weight: Any = None) -> Array:
    """Upper bound (m, rows) of the size of every coefficient of a support vector machine.

    C w_i for SVC and SVR, w_i / rho for the scaled coefficients of NuSVC, w_i for the one-class machine.
    """
    found = inner(machine)
    support, c = coefficients(found)
    w = np.ones(len(support)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)[support]
    classes = getattr(found, "classes_", None)
    if classes is None:
        return np.broadcast_to((w * float(getattr(found, "C", 1.0)))[:, None], c.shape)
    codes = np.searchsorted(classes, np.asarray(y)[support])
    w = w * np.asarray(found.class_weight_, dtype=np.float64)[codes]
    if hasattr(found, "nu"):
        return np.asarray(w[:, None] / _scales(found, codes, c.shape[1]))
    return np.broadcast_to((w * float(found.C))[:, None], c.shape)


def _scales(machine: Any, codes: Index, rows: int) -> Array:
    """The rho of the machine behind every coefficient (m, rows), in the layout of scikit-learn's `dual_coef_`."""
    solutions = machine.solution_ if isinstance(machine.solution_, list) else [machine.solution_]
    rho = np.array([float(s.multipliers["rho"]) for s in solutions])
    rho = np.where(rho > 0.0, rho, 1.0)
    k = len(machine.classes_)
    if rows == len(rho):  # two classes, or one machine per class
        return np.broadcast_to(rho, (len(codes), rows))
    first, second = np.triu_indices(k, 1)
    of_pair = np.ones((k, k))
    of_pair[first, second] = of_pair[second, first] = rho
    others = np.arange(rows)[None, :] + (np.arange(rows)[None, :] >= codes[:, None])
    return np.asarray(of_pair[codes[:, None], others])


def groups(machine: Any, y: Any, n: int, sample_weight: Any = None) -> Index:
    """Group (n,) of every training point: 0 no support vector, 1 unbounded, 2 at the bound in some machine."""
    support, c = coefficients(machine)
    at_bound = (np.abs(c) >= AT_BOUND * bounds(machine, y, sample_weight)).any(axis=1)
    group = np.zeros(n, dtype=np.intp)
    group[support] = np.where(at_bound, 2, np.where((c != 0.0).any(axis=1), 1, 0))
    return group


def binary_margins(machine: Any, X: Any, y: Any) -> Array:
    """Margin (n,) of every point: y f(x) for two classes, the smallest over the binary machines a point is part of."""
    found = inner(machine)
    codes = np.searchsorted(found.classes_, np.asarray(y))
    k = len(found.classes_)
    if k == 2:
        return np.asarray(np.where(codes == 1, 1.0, -1.0) * outputs(machine, X))
    found, points = inside(machine, X)
    if getattr(found, "multiclass", "ovr") != "ovo":
        values = outputs(found, points)
        return np.asarray(np.min(np.where(np.arange(k) == codes[:, None], values, -values), axis=1))
    paired = copy(found)
    paired.decision_function_shape = "ovo"  # the values of the pairs, not their votes
    first, second = np.triu_indices(k, 1)
    signs = np.where(codes[:, None] == first, 1.0, np.where(codes[:, None] == second, -1.0, np.nan))
    return np.asarray(np.nanmin(signs * outputs(paired, points), axis=1))


# The certificate -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Certified:
    """How far from the optimum a machine is: primal and dual value, their difference, what stopped the solver."""

    primal: float
    dual: float
    gap: float
    relative: float
    stopped: str
    solver: str
    iterations: int
    seconds: float
    machines: int


def solutions_of(machine: Any) -> list[Any]:
    """The solutions behind a machine; none where it was read from a file."""
    found = getattr(inner(machine), "solution_", None)
    return [] if found is None else list(found) if isinstance(found, list) else [found]


def certified(machine: Any) -> Certified | None:
    """The certificate of a machine, None where it has none."""
    found = inner(machine)
    if getattr(found, "objective_", None) is None:
        return None
    solutions = solutions_of(found)
    primal, dual, gap = float(found.objective_), float(found.dual_objective_), float(found.gap_)
    return Certified(
        primal,
        dual,
        gap,
        float("nan") if np.isnan(gap) else relative_gap(primal, dual, gap),
        str(getattr(found, "stopped_", "")),
        str(getattr(found, "solver_", None) or (solutions[0].solver if solutions else "")),
        int(np.sum(getattr(found, "n_iter_", 0))),
        float(sum(s.seconds for s in solutions)),
        max(1, len(solutions)),
    )
