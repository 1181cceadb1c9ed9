"""Krylov iterations on H Z = T seen from outside: when they stop, and whether their claim is true.

An iteration keeps Z and its residual R = T - H Z (n, m) and takes one step at a time.  From R alone follow, without
a product, the objective of every column,

    J(z) = 1/2 z'Hz - t'z = -1/2 z'(r + t)      (Hamers 2004, section 3.5.5, sign corrected),

and the duality gap of the model in Z.  R is carried by recursion and drifts from the truth; when the iteration ends
the residual is computed anew, and if the gap it gives is not the one claimed, the iteration goes on from there, until
it holds or no longer improves.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from mercer.arrays import Array, Index, Mask
from mercer.problems.certificate import Certificate
from mercer.solvers.linear.system import LinearSystem
from mercer.solvers.monitor import Monitor, listening
from mercer.solvers.solution import Solution, Stopped


def relative_norm(R: Array, T: Array) -> float:
    """The largest |r_j| / |t_j| over the columns, |r_j| where t_j is zero."""
    norms = np.linalg.norm(T, axis=0)
    return float(np.max(np.linalg.norm(R, axis=0) / np.where(norms > 0, norms, 1.0), initial=0.0))


@dataclass
class StoppingRules:
    """When an iteration ends; a rule that is None is not asked, any one that holds suffices.

    `gap`: relative duality gap of the model.  `residual`: |r_j| <= residual |r_j at the start|, in every column j.
    `decrease`: J falls by no more than this in one step, in every column.
    """

    gap: float | None
    residual: float | None = None
    decrease: float | None = None
    first: Array = field(default_factory=lambda: np.zeros(0))
    objective: Array = field(default_factory=lambda: np.zeros(0))

    def columns_done(self, T: Array, Z: Array, R: Array) -> Mask:
        """For each column, whether the residual rule or the decrease rule holds (m,)."""
        norms = np.linalg.norm(R, axis=0)
        before, self.objective = self.objective, -0.5 * np.sum(Z * (R + T), axis=0)
        done = norms == 0
        if self.first.shape != norms.shape:
            self.first = norms
            return np.asarray(done)
        if self.residual is not None:
            done |= norms <= self.residual * self.first
        if self.decrease is not None:
            done |= before - self.objective <= self.decrease
        return np.asarray(done)

    def gap_closed(self, certificate: Certificate) -> bool:
        """Whether the relative gap is small enough."""
        return self.gap is not None and certificate.relative_gap <= self.gap


class Descent(ABC):
    """An iteration with iterate Z, residual R and flags `done` (m,) of the columns that met a rule of their own."""

    name = ""

    def __init__(self, system: LinearSystem, Z: Array, rules: StoppingRules) -> None:
        self.system, self.Z, self.rules = system, Z, rules
        self.iteration = 0
        self.residuals: list[float] = []
        self.objectives: list[Array] = []
        self.R = system.T - system.dot(Z) if Z.any() else system.T.copy()
        self.done = rules.columns_done(system.T, Z, self.R)

    @abstractmethod
    def restart(self) -> None:
        """Forget the search directions and begin anew from R."""

    @abstractmethod
    def step(self) -> None:
        """One step: updates Z and R with one product."""

    def exhausted(self) -> bool:
        """Whether no direction is left to search."""
        return bool(self.done.all())

    def solve(self, iterations: int | None, monitor: Monitor | None) -> Solution:
        """Run to the end and certify what was reached by the true residual."""
        with listening(monitor) as watch:
            return self._solve(self.system.limit(iterations), watch)

    def _solve(self, limit: int, monitor: Monitor) -> Solution:
        self.restart()
        stopped = self._run(limit, monitor)
        previous = np.inf
        while True:
            true = self.system.T - self.system.dot(self.Z)
            certificate = self.system.certificate(self.Z, true)
            claimed = stopped == "converged" and self.rules.gap is not None and not self._by_columns()
            if not claimed or self.rules.gap_closed(certificate):
                break
            if certificate.relative_gap > 0.5 * previous:
                stopped = "stalled"
                break
            previous = certificate.relative_gap
            self.R, self.done = true, np.linalg.norm(true, axis=0) == 0
            self.restart()
            stopped = self._run(limit, monitor)
        return self._solution(certificate, stopped, monitor, true)

    def _by_columns(self) -> bool:
        """Whether the run ended by the rules of the columns."""
        asked = self.rules.residual is not None or self.rules.decrease is not None
        return asked and bool(self.done.all())

    def _run(self, limit: int, monitor: Monitor) -> Stopped:
        """Step until a rule holds, the limit is reached or the monitor says stop."""
        while True:
            certificate = self.system.certificate(self.Z, self.R)
            size = relative_norm(self.R, self.system.T)
            self.residuals.append(size)
            self.objectives.append(self.rules.objective)
            go_on = monitor.watch(
                self.iteration,
                certificate.primal,
                certificate.dual,
                snapshot=lambda: self._snapshot(monitor),
                residual=size,
            )
            if self.rules.gap_closed(certificate) or self.exhausted():
                return "converged"
            if not go_on:
                return monitor.stopped or "interrupted"
            if self.iteration >= limit:
                return "iterations"
            self.step()
            self.iteration += 1
            self.done |= self.rules.columns_done(self.system.T, self.Z, self.R)

    def _snapshot(self, monitor: Monitor) -> Solution:
        certificate = self.system.certificate(self.Z, self.R)
        return self._solution(certificate, monitor.stopped or "iterations", monitor, self.R)

    def _solution(self, certificate: Certificate, stopped: Stopped, monitor: Monitor, R: Array) -> Solution:
        c, _ = self.system.eliminate(self.Z)
        if self.system.projection is not None:
            certificate = self.system.certify(c)
        details = {
            "residuals": np.array(self.residuals),
            "objectives": np.array(self.objectives),
            "true_residual": relative_norm(R, self.system.T),
            **self.details(),
        }
        return self.system.certified(
            c,
            certificate,
            self.name,
            variables=self.Z.copy(),
            iterations=self.iteration,
            stopped=stopped,
            monitor=monitor,
            details=details,
        )

    def details(self) -> dict[str, Array | Index]:
        """Further facts for the solution."""
        return {}
