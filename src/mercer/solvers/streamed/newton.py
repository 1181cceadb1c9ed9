"""Logistic loss on the rectangle problem: Newton's method, every linear system by the passes of the square loss.

    P(w, b) = 1/2 |w|^2 [+ 1/2 b^2] + C sum_i v_i log(1 + exp(-y_i f_i)),        f = Z w + b,     y_i = +-1

With the slopes l' and curvatures l'' at f, D = diag(v l''), s = Z'D1 and beta as in `normal_equations` for the weights
D, a Newton step solves

    (Z'DZ - beta s s' + ridge I) dw = r - beta s q,      db = beta (q - s'dw),
    r = -Z'(v l') - ridge w,      q = -sum v l' [- ridge b].

1. Newton on a random sample of the rows, its normal matrix factorised at each step: cheap, and close to the answer.
2. Newton on all rows from there.  The systems are solved by conjugate gradients, preconditioned by the last factor of
   the sample, to an accuracy that rises as the gap falls; D is found again from f inside each pass, so nothing of
   length n is stored.

The dual point is c_i = -C v_i l'_i.  A free bias asks for sum c = 0: the heavier of the two classes is scaled down to
the other, which keeps every c_i in its box; by concavity of the entropy the dual value falls no lower than counted, so
the gap is a bound at any point.  Several outputs are solved one after the other.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlogy

from mercer.arrays import Array
from mercer.errors import InvalidInput
from mercer.problems.certificate import Certificate, relative_gap
from mercer.problems.statement import Bias
from mercer.solvers.linear.conjugate_directions import ConjugateDirections
from mercer.solvers.solution import Solution
from mercer.solvers.solution import Stopped as Reason
from mercer.solvers.streamed.blocks import ArrayBlocks, CheckedRows
from mercer.solvers.streamed.checkpointing import Checkpoint
from mercer.solvers.streamed.landmark_preconditioner import Accumulated, Factor, accumulate
from mercer.solvers.streamed.normal_equations import bias_ridge
from mercer.solvers.streamed.rectangle_problem import Passes, Setting
from mercer.solvers.streamed.sweeps import Progress, Stopped, Sweeps

SAMPLE_STEPS = 30
# The sampled solution differs from the full one by more than this, so that a smaller gap on the sample gains nothing.
SAMPLE_GAP = 1e-3
FULL_STEPS = 50
INNER_PASSES = 20


@dataclass(frozen=True, eq=False)
class Slope:
    """What a pass at (w, b) found: values, right-hand side r (r,) and q, and s (r,) and N of the weights D."""

    primal: float
    dual: float
    r: Array
    q: float
    s: Array
    N: float

    @property
    def relative_gap(self) -> float:
        """(P - D) / max(|P|, |D|)."""
        return relative_gap(self.primal, self.dual)


class Logistic:
    """Gradient, certificate and Hessian products of output `column` over the rows of `sweeps`."""

    def __init__(self, setting: Setting, sweeps: Sweeps, column: int, C: float, bias: Bias) -> None:
        self.whitening, self.sweeps, self.column = setting.whitening, sweeps, column
        self.C, self.ridge, self.bias = C, 1.0 / C, bias
        self.bias_ridge = bias_ridge(bias, self.ridge)

    def slope(self, w: Array, b: float) -> Slope:
        """One pass at (w, b)."""

        def body(F: Array, Y: Array, v: Array) -> tuple[Array, Array]:
            y = Y[:, self.column]
            if (np.abs(y) != 1.0).any():
                raise InvalidInput("logistic loss needs labels -1 and +1: see one_against_rest for classes")
            f = F[:, 0] + b
            t = expit(-y * f)
            curvature = v * t * (1.0 - t)
            fall, entropy = v * t, -v * (xlogy(t, t) + xlogy(1.0 - t, 1.0 - t))
            plus = y > 0
            totals = [
                np.sum(v * np.logaddexp(0.0, -y * f)), curvature.sum(), fall[plus].sum(), fall[~plus].sum(),
                entropy[plus].sum(), entropy[~plus].sum(),
            ]  # fmt: skip
            return np.stack([fall * plus, fall * ~plus, curvature], axis=1), np.array(totals)

        sums, totals = self.sweeps.products(self.whitening.backward(w[:, None]), body, 3, 6)
        Z = self.whitening.forward(sums)
        loss, N, plus, minus = (float(value) for value in totals[:4])
        primal = 0.5 * float(w @ w) + self.C * loss
        q = plus - minus
        if self.bias == "penalised":
            primal += 0.5 * b * b
            q -= self.ridge * b
        dual = self._dual(Z[:, 0], Z[:, 1], plus, minus, totals[4:])
        return Slope(primal, dual, Z[:, 0] - Z[:, 1] - self.ridge * w, 0.0 if self.bias == "none" else q, Z[:, 2], N)

    def _dual(self, up: Array, down: Array, plus: float, minus: float, entropy: Array) -> float:
        """A lower bound of the optimum from the falls of the two classes, Z'c / C = up - down."""
        scale = np.ones(2)
        if self.bias == "free":
            least = min(plus, minus)
            scale = np.array([least / plus if plus > 0 else 0.0, least / minus if minus > 0 else 0.0])
        c = self.C * (scale[0] * up - scale[1] * down)
        norm = float(c @ c)
        if self.bias == "penalised":
            norm += (self.C * (plus - minus)) ** 2
        return max(0.0, self.C * float(scale @ entropy) - 0.5 * norm)

    def product(self, w: Array, b: float, at: Slope, p: Array) -> Array:
        """(Z'DZ - beta s s' + ridge I) p (r,) with D at (w, b): one pass."""

        def body(F: Array, _: Array, v: Array) -> tuple[Array, Array]:
            t = expit(F[:, :1] + b)
            return v[:, None] * t * (1.0 - t) * F[:, 1:], np.zeros(0)

        sums, _ = self.sweeps.products(self.whitening.backward(np.stack([w, p], axis=1)), body, 1, 0)
        Zp = self.whitening.forward(sums)[:, 0]
        return np.asarray(Zp - self.beta(at) * at.s * float(at.s @ p) + self.ridge * p)

    def beta(self, at: Slope) -> float:
        """Factor of the bias for the weights D."""
        return 0.0 if self.bias_ridge is None or at.N + self.bias_ridge <= 0 else 1.0 / (at.N + self.bias_ridge)

    def step(self, at: Slope, dw: Array) -> tuple[Array, float]:
        """The step dw with the change of bias that goes with it."""
        return dw, self.beta(at) * (at.q - float(at.s @ dw))

    def target(self, at: Slope) -> Array:
        """Right-hand side of the system for dw."""
        return np.asarray(at.r - self.beta(at) * at.q * at.s)


