"""C and the kernel's parameters together, by descent on leave-one-out.

The criterion (see `mercer.selection.gradients`) is a smooth function of log C and log theta with exact derivatives.
The search has three stages, each handing its best point to the next:

1. *coarse*: on a sample of the points, a few common factors of theta, each with a whole path of C from one reduction;
2. *sample*: descent on the sample, which costs little and learns the curvature;
3. *full*: descent on all points (or on the largest sample allowed) from there, with that curvature, where a few
   steps are enough.

The descent is that of `mercer.solvers.trust_region`, on log J.  Everything that was evaluated is kept: the result
carries its whole surface.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.kernels import Kernel
from mercer.selection.families import Family
from mercer.selection.gradients import CriterionName, evaluate
from mercer.selection.leave_one_out import LeaveOneOut
from mercer.selection.regularisation_path import regularisation_path
from mercer.solvers.linear.bordered import Array
from mercer.solvers.monitor import SILENT, Monitor, listening
from mercer.solvers.trust_region import descend

Stage = Literal["coarse", "sample", "full"]

# Common factors of theta in the coarse stage, and values of C at each, for a kernel with k(x, x) = 1.
FACTORS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
COARSE_C = tuple(float(C) for C in np.geomspace(1e-3, 1e6, 28))
# No parameter is moved further than this from where a descent began (a factor of about 22,000).
REACH = 10.0


@dataclass(frozen=True)
class SurfacePoint:
    """One evaluation: parameters by name (C among them), the criterion, on how many points, in which stage."""

    parameters: dict[str, float]
    value: float
    points: int
    stage: Stage


@dataclass(frozen=True)
class Search:
    """What was chosen: the kernel, C, the criterion there, and every point evaluated.

    leave_one_out is that of all points, None where the last stage ran on a sample.
    """

    kernel: Kernel
    C: float
    value: float
    leave_one_out: LeaveOneOut | None
    surface: tuple[SurfacePoint, ...]
    criterion: CriterionName


@dataclass
class _Problem:
    """Criterion over x = (log theta, log C) (or log theta alone when C is given) on one set of points."""

    family: Family
    Y: Array
    weights: Array | None
    border: Array | None
    constant: float
    C: float | None
    criterion: CriterionName
    stage: Stage
    surface: list[SurfacePoint]
    monitor: Monitor
    best: tuple[float, LeaveOneOut] | None = None

    def split(self, x: Array) -> tuple[Array, float]:
        """Theta and C of x."""
        if self.C is not None:
            return np.exp(x), self.C
        return np.exp(x[:-1]), float(np.exp(x[-1]))

    @property
    def system(self) -> dict[str, Any]:
        """Weights, border and constant of the system behind leave-one-out."""
        return {"weights": self.weights, "border": self.border, "constant": self.constant}

    def record(self, theta: Array, C: float, value: float) -> None:
        """Add a point to the surface."""
        named = {name: float(t) for name, t in zip(self.family.names, theta)}
        self.surface.append(SurfacePoint(named | {"C": C}, value, len(self.Y), self.stage))

    def __call__(self, x: Array) -> tuple[float, Array]:
        """Log J and its gradient; infinity where the matrix is not positive definite to working precision."""
        theta, C = self.split(x)
        K = self.family.matrix(theta)
        try:
            poll = self.monitor.poll if self.monitor is not SILENT else None
            found = evaluate(K, self.Y, C, criterion=self.criterion, poll=poll, **self.system)
        except NotPositiveDefinite:
            self.record(theta, C, np.inf)
            return np.inf, np.zeros_like(x)
        self.record(theta, C, found.value)
        if self.best is None or found.value < self.best[0]:
            self.best = (found.value, found.leave_one_out)
        slopes = self.family.slopes(theta, K, found.by_matrix)
        gradient = slopes if self.C is not None else np.append(slopes, found.by_log_C)
        floor = max(found.value, np.finfo(float).tiny)
        return float(np.log(floor)), gradient / floor

    def coarse(self) -> Array:
        """The best x over common factors of theta and a path of C."""
        values = np.asarray(COARSE_C if self.C is None else (self.C,))
        best, chosen = np.inf, None
        for factor in FACTORS:
            theta = self.family.start * factor
            K = self.family.matrix(theta)
            scale = float(np.mean(np.diagonal(K))) if self.C is None else 1.0
            try:
                criterion: Literal["gcv", "loo"] = "gcv" if self.criterion == "gcv" else "loo"
                path = regularisation_path(
                    K, self.Y, values / scale, criterion=criterion, overwrite=True, **self.system
                )
                self.monitor.poll()
            except NotPositiveDefinite:
                continue
            # The smooth error rate is searched from the best squared error, which is no point of its surface.
            if self.criterion != "smooth":
                for C, value in zip(path.C, path.values):
                    self.record(theta, float(C), float(value))
            if path.values[path.index] < best:
                best = float(path.values[path.index])
                chosen = np.log(theta if self.C is not None else np.append(theta, path.best_C))
        if chosen is None:
            raise NotPositiveDefinite(
                "no width tried gave a matrix that is positive definite to working precision: lower C, or let "
                "leave-one-out choose it too (C='loo')."
            )
        return chosen


def search(
    family: Family,
    Y: ArrayLike,
    *,
    C: float | None = None,
    weights: ArrayLike | None = None,
    border: ArrayLike | None = None,
    constant: float = 0.0,
    criterion: CriterionName = "loo",
    sample: int = 800,
    largest: int = 6000,
    steps: int = 30,
    full_steps: int = 8,
    seed: int = 0,
    monitor: Monitor | None = None,
) -> Search:
    """Choose theta, and C unless it is given, for targets Y (n,) or (n, k); the rest as in `leave_one_out`.

    sample: points of the first two stages; largest: most points of the last one, whose memory is five matrices;
    steps and full_steps: evaluations allowed to the descent on the sample and after it; seed: which points are drawn.
    Past the monitor's time limit a descent makes no further step.  Ctrl-C ends the last stage with its best point;
    before that there is none, and it is raised.
    """
    targets = np.asarray(Y, dtype=np.float64)
    targets = targets[:, None] if targets.ndim == 1 else targets
    n = len(targets)
    w = None if weights is None else np.asarray(weights, dtype=np.float64)
    P = None if border is None else np.asarray(border, dtype=np.float64).reshape(n, -1)
    usable = np.arange(n) if w is None else np.flatnonzero(w > 0)
    if len(usable) <= 1 + (0 if P is None else P.shape[1]):
        raise InvalidInput(f"leave-one-out cannot choose parameters from {len(usable)} points: give them as numbers.")
    surface: list[SurfacePoint] = []
    watch = listening(monitor)

    def problem(index: NDArray[np.intp] | None, stage: Stage) -> _Problem:
        if index is None:
            return _Problem(family, targets, w, P, constant, C, criterion, stage, surface, watch)
        part = family.part(index)
        rows = [None if values is None else values[index] for values in (w, P)]
        return _Problem(part, targets[index], rows[0], rows[1], constant, C, criterion, stage, surface, watch)

    def drawn(size: int) -> NDArray[np.intp] | None:
        if len(usable) <= size:
            return None
        return np.sort(np.random.default_rng(seed).choice(usable, size, replace=False))

    whole = len(usable) <= 1.5 * sample
    last = problem(None if whole else drawn(sample), "coarse")
    x = last.coarse()
    last.stage = "full" if whole else "sample"
    x, curvature = descend(last, x, reach=REACH, steps=steps, monitor=watch, last=whole)
    if not whole:
        last = problem(drawn(largest), "full")
        x, _ = descend(last, x, curvature=curvature, reach=REACH, steps=full_steps, tolerance=1e-3, monitor=watch)
    if last.best is None:
        raise NotPositiveDefinite("no parameters tried gave a positive definite matrix: give C and the kernel's own.")
    theta, chosen = last.split(x)
    everywhere = last.best[1] if len(last.Y) == n else None
    return Search(family.kernel(theta), chosen, last.best[0], everywhere, tuple(surface), criterion)
