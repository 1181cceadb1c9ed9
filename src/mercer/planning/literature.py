"""Two decision tables of the literature as functions that give their reasons, methods that mercer lacks included.

`recommend` is the table of Schoelkopf and Smola 2002 (figure 10.1 and sections 10.3 to 10.6) for support-vector
problems; `recommend_least_squares` the decision tree of Hamers 2004 (section 1.2.2) for kernel least squares, once with
the printed thresholds (a machine with 512 MB) and once with those that follow from the memory and the speed at hand.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from mercer.errors import InvalidInput
from mercer.problems.base import Problem
from mercer.problems.program import QuadraticProgram
from mercer.resources import budget, show
from mercer.solvers.quadratic import interior_point

Method = Literal[
    "online",
    "interior point",
    "low rank",
    "chunking",
    "working set",
    "pairwise",
    "low-rank interior point",
    "lagrangian",
    "gradient descent",
    "woodbury",
    "cholesky",
    "conjugate gradients",
    "recomputed rows",
    "sparse",
    "ensemble",
]

FEW_FEATURES = 0.1  # a linear kernel counts as low rank when d is below this share of n
PRECISE_LIMIT = 10_000  # points up to which one factorisation of the whole matrix is a matter of seconds
DIRECT_OPERATIONS = 1e12  # multiplications of a direct solve that are still cheap: n^3 / 3, n about 14,000
APPROXIMATION_LIMIT = 1_000_000  # points beyond which one machine on all data gives way to several
SUPPORT = 0.2  # share of points expected to become support vectors


@dataclass(frozen=True)
class Recommendation:
    """A method, why it was chosen, and what it takes; `printed` is the literature's choice where that differs."""

    method: Method
    reasons: tuple[str, ...]
    memory: int
    """Bytes the method is expected to hold."""
    section: str = ""
    printed: Method | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.method} ({show(self.memory)}): " + "; ".join(self.reasons)


@dataclass(frozen=True)
class Situation:
    """What the choice of a support-vector solver depends on."""

    n: int
    features: int | None = None
    linear: bool = False
    equalities: int = 1
    squared: bool = False
    penalised: bool = False
    stream: bool = False
    compact: bool = False
    precise: bool = False
    smallest: bool = False
    other_regulariser: bool = False
    support: float = SUPPORT
    indefinite: bool = False

    def __post_init__(self) -> None:
        if self.n < 1:
            raise InvalidInput(f"n must be at least 1, got {self.n}")
        if not 0.0 < self.support <= 1.0:
            raise InvalidInput(f"support must be a share in (0, 1], got {self.support}")

    @classmethod
    def of(cls, problem: Problem | QuadraticProgram, **wishes: Any) -> "Situation":
        """Read sizes, kernel, loss and equalities off a problem; `wishes` add what the problem cannot know."""
        program = problem if isinstance(problem, QuadraticProgram) else problem.program()
        kernel, X = getattr(program.gram, "kernel", None), getattr(program.gram, "X", None)
        linear = type(kernel).__name__ == "Linear"
        facts: dict[str, Any] = {
            "n": program.n,
            "features": int(X.shape[1]) if linear and X is not None else None,
            "linear": linear,
            "equalities": int(program.d.size),
            "squared": bool(np.isinf(program.upper - program.lower).any()),
            "penalised": program.constant != 0.0,
            "indefinite": kernel is not None and not getattr(kernel, "positive_definite", True),
        }
        return cls(**(facts | wishes))


def memory_estimate(n: int, method: Method, *, m: int | None = None, itemsize: int = 8) -> int:
    """Bytes that `method` holds for n points, with m basis functions, support vectors or features where it has them."""
    m = n if m is None else min(m, n)
    square = itemsize * n * n
    return {
        "interior point": interior_point.memory_needed(n),
        "cholesky": square,
        "conjugate gradients": square,
        "chunking": itemsize * m * m + itemsize * n,
        "low rank": itemsize * (n * m + m * m),
        "low-rank interior point": itemsize * (n * m + m * m),
        "woodbury": itemsize * (n * m + m * m),
        "lagrangian": square,
        "ensemble": itemsize * m * m,
    }.get(method, 6 * itemsize * n)