class Newton(Passes):
    """All outputs, one after the other, from `begin`, w (r, k) and b (k,), or from the solutions of a sample.

    The state can be saved at the beginning of each Newton step.
    """

    name = "rectangle newton"

    def __init__(
        self,
        setting: Setting,
        C: float,
        bias: Bias,
        tol: float,
        checkpoint: Checkpoint,
        sample: int | None,
        begin: tuple[Array, Array] | None,
    ) -> None:
        super().__init__(setting, tol, checkpoint)
        self.C, self.bias, self.begin = C, bias, begin
        k = setting.outputs()
        self.w, self.b = np.zeros((setting.whitening.rank, k)), np.zeros(k)
        self.primal, self.dual = np.full(k, np.inf), np.zeros(k)
        self.column, self.halvings = 0, 0
        self.reason: Reason = "converged"
        self.plan = setting.held_plan(k, tol, sample)
        self.factor: Factor | None = None
        _, X, Y, v, _ = next(iter(setting.sample(self.plan.rows)))
        self.part = Sweeps(CheckedRows(ArrayBlocks(X, Y)), setting.columns, v * (setting.n / self.plan.rows))
        self.part.between = setting.sweeps.between = self._between

    def run(self, limit: int) -> Reason:
        """Run every output from its sampled solution, from the start, or from where a checkpoint left it."""
        if self.begin is not None:
            self.w, self.b = (part.copy() for part in self.begin)
        saved = self.checkpoint.load()
        if saved is not None:
            self._restore(saved[1])
        while self.column < len(self.b):
            if self.factor is None and self.begin is None:
                self._on_sample()
            elif self.factor is None:
                self.factor = self._factor(self.w[:, self.column], float(self.b[self.column]))
            self._on_all_rows(limit)
            self.column, self.factor = self.column + 1, None
        return self.reason

    def _on_sample(self) -> None:
        """Newton on the sample; leaves the factor of the last step behind."""
        j = self.column
        task = Logistic(self.setting, self.part, j, self.C, self.bias)
        w, b, previous = self.w[:, j], float(self.b[j]), np.inf
        at = task.slope(w, b)
        for _ in range(SAMPLE_STEPS):
            self.factor = self._factor(w, b)
            dw, db = task.step(at, self.factor.solve(task.target(at)[:, None])[:, 0])
            fraction = 1.0
            new = task.slope(w + dw, b + db)
            while new.primal > at.primal and fraction > 1e-6:
                fraction *= 0.5
                new = task.slope(w + fraction * dw, b + fraction * db)
            w, b, at = w + fraction * dw, b + fraction * db, new
            if at.relative_gap <= max(self.tol, SAMPLE_GAP) or not at.relative_gap < 0.99 * previous:
                break
            previous = at.relative_gap
        self.w[:, j], self.b[j] = w, b

    def _factor(self, w: Array, b: float) -> Factor:
        """Factor of the sampled normal matrix with the curvatures at (w, b) for weights."""
        source = self.part.checked.source
        assert isinstance(source, ArrayBlocks)
        assert self.part.weights is not None
        a = self.setting.whitening.backward(w[:, None])
        curvature = np.empty(len(source.y))
        rows = max(16, (1 << 22) // self.setting.whitening.rank)
        room = np.empty((rows, self.setting.whitening.rank), self.setting.dtype)
        for first in range(0, len(curvature), rows):
            part = slice(first, first + rows)
            t = expit((self.setting.columns.fill(source.X[part], room) @ a)[:, 0] + b)
            curvature[part] = self.part.weights[part] * t * (1.0 - t)
        sums = Accumulated.empty(self.setting.whitening.rank, 1)
        block = [(0, source.X, np.zeros((len(curvature), 1)), curvature, 0)]
        accumulate(self.setting.columns, self.setting.whitening, block, sums)
        task = Logistic(self.setting, self.part, self.column, self.C, self.bias)
        bias_ridge = None if sums.N <= 0 else task.bias_ridge
        return Factor.of(sums, task.ridge, 1.0, bias_ridge, float(np.finfo(self.setting.dtype).eps))

    def _on_all_rows(self, limit: int) -> None:
        """Inexact Newton on all rows until the gap is small enough."""
        j = self.column
        task = Logistic(self.setting, self.setting.sweeps, j, self.C, self.bias)
        at, gap = self._certified(task), np.inf
        for _ in range(FULL_STEPS):
            if at.relative_gap <= self.tol:
                return
            if self.setting.sweeps.passes >= limit * len(self.b):
                self.reason = "iterations"
                return
            if not at.relative_gap < 0.9 * gap:
                self.reason = "stalled"
                return
            gap = at.relative_gap
            self.checkpoint.save_when_due("newton", self.state)
            accuracy = min(0.1, max(0.1 * np.sqrt(self.tol / gap), 1e-4))
            dw, db = task.step(at, self._direction(task, at, accuracy))
            self.iterations += 1
            at = self._searched(task, at, dw, db)

    def _certified(self, task: Logistic) -> Slope:
        j = self.column
        at = task.slope(self.w[:, j], float(self.b[j]))
        self.primal[j], self.dual[j] = at.primal, at.dual
        if not self.tell(*self.values()):
            raise Stopped
        return at

    def _searched(self, task: Logistic, at: Slope, dw: Array, db: float) -> Slope:
        """Take the step, halved until the primal value falls."""
        j = self.column
        w, b, fraction = self.w[:, j].copy(), float(self.b[j]), 1.0
        while True:
            self.w[:, j], self.b[j] = w + fraction * dw, b + fraction * db
            new = self._certified(task)
            if new.primal <= at.primal * (1 + 1e-13) or fraction < 1e-6:
                return new
            fraction *= 0.5
            self.halvings += 1

    def _direction(self, task: Logistic, at: Slope, accuracy: float) -> Array:
        """Preconditioned conjugate gradients on the Newton system, to a relative `accuracy` in the norm of M^-1."""
        assert self.factor is not None
        j = self.column
        w, b = self.w[:, j], float(self.b[j])
        r = task.target(at)[:, None]
        dw = np.zeros_like(r)

        def product(p: Array) -> Array:
            return task.product(w, b, at, p[:, 0])[:, None]

        search = ConjugateDirections(product, r, dw, self.factor.solve)
        enough = accuracy**2 * search.energy
        for _ in range(INNER_PASSES):
            if not search.energy > enough:
                break
            search.step()
        return dw[:, 0]

    # Talking and saving --------------------------------------------------------------------------------------------

    def _between(self, progress: Progress) -> bool:
        return self.tell_rows(progress.rows, output=self.column)

    def facts(self) -> dict[str, Any]:
        """Also which output is worked on."""
        return {**super().facts(), "output": self.column}

    def save(self) -> None:
        """Write the state."""
        self.checkpoint.save("newton", self.state)

    def values(self) -> tuple[float, float]:
        """Sums over the outputs."""
        return float(self.primal.sum()), float(self.dual.sum())

    def state(self) -> dict[str, NDArray[Any]]:
        """What a checkpoint keeps."""
        state = {
            "w": self.w, "b": self.b, "primal": self.primal, "dual": self.dual, "column": np.array(self.column),
            "steps": np.array(self.iterations), "checked": self.setting.checked.noted(),
        }  # fmt: skip
        return state if self.factor is None else state | {"R": self.factor.R}

    def _restore(self, state: dict[str, NDArray[Any]]) -> None:
        self.setting.checked.recall(state["checked"])
        self.w, self.b, self.primal, self.dual = state["w"], state["b"], state["primal"], state["dual"]
        self.column, self.iterations = int(state["column"]), int(state["steps"])
        if "R" in state:
            self.factor = Factor(np.asfortranarray(state["R"]), np.empty((0, 0)))

    def solution(self, stopped: Reason) -> Solution:
        """The present point."""
        primal, dual = self.values()
        a, certificate = self.setting.full(self.w), Certificate(primal, dual, max(0.0, primal - dual), self.b.copy())
        return self.certified(stopped, certificate, a, a, halvings=self.halvings, **self.setting.details(self.plan))
