"""Krylov iterations on H Z = T seen from outside: when they stop, and whether their claim is true.

An iteration keeps Z and its residual R = T - H Z (n, m) and takes one step at a time.  From R alone follow, without
a product, the objective of every column,

    J(z) = 1/2 z'Hz - t'z = -1/2 z'(r + t)      (Hamers 2004, section 3.5.5, sign corrected),

and the duality gap of the model in Z.  R is carried by recursion and drifts from the truth; when the iteration ends
the residual is computed anew, and if the gap it gives is not the one claimed, the iteration goes on from there, until
it holds or no longer improves.
"""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np

from mercer.arrays import Array, Index, Mask
from mercer.problems.certificate import Certificate
from mercer.problems.least_squares import LeastSquares
from mercer.solvers.linear.system import LinearIteration, LinearLimits, LinearSystem
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


class Limits(LinearLimits, total=False):
    """The same for `Descent`, with the decrease of its rules."""

    decrease: float | None


class Descent(LinearIteration):
    """An iteration with iterate Z, residual R and flags `done` (m,) of the columns that met a rule of their own."""

    def __init__(self, problem: LeastSquares, *, decrease: float | None = None, **limits: Unpack[LinearLimits]) -> None:
        system = LinearSystem(problem)
        super().__init__(system, **limits)
        self.rules = rules = StoppingRules(self.gap, self.residual, decrease)
        self.Z = Z = system.start(self.given)
        self.residuals: list[float] = []
        self.objectives: list[Array] = []
        self.true: Array | None = None  # residual of the end, where R is what the recursion believes in
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

    def run(self, limit: int) -> Stopped:
        """Run until the true residual holds what was claimed."""
        self.restart()
        stopped = self._run(limit)
        previous = np.inf
        while True:
            self.true = self.system.T - self.system.dot(self.Z)
            certificate = self.system.certificate(self.Z, self.true)
            claimed = stopped == "converged" and self.rules.gap is not None and not self._by_columns()
            if not claimed or self.rules.gap_closed(certificate):
                return stopped
            if certificate.relative_gap > 0.5 * previous:
                return "stalled"
            previous = certificate.relative_gap
            self.R, self.done, self.true = self.true, np.linalg.norm(self.true, axis=0) == 0, None
            self.restart()
            stopped = self._run(limit)

    def _by_columns(self) -> bool:
        """Whether the run ended by the rules of the columns."""
        asked = self.rules.residual is not None or self.rules.decrease is not None
        return asked and bool(self.done.all())

    def _run(self, limit: int) -> Stopped:
        """Step until a rule holds, the limit is reached or the monitor says stop."""
        while True:
            certificate = self.system.certificate(self.Z, self.R)
            self.residuals.append(relative_norm(self.R, self.system.T))
            self.objectives.append(self.rules.objective)
            go_on = self.tell(certificate.primal, certificate.dual)
            if self.rules.gap_closed(certificate) or self.exhausted():
                return "converged"
            if not go_on:
                return self.halted()
            if self.iterations >= limit:
                return "iterations"
            self.step()
            self.iterations += 1
            self.done |= self.rules.columns_done(self.system.T, self.Z, self.R)

    def facts(self) -> dict[str, Any]:
        """The largest relative residual."""
        return {"residual": self.residuals[-1]}

    def solution(self, stopped: Stopped) -> Solution:
        """The present point, certified by its residual."""
        R = self.R if self.true is None else self.true
        certificate = self.system.certificate(self.Z, R)
        details = {
            "residuals": np.array(self.residuals),
            "objectives": np.array(self.objectives),
            "true_residual": relative_norm(R, self.system.T),
            **self.details(),
        }
        return self.system.solution(self.Z.copy(), certificate, self.name, **self.spent(stopped, **details))

    def details(self) -> dict[str, Array | Index]:
        """Further facts for the solution."""
        return {}