def recommend(task: Situation | Problem | QuadraticProgram, *, memory: int | str | None = None) -> Recommendation:
    """Method for a support-vector problem under a memory budget, with the reasons in the order they were weighed."""
    task = task if isinstance(task, Situation) else Situation.of(task)
    have, n = budget(memory), task.n
    dense = interior_point.memory_needed(n)
    fits = dense <= have
    size = f"the matrix of n = {n} needs {show(dense)}, the budget is {show(have)}"
    if task.stream:
        return _answer(task, "online", "10.6.3", ["data arrive as a stream or the target drifts"])
    if task.other_regulariser:
        return _answer(task, "gradient descent", "10.6.1", ["the regulariser is not the norm of the kernel's space"])
    if task.indefinite:
        reasons = ["the kernel is not positive definite: pairs of variables still reach a stationary point"]
        return _answer(task, "pairwise", "10.5", reasons)
    if task.linear and task.features is not None and task.features < FEW_FEATURES * n and not (fits and task.precise):
        reasons = [f"a linear kernel in {task.features} features, far fewer than the {n} points, has that rank"]
        return _answer(task, "low-rank interior point", "10.3.4", reasons, m=task.features)
    if fits and (n <= PRECISE_LIMIT and (task.precise or task.equalities > 1)):
        why = "high precision is wanted" if task.precise else f"{task.equalities} equality constraints"
        return _answer(task, "interior point", "10.3", [size, why])
    if task.squared and task.penalised and fits:
        return _answer(task, "lagrangian", "10.6.2", ["squared loss with a penalised bias", size])
    if not fits and task.compact:
        reasons = [size, "a compact expansion is wanted"]
        return _answer(task, "low rank", "10.2", reasons, m=_basis(n, have))
    return _subset_selection(task, have, size, fits)


def _subset_selection(task: Situation, have: int, size: str, fits: bool) -> Recommendation:
    """Rows 4a to 4c and 8 of the table: the expansion may be as long as it likes."""
    support = max(1, int(task.support * task.n))
    reasons = [size, "the size of the expansion does not matter"]
    if task.smallest and task.equalities <= 1:
        return _answer(task, "pairwise", "10.5", [*reasons, "smallest memory, at most one equality constraint"])
    if task.equalities > 2:
        return _answer(task, "working set", "10.4.2", [*reasons, f"{task.equalities} equality constraints"])
    needed = memory_estimate(task.n, "chunking", m=support)
    text = f"the matrix of about {support} support vectors needs {show(needed)}"
    if not fits and needed <= have:
        return _answer(task, "chunking", "10.4.1", [*reasons, text + " and fits"], m=support)
    if not fits and have >= memory_estimate(task.n, "working set"):
        return _answer(task, "working set", "10.4.2", [*reasons, text + " and does not fit"])
    moderate = "moderate precision is enough" if fits else "only vectors of length n fit"
    return _answer(task, "pairwise", "10.5", [size, moderate])


def _answer(task: Situation, method: Method, section: str, reasons: list[str], m: int | None = None) -> Recommendation:
    where = f"Schoelkopf and Smola 2002, section {section}"
    return Recommendation(method, tuple(reasons), memory_estimate(task.n, method, m=m), where)


def _basis(n: int, have: int) -> int:
    """Basis functions whose n x m factor takes half of the budget."""
    return max(1, min(n, have // (16 * n)))


def recommend_least_squares(
    n: int,
    features: int,
    *,
    linear: bool = False,
    exact: bool = False,
    memory: int | str | None = None,
) -> Recommendation:
    """Method for (K + ridge I) c = y with n points; `exact` rules approximations out."""
    if n < 1 or features < 1:
        raise InvalidInput(f"n and features must be at least 1, got {n} and {features}")
    have, printed = budget(memory), _printed_least_squares(n, features, linear, exact)
    where = "Hamers 2004, section 1.2.2"

    def answer(method: Method, reasons: list[str], m: int | None = None) -> Recommendation:
        return Recommendation(method, tuple(reasons), memory_estimate(n, method, m=m), where, printed)

    square = memory_estimate(n, "cholesky")
    size = f"the matrix takes {show(square)} of {show(have)}"
    if linear and features < n:
        return answer("woodbury", [f"a linear kernel has rank {features}: solve in the features"], features)
    if square <= have and n**3 / 3 <= DIRECT_OPERATIONS:
        return answer("cholesky", [size, f"{n**3 / 3:.2g} multiplications for a direct solve"])
    if square <= have:
        return answer("conjugate gradients", [size, f"{n**3 / 3:.2g} multiplications are too many for a direct solve"])
    if features < 5:
        reasons = [size, f"in {features} dimensions a compactly supported kernel gives a sparse matrix"]
        return answer("sparse", reasons)
    if exact:
        return answer("recomputed rows", [size, "no approximation allowed: rows are computed again in each product"])
    if n <= APPROXIMATION_LIMIT:
        return answer("low rank", [size, "a low-rank stand-in fits"], _basis(n, have))
    return answer(
        "ensemble", [size, f"more than {APPROXIMATION_LIMIT} points: train several machines on parts"], 10_000
    )


def _printed_least_squares(n: int, features: int, linear: bool, exact: bool) -> Method:
    """The tree as printed, for 256 to 512 MB."""
    if linear:
        return "woodbury"
    if n < 1000:
        return "cholesky"
    if n <= 5000:
        return "conjugate gradients"
    if exact:
        return "recomputed rows"
    if features < 5:
        return "sparse"
    return "low rank" if n <= 50_000 else "ensemble"
