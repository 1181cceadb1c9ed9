"""The rectangle problem at any number of rows: all n points in the loss, m landmarks in the model.

    min over a, b of   1/2 a'Ba [+ 1/2 b^2] + C sum_i v_i loss(y_i, (A a)_i + b),      A = k(X, S),  B = k(S, S)

(subset of regressors; Rifkin 2002, section 3.7; Hamers 2004, section 5.4).  Square loss is 1/2 (y - f)^2.  Memory is
O(m^2) plus one block of rows, whatever n: data may lie in a memory-mapped file, a Parquet file or come from an
iterator (`blocks`).

Square loss, in coordinates where B is the identity (`whitening`):

1. A sample of the rows gives a preconditioner M = R R' and a first solution (`landmark_preconditioner`).  How many rows
   is decided by cost and told in `details`; all of them make a direct method of it.
2. One pass finds the true residual, the duality gap and the bias (`normal_equations`).
3. Each step of conjugate gradients is one pass, for all outputs at once; then step 2 certifies the answer.

Logistic loss is solved by Newton's method on the same passes (`newton`).
"""

import os
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.arrays import Array
from mercer.errors import InvalidInput
from mercer.kernels import Kernel
from mercer.problems.certificate import Certificate, relative_gap
from mercer.problems.statement import Bias, checked_bias
from mercer.solvers.linear.conjugate_directions import ConjugateDirections
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.solution import Solution
from mercer.solvers.solution import Stopped as Reason
from mercer.solvers.streamed.checkpointing import Checkpoint, fingerprint
from mercer.solvers.streamed.landmark_preconditioner import Accumulated, Factor, SamplePlan, accumulate
from mercer.solvers.streamed.newton import Newton
from mercer.solvers.streamed.normal_equations import NormalEquations
from mercer.solvers.streamed.rectangle_problem import Passes, Precision, Setting
from mercer.solvers.streamed.sweeps import Progress


def solve(
    source: Any,
    kernel: Kernel,
    landmarks: Any,
    *,
    y: ArrayLike | None = None,
    C: float = 1.0,
    loss: Literal["square", "logistic"] = "square",
    weights: ArrayLike | None = None,
    bias: Bias = "free",
    tol: float = 1e-3,
    start: Solution | ArrayLike | None = None,
    monitor: Monitor | None = None,
    memory: int | str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    every: float | None = None,
    precision: Precision = "auto",
    sample: int | None = None,
    iterations: int = 200,
    seed: int = 0,
) -> Solution:
    """Fit m coefficients to all rows of `source` (a BlockSource, or points with `y`) until the relative gap is `tol`.

    `landmarks` are points (m, d) or the result of `choose`; `start` are coefficients (m, k) or an earlier solution.
    The gap is a strict bound that counts every direction alike; the distance to the optimal value is usually a hundred
    times smaller, hence the default `tol`.

    The solution has coefficients (m, k) on the landmarks and bias (k,).  `checkpoint` names a file that is written
    every 30 seconds (or `every`), taken up by a later call on the same problem and removed at the end.  `precision` is
    that of the kernel values; "auto" takes float64 where it costs a few seconds at most.  `sample` sets the number of
    rows in the preconditioner, `memory` bounds what is held besides one block of rows.
    """
    if not (0 < C < np.inf):
        raise InvalidInput(f"C must be positive and finite, got {C}")
    checked_bias(bias)
    if loss not in ("square", "logistic"):
        raise InvalidInput(f'loss must be "square" or "logistic", got {loss!r}')
    with listening(monitor) as watch:
        setting = Setting(
            source,
            kernel,
            landmarks,
            y=y,
            weights=weights,
            precision=precision,
            memory=memory,
            seed=seed,
            monitor=watch,
        )
        k = setting.outputs()
        start = watch.resume() if start is None else start
        w = None if start is None else setting.coordinates(start, k)
        identity = setting.identity(C=C, bias=bias, loss=loss, tol=tol, sample=sample, start=fingerprint(w))
        saved = Checkpoint(checkpoint, identity, every)
        if loss == "logistic":
            b = np.zeros(k) + (start.bias if isinstance(start, Solution) else 0.0)
            begin = None if w is None else (w, b)
            return Newton(setting, C, bias, tol, saved, sample, begin).solve(iterations)
        return _Descent(setting, C, bias, tol, saved, setting.plan(k, tol, sample), w).solve(iterations)


