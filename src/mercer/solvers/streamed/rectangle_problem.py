"""What one rectangle problem is made of: rows, landmarks made orthonormal, weights, precision and budget."""

import time
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from mercer import resources as amounts
from mercer.arrays import Array
from mercer.errors import BudgetTooSmall, InvalidInput
from mercer.gram import KernelColumns
from mercer.kernels import Kernel
from mercer.solvers.iteration import Iteration
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution
from mercer.solvers.streamed.blocks import CheckedRows, as_source
from mercer.solvers.streamed.checkpointing import Checkpoint, fingerprint
from mercer.solvers.streamed.landmark_preconditioner import SamplePlan, choose_sample
from mercer.solvers.streamed.sweeps import Stopped, Sweeps
from mercer.solvers.streamed.whitening import Whitening, as_points, whiten

Precision = Literal["auto", "float32", "float64"]

# Up to about this many operations float64 costs no more than a few seconds, and is taken.
DOUBLE_UP_TO = 3e11
# Squared distance from the span of the others, relative, at which a landmark counts as dependent.
DEPENDENT_32 = 1e-6


class Setting:
    """One problem as all losses see it."""

    def __init__(
        self,
        source: Any,
        kernel: Kernel,
        landmarks: Any,
        *,
        y: ArrayLike | None,
        weights: ArrayLike | None,
        precision: Precision,
        memory: int | str | None,
        seed: int,
        monitor: Monitor,
    ) -> None:
        self.kernel, self.seed, self.monitor = kernel, seed, monitor
        self.began = time.perf_counter()
        self.landmarks = as_points(landmarks)
        self.checked = CheckedRows(as_source(source, y))
        d = self.checked.source.d
        if self.landmarks.shape[1] != d:
            raise InvalidInput(f"landmarks have {self.landmarks.shape[1]} features, the rows have {d}")
        self.n = self.checked.count()
        self.weights = _weights(weights, self.n)
        self.m = int(self.landmarks.shape[0])
        self.dtype = _precision(precision, self.n, self.m, d)
        self.budget = amounts.budget(memory)
        need = self.m**2 * (16 + 8 * (self.dtype == np.float32))
        if need > self.budget:
            raise BudgetTooSmall(
                f"{self.m} landmarks need {amounts.show(need)}, memory allows {amounts.show(self.budget)}: "
                "take fewer landmarks or raise memory"
            )
        if not kernel.positive_definite:
            raise InvalidInput(f"{kernel!r} is not positive definite: low-rank machines need a kernel that is")
        tol = DEPENDENT_32 if self.dtype == np.float32 else 4 * self.m * float(np.finfo(float).eps)
        self.whitening: Whitening = whiten(kernel, self.landmarks, tol)
        self.columns = KernelColumns(kernel, self.whitening.points, self.dtype)
        self.sweeps = Sweeps(self.checked, self.columns, self.weights)

    @property
    def most(self) -> int:
        """Rows that may be held at once, points and all."""
        return max(4 * self.whitening.rank, (self.budget // 4) // (8 * max(1, self.checked.source.d)))

    def plan(self, k: int, tol: float, sample: int | None) -> SamplePlan:
        """Size of the preconditioner's sample: `sample` rows, or by cost."""
        d, r = self.checked.source.d, self.whitening.rank
        if sample is not None:
            rows = min(self.n, max(sample, min(self.n, 2 * r)))
            return SamplePlan(rows, "direct" if rows == self.n else "sample", np.nan, f"{rows} rows were asked for")
        return choose_sample(self.n, r, d, k, tol, self.most)

    def held_plan(self, k: int, tol: float, sample: int | None) -> SamplePlan:
        """The same for a sample that must be held in memory, all rows or not."""
        plan = self.plan(k, tol, sample)
        if plan.rows <= self.most or sample is not None:
            return plan
        return SamplePlan(self.most, "sample", np.nan, f"{self.most} of {self.n} rows: as many as memory allows")

    def sample(self, rows: int) -> Iterator[tuple[int, Any, Array, Array, int]]:
        """One block with `rows` random rows."""
        index = np.sort(np.random.default_rng(self.seed).choice(self.n, rows, replace=False)).astype(np.intp)
        X, Y = self.checked.rows(index)
        yield 0, X, Y, np.ones(rows) if self.weights is None else self.weights[index], 0

    def everything(self, start: int, checksum: int) -> Iterator[tuple[int, Any, Array, Array, int]]:
        """All blocks with their weights from a row on."""
        for at, X, Y, running in self.checked.blocks(start, checksum):
            yield at, X, Y, self.sweeps.weights_of(at, X.shape[0]), running

    def outputs(self) -> int:
        """Number of outputs k, from the first rows where no pass has told yet."""
        if self.checked.k is None:
            self.checked.rows(np.zeros(1, dtype=np.intp))
        assert self.checked.k is not None
        return self.checked.k

    def identity(self, **facts: Any) -> dict[str, Any]:
        """What a checkpoint must agree with."""
        return {
            "kernel": repr(self.kernel),
            "landmarks": fingerprint(self.landmarks),
            "weights": fingerprint(self.weights),
            "rows": self.n,
            "precision": str(self.dtype),
            "seed": self.seed,
            **facts,
        }

    def full(self, w: Array) -> Array:
        """Coefficients (m, k) on all landmarks of whitened coordinates w (r, k); zero where one was left out."""
        a = np.zeros((self.m, w.shape[1]))
        a[self.whitening.kept] = self.whitening.backward(w)
        return a

    def coordinates(self, start: Solution | ArrayLike, k: int) -> Array:
        """Whitened coordinates (r, k) of coefficients on the landmarks."""
        given = start.coefficients if isinstance(start, Solution) else start
        a = np.asarray(given, dtype=np.float64).reshape(-1, k) if np.size(given) == self.m * k else np.asarray(given)
        if a.shape != (self.m, k) or not np.isfinite(a).all():
            raise InvalidInput(f"start must be finite coefficients of shape {(self.m, k)}, got {np.shape(given)}")
        return self.whitening.coordinates(a[self.whitening.kept])

    def details(self, plan: SamplePlan) -> dict[str, Any]:
        """What ran and why."""
        return {
            "method": plan.method,
            "reason": plan.reason,
            "sample": plan.rows,
            "rank": self.whitening.rank,
            "dropped": self.m - self.whitening.rank,
            "passes": self.sweeps.passes,
            "precision": str(self.dtype),
            "rows": self.n,
        }


class Passes(Iteration):
    """A solve of one setting by passes over its rows, whose state can be saved after any block of them."""

    def __init__(self, setting: Setting, tol: float, checkpoint: Checkpoint) -> None:
        super().__init__(setting, tol, None, setting.monitor)
        self.setting, self.checkpoint, self.began = setting, checkpoint, setting.began

    @abstractmethod
    def values(self) -> tuple[float, float]:
        """Primal and dual value."""

    @abstractmethod
    def save(self) -> None:
        """Write what a later run goes on from."""

    def facts(self) -> dict[str, Any]:
        """The number of passes."""
        return {"passes": self.setting.sweeps.passes}

    def solve(self, max_iter: int) -> Solution:
        """Iterate to the end, or as far as the monitor lets it; then the checkpoint goes, or holds the state."""
        try:
            stopped = self.run(max_iter)
        except Stopped:
            stopped = self.halted()
        if stopped in ("time", "interrupted"):
            self.save()
        else:
            self.checkpoint.remove()
        return self.solution(stopped)

    def tell_rows(self, rows: int, **facts: Any) -> bool:
        """Tell a monitor with callbacks of every block, else only ask whether to go on."""
        if not self.monitor.has_callbacks:
            return self.monitor.go_on()
        return self.monitor.watch(self.iterations, *self.values(), rows=rows, of=self.setting.n, **facts)


def _precision(precision: Precision, n: int, m: int, d: int) -> np.dtype[Any]:
    if precision not in ("auto", "float32", "float64"):
        raise InvalidInput(f'precision must be "auto", "float32" or "float64", got {precision!r}')
    if precision != "auto":
        return np.dtype(precision)
    operations = float(n) * m * (min(n, 30 * m) / n * 2 * m + 10 * (2 * d + 110))
    return np.dtype(np.float64 if operations <= DOUBLE_UP_TO else np.float32)


def _weights(weights: ArrayLike | None, n: int) -> Array | None:
    if weights is None:
        return None
    v = np.ascontiguousarray(weights, dtype=np.float64)
    if v.shape != (n,) or not np.isfinite(v).all() or (v < 0).any() or not v.any():
        raise InvalidInput(f"weights must be ({n},) finite numbers, none negative and not all zero")
    return v
