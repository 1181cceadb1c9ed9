"""The advisor: which method, what it will take and why, as one measured function of the situation.

The decision trees of Schoelkopf and Smola 2002 (figure 10.1) and of Hamers 2004 (section 1.2.2) end in a method for
every case (`mercer.planning.literature` has them as printed).  Their thresholds are those of their years' machines;
here each method that can take the problem has a model of its time and memory, and the quickest that fits is the answer.
With n points of d features, m = (share of support vectors) n, p columns of a thin factor, Ck = C k(x, x):

    decomposition     n m (d + G) sqrt(max(1, Ck)) / VALUES            kernel rows; any problem but general equalities
    interior point    ROUNDS n^3 / 3 / FLOPS                           the matrix; many digits, huge C, basis functions
                      ROUNDS (n p^2 / FLOPS + n POINT)                 a thin factor: linear kernels, approximations
    linear dual       max(PASSES, Ck n / p) n p / VALUES               the factor alone
    cholesky          n^3 / 3 / FLOPS                                  least squares; woodbury n d^2 / FLOPS
    conjugate grad.   PRODUCTS n^2 (d + G) / VALUES                    least squares whose matrix does not fit
    online            n terms (d + G) / VALUES                         streams

The constants were read off timings on two cores at a relative gap of 1e-3 (`python -m benchmarks.advisor --tuning`):
400 to 8000 points, Gaussian, linear dense and sparse, hinge, squared hinge and tube.  What the trees recommend between
decomposition and the interior point method (chunking, working sets, pairs, the Lagrangian method) took 1.6 to 10 times
as long as decomposition there and is no leaf here; the pairs of Keerthi are, for those who want the smallest memory.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.errors import InvalidInput
from mercer.planning import literature
from mercer.problems import HardMargin, Problem
from mercer.resources import budget, show
from mercer.solvers.quadratic import interior_point

VALUES = 2e9  # kernel values times features a second
FLOPS = 2e10  # multiplications a second of a factorisation
POINT = 3e-7  # seconds that a round of the interior point method takes for a point, whatever its features
FUNCTION = 20  # G: what the elementwise function of a kernel costs, in features
ROUNDS = 15  # of the interior point method
PASSES = 30  # of coordinate ascent over the points, at least
PRODUCTS = 60  # of conjugate gradients
ROW_BYTES = 4  # of a kernel value that decomposition keeps
SMALL = 1500  # points up to which the interior point method takes a second or two on one core
# C k(x, x) beyond which pair steps are not tried on few points.  Chosen; measured at 1e6 on 1,000 overlapping points:
# the interior point method took 4 s, the decomposition had a gap of 0.4 after 20 s.
HUGE = 1e5
DIRECT = 3e10  # n p^2 up to which the interior point method takes less than a minute, whatever C does to the others
DIGITS = 20.0  # times as long as to 1e-3 that pair steps take to the eight digits of the interior point method


@dataclass(frozen=True)
class Situation(literature.Situation):
    """What the choice depends on, beyond what the printed tables ask.

    d, entries : features of a point, and how many of them are stored (None: all).
    factor : columns of a thin factor that stands for the matrix, None where there is none.
    cost : C k(x, x); hard : whether it is infinite; bounded : whether pair steps are bounded by the user.
    squares : least squares, a linear system instead of a quadratic program.
    terms : of a machine on a stream.
    """

    d: int = 1
    entries: float | None = None
    factor: int | None = None
    cost: float = 1.0
    hard: bool = False
    bounded: bool = False
    basis: bool = False
    squares: bool = False
    terms: int = 10_000

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d < 1:
            raise InvalidInput(f"d must be at least 1, got {self.d}")

    @classmethod
    def of(cls, problem: Any, **wishes: Any) -> "Situation":
        """Read all that a problem knows off it; `wishes` add the rest."""
        program = problem.program() if isinstance(problem, Problem) else problem
        gram: Any = program.gram
        X = getattr(gram, "X", None)
        factor = gram.factor() if hasattr(gram, "factor") else None
        points = factor if factor is not None else X
        facts: dict[str, Any] = {"cost": _largest(program), "hard": isinstance(problem, HardMargin)}
        if points is not None and hasattr(points, "shape"):
            facts["d"] = max(1, int(points.shape[1]))
            facts["entries"] = points.nnz / max(1, points.shape[0]) if sp.issparse(points) else None
        if factor is not None:
            facts["factor"] = int(factor.shape[1])
        facts["basis"] = getattr(problem, "basis", None) is not None
        base = literature.Situation.of(problem)
        return cls(**(vars(base) | facts | wishes))

    @property
    def width(self) -> float:
        """Numbers that a product with a point takes."""
        return float(self.d if self.entries is None else self.entries)


@dataclass(frozen=True)
class Advice:
    """A method by the name of its solver, what it is expected to take, and why; print it."""

    method: str
    seconds: float
    memory: int
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.method} (about {self.seconds:.2g} s, {show(self.memory)}): " + "; ".join(self.reasons)


def advise(task: Situation, *, memory: int | str | None = None, cores: int = 2) -> Advice:
    """The quickest method that fits in `memory`, for a machine of so many cores."""
    have, speed = budget(memory), max(1, cores) / 2.0
    if task.stream:
        return _online(task, speed)
    if task.squares:
        return _least_squares(task, have, speed)
    matrix = interior_point.memory_needed(task.n)
    size = f"the matrix of n = {task.n} takes {show(matrix)} of {show(have)}"
    if task.basis:
        return _interior(task, matrix, speed, "basis functions are equality rows")
    if task.factor is not None:
        return _thin(task, have, speed)
    few = task.n <= SMALL and matrix <= have and not task.indefinite
    if few and task.hard:
        return _interior(task, matrix, speed, "margins may be tiny, which is no matter to a second-order method")
    if few and not task.bounded and task.cost >= HUGE:
        return _interior(task, matrix, speed, f"few points and C k(x, x) of {task.cost:.1g}: a second-order method")
    pairs = decomposition_seconds(task) / speed
    if task.precise and matrix <= have and not task.indefinite and interior_seconds(task.n) / speed < DIGITS * pairs:
        return _interior(task, matrix, speed, f"many digits are wanted, and {size}")
    if task.compact and matrix > have:
        m = max(1, min(task.n, have // (16 * task.n)))
        seconds = (task.n * m * (task.width + FUNCTION) / VALUES + _thin_seconds(task.n, m)) / speed
        reasons = (size, f"a compact expansion is wanted: {m} landmarks, approximation=Nystrom({m})")
        return Advice("low rank", seconds, 8 * task.n * m + 8 * m * m, reasons)
    if task.smallest and task.equalities == 1 and not (task.squared or task.penalised):
        rows = 4 * 8 * task.n
        return Advice(
            "keerthi", 3.0 * pairs, rows, ("the smallest memory is wanted: two rows of the matrix at a time",)
        )
    held = max(1, _rows_held(task, have))
    return Advice("decomposition", pairs, held, ("working sets take the rows of the kernel matrix they need",))


def decomposition_seconds(task: Situation) -> float:
    """On two cores, to a relative gap of 1e-3."""
    function = 0 if task.linear else FUNCTION
    support = max(1.0, task.support * task.n)
    return task.n * support * (task.width + function) * math.sqrt(max(1.0, min(task.cost, HUGE))) / VALUES


def interior_seconds(n: int) -> float:
    """Of the interior point method on a matrix."""
    return ROUNDS * n**3 / 3.0 / FLOPS


def _thin_seconds(n: int, p: int) -> float:
    return ROUNDS * (n * float(p) ** 2 / FLOPS + n * POINT)


def _interior(task: Situation, matrix: int, speed: float, reason: str) -> Advice:
    return Advice("interior_point", interior_seconds(task.n) / speed, matrix, (reason,))


def _thin(task: Situation, have: int, speed: float) -> Advice:
    """Where a factor (n, p) stands for the matrix; memory is what is held beside it."""
    p = task.factor or 1
    needed = 8 * (3 * task.n * p + 2 * p * p)  # the factor scaled, its product form, and the p x p system
    dense = task.entries is None
    times: dict[str, float] = {}
    if needed <= have and not task.indefinite:
        times["interior_point"] = _thin_seconds(task.n, p)
    sure = task.hard or task.cost >= HUGE or (dense and task.n * float(p) ** 2 <= DIRECT)
    if "interior_point" not in times or not sure:
        if task.equalities <= 1 and dense:
            times["linear_dual"] = max(PASSES, task.cost * task.n / p) * task.n * p / VALUES
        if not dense or not times:
            times["decomposition"] = decomposition_seconds(task)
    best = min(times, key=lambda name: times[name])
    reason = {
        "interior_point": "few enough, whatever C",
        "linear_dual": "coordinate ascent takes n p operations in a pass",
        "decomposition": "working sets take the rows of the kernel matrix they need",
    }[best]
    memory = {"interior_point": needed, "linear_dual": 8 * (6 * task.n + 2 * p)}.get(best, _rows_held(task, have))
    return Advice(best, times[best] / speed, memory, (f"{p} features of {task.n} points: {reason}",))


def _rows_held(task: Situation, have: int) -> int:
    """Bytes of the kernel rows that decomposition would like to keep, within the budget."""
    return int(min(have, ROW_BYTES * task.n * task.support * task.n))


def _online(task: Situation, speed: float) -> Advice:
    terms = min(task.n, task.terms)
    seconds = task.n * terms * (task.width + FUNCTION) / VALUES / speed
    reasons = ("data arrive as a stream, or the target drifts: each point is seen once",)
    return Advice("online", seconds, int(8 * terms * (task.width + 256)), reasons)


def _least_squares(task: Situation, have: int, speed: float) -> Advice:
    """(K + ridge I) c = y."""
    n, square = task.n, 8 * task.n**2
    if task.linear and task.d < n:
        seconds = (n * float(task.d) ** 2 + task.d**3 / 3.0) / FLOPS / speed
        reason = f"a linear kernel has rank {task.d}: solve in the features"
        return Advice("woodbury", seconds, 8 * (n * task.d + task.d**2), (reason,))
    size = f"the matrix takes {show(square)} of {show(have)}"
    direct, products = n**3 / 3.0 / FLOPS, PRODUCTS * n * float(n) * (task.width + FUNCTION) / VALUES
    if square <= have and direct <= products:
        return Advice("cholesky", direct / speed, square, (size, f"{n**3 / 3.0:.2g} multiplications"))
    reasons = (size, "its values are computed again in each product")
    return Advice("block_conjugate_gradient", products / speed, 8 * 6 * n, reasons)


def _largest(program: Any) -> float:
    """C k(x, x): the largest finite bound of a variable times the mean of the diagonal."""
    largest = max(float(program.upper.max(initial=0.0)), -float(program.lower.min(initial=0.0)))
    if not math.isfinite(largest):
        bounds = np.maximum(np.abs(program.lower), np.abs(program.upper))
        largest = float(bounds.max(where=np.isfinite(bounds), initial=0.0))
    return largest * float(np.abs(program.gram.diagonal()).mean())


def asks_for_pairs(problem: Problem) -> bool:
    """Whether pair steps on the matrix suit a problem of any size: it allows errors, at a cost that is not huge."""
    return not isinstance(problem, HardMargin) and _largest(problem.program()) < HUGE