class _Descent(Passes):
    """Preconditioned conjugate gradients, from whitened coordinates or the solution of a sample."""

    name = "rectangle"

    def __init__(
        self,
        setting: Setting,
        C: float,
        bias: Bias,
        tol: float,
        checkpoint: Checkpoint,
        plan: SamplePlan,
        begin: Array | None,
    ) -> None:
        super().__init__(setting, tol, checkpoint)
        self.plan, self.begin = plan, begin
        self.equations = NormalEquations(setting.sweeps, setting.whitening, C, bias)
        self.C = C
        k = setting.outputs()
        shape = (setting.whitening.rank, k)
        self.w = np.zeros(shape)
        self.search: ConjugateDirections | None = None
        self.primal, self.gap = np.full(k, np.inf), np.full(k, np.inf)
        self.proved = np.inf  # relative gap at the last true residual
        self.stage: Literal["residual", "search"] = "residual"
        self.factor: Factor | None = None
        self.progress: Progress | None = None
        setting.sweeps.between = self._between

    def run(self, limit: int) -> Reason:
        """Run to the tolerance, or as far as the monitor lets it."""
        self._prepare(self.checkpoint.load())
        while (ended := self._certify() if self.stage == "residual" else self._step(limit)) is None:
            pass
        return ended

    def save(self) -> None:
        """Write the state, once there is a preconditioner."""
        if self.factor is not None:
            self.checkpoint.save(self.stage, self._state)

    # The preconditioner --------------------------------------------------------------------------------------------

    def _prepare(self, saved: tuple[str, dict[str, NDArray[Any]]] | None) -> None:
        """Preconditioner and starting point, from the checkpoint where there is one."""
        if saved is not None and saved[0] != "rows":
            self._restore(saved[0], saved[1])
            return
        setting, plan = self.setting, self.plan
        sums = Accumulated.empty(*self.w.shape) if saved is None else _restored(saved[1])
        direct = plan.method == "direct"
        blocks = setting.everything(sums.rows, sums.checksum) if direct else setting.sample(plan.rows)
        accumulate(setting.columns, setting.whitening, blocks, sums, self._between_rows if direct else None)
        scale = setting.n / plan.rows
        rounding = float(np.finfo(setting.dtype).eps)
        self.factor = Factor.of(sums, self.equations.ridge, scale, self.equations.bias_ridge, rounding)
        self.w = (self.factor.start if self.begin is None else self.begin).copy()

    def _between_rows(self, sums: Accumulated) -> bool:
        self.checkpoint.save_when_due("rows", lambda: vars(sums) | {"N": np.array(sums.N)})
        return self.tell_rows(sums.rows, stage=self.stage)

    # Passes --------------------------------------------------------------------------------------------------------

    def _certify(self) -> Reason | None:
        """True residual and gap at w; go on with a fresh search direction where it is not small enough."""
        found = self.equations.residual(self.w, self._resumed())
        self.primal, self.gap = found.primal, 0.5 * self.C**2 * np.sum(found.residual**2, axis=0)
        before, self.proved = self.proved, self._relative_gap()
        if not self.tell(*self.values()):
            return self.halted()
        if self.proved <= self.tol:
            return "converged"
        if not self.proved < 0.5 * before:
            return "stalled"
        self._search_from(found.residual)
        return None

    def _search_from(self, residual: Array) -> None:
        assert self.factor is not None
        self.search = ConjugateDirections(self._product, residual, self.w, self.factor.solve)
        self.stage = "search"

    def _product(self, p: Array) -> Array:
        return self.equations.product(p, self._resumed())

    def _step(self, limit: int) -> Reason | None:
        """One step of conjugate gradients in every column."""
        search = self.search
        assert search is not None
        before = search.energy
        search.step()
        self.primal = self.primal - 0.5 * self.C * search.length * before
        self.gap = 0.5 * self.C**2 * np.sum(search.R**2, axis=0)
        self.iterations += 1
        if not self.tell(*self.values()):
            return self.halted()
        if self.iterations >= limit:
            return "iterations"
        # The recursion is believed nearly to the tolerance; a true residual has the last word.
        if self._relative_gap() <= 0.9 * self.tol or not (search.energy > 0).any():
            self.stage = "residual"
        return None

    def _resumed(self) -> Progress | None:
        progress, self.progress = self.progress, None
        return progress

    def _relative_gap(self) -> float:
        primal, gap = float(self.primal.sum()), float(self.gap.sum())
        return relative_gap(primal, primal - gap, gap) if np.isfinite(primal) else np.inf

    # Talking and saving --------------------------------------------------------------------------------------------

    def _between(self, progress: Progress) -> bool:
        self.progress = progress
        self.checkpoint.save_when_due(self.stage, self._state)
        go_on = self.tell_rows(progress.rows, stage=self.stage)
        if go_on and progress.rows == self.setting.n:
            self.progress = None
        return go_on

    def values(self) -> tuple[float, float]:
        """Primal and dual value; the dual is never below that of c = 0."""
        primal = float(self.primal.sum())
        return primal, max(0.0, primal - float(self.gap.sum())) if np.isfinite(primal) else 0.0

    def _state(self) -> dict[str, NDArray[Any]]:
        assert self.factor is not None
        e = self.equations
        state = {
            "R": self.factor.R, "w": self.w, "primal": self.primal, "gap": self.gap,
            "s": e.s, "vY": e.vY, "N": np.array(e.N), "proved": np.array(self.proved),
            "iteration": np.array(self.iterations), "passes": np.array(self.setting.sweeps.passes),
            "checked": self.setting.checked.noted(),
        }  # fmt: skip
        if self.stage == "search" and self.search is not None:
            state |= {"r": self.search.R, "p": self.search.P, "rho": self.search.energy}
        if self.progress is not None:
            state |= {
                "sums": self.progress.sums,
                "totals": self.progress.totals,
                "done": np.array(self.progress.rows),
                "checksum": np.array(self.progress.checksum, dtype=np.uint64),
            }
        return state

    def _restore(self, stage: str, state: dict[str, NDArray[Any]]) -> None:
        self.setting.checked.recall(state["checked"])
        self.factor = Factor(np.asfortranarray(state["R"]), np.empty((0, 0)))
        self.w = state["w"]
        if stage == "search":
            self._search_from(state["r"])
            assert self.search is not None
            self.search.P, self.search.energy = state["p"], state["rho"]
        self.primal, self.gap, self.proved = state["primal"], state["gap"], float(state["proved"])
        self.equations.s, self.equations.vY, self.equations.N = state["s"], state["vY"], float(state["N"])
        self.iterations, self.setting.sweeps.passes = int(state["iteration"]), int(state["passes"])
        if "sums" in state:
            self.progress = Progress(int(state["done"]), int(state["checksum"]), state["sums"], state["totals"])

    def solution(self, stopped: Reason) -> Solution:
        """The present point."""
        primal, dual = self.values()
        a, gap = self.setting.full(self.w), min(primal - dual, float(self.gap.sum()))
        certificate = Certificate(primal, dual, gap, self.equations.best_bias(self.w))
        return self.certified(stopped, certificate, a, a, **self.setting.details(self.plan))


def _restored(state: dict[str, NDArray[Any]]) -> Accumulated:
    """Sums over rows from a checkpoint."""
    return Accumulated(
        np.asfortranarray(state["G"]), state["ZY"], state["s"], float(state["N"]), state["vY"],
        int(state["rows"]), int(state["checksum"]),
    )  # fmt: skip
