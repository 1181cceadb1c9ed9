"""nu-support vector classification: a share nu of errors in the place of their cost C.

    min 1/2 ||f||^2 - nu (sum_i w_i) rho + sum_i w_i (rho - y_i (f(x_i) + b))_+ ,  then f / rho

(Schoelkopf and Smola 2002, chapter 7).

For the largest feasible nu, all points of the lighter class are at their bounds w_i, and the margin is determined from
below only.  Let s be the sign of the heavier class and h = s f at its support vectors.  Then every rho from the
smallest one, rho_1, upwards is optimal, with the bias s (rho - h), and

    s (f(x) + b) / rho = 1 - (h - s f(x)) / rho

tends to the heavier class everywhere.  rho_1 is taken: it is the limit of smaller nu, and makes the fewest errors on
the points of the fit.  But a part of space that is given to the lighter class may hold points of the heavier one that
are still to come.  None of the m seen lies there, so that of m others, by the rule of succession, about one may.  Where
that one, of the mean weight of its class, outweighs all points of the lighter class together, the margin is as many
times wider:

    rho = rho_1 max(1, mean weight of a point of the heavier class / weight of the lighter class).
"""

import warnings
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from mercer.errors import Advice, Infeasible, InvalidInput
from mercer.gram import GramOperator
from mercer.machine.training_set import TrainingSet
from mercer.problems import NuClassification, Problem
from mercer.problems.margins import NU_SLACK
from mercer.resources import Resources
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution
from mercer.svm.classification import Classifier, Index, Matrix, Trained, Vector
from mercer.svm.solving import WarmStart

FARTHEST = 1.0 / float(np.finfo(np.float64).eps)  # times a margin is wider; beyond, f adds nothing to the bias


def largest_nu(y: Vector, weights: Vector | None) -> float:
    """Twice the weighted share of the smaller class of labels y (n,) of +-1."""
    w = np.ones(len(y)) if weights is None else weights
    return 2.0 * min(float(w[y > 0].sum()), float(w[y < 0].sum())) / float(w.sum())


def widened(problem: NuClassification, found: Solution) -> Solution:
    """The solution with the margin of this file's head, where it is determined from below only."""
    weights = {sign: problem.box[(problem.y == sign) & (problem.box > 0.0)] for sign in (1.0, -1.0)}
    lighter, heavier = sorted(weights.values(), key=np.sum)
    rho = float(found.multipliers["rho"])
    saturated = 0.5 * problem.nu * problem.box.sum() >= (1.0 - NU_SLACK) * lighter.sum()
    times = min(float(heavier.mean()) / float(lighter.sum()), FARTHEST)
    if not saturated or times <= 1.0 or rho <= 0.0:
        return found
    sign = 1.0 if heavier is weights[1.0] else -1.0
    bias = found.bias + sign * (times - 1.0) * rho
    return replace(found, bias=bias, multipliers={**found.multipliers, "rho": times * rho})


@dataclass(kw_only=True, eq=False, repr=False)
class NuSVC(Classifier):
    """nu-support vector classification: nu bounds the share of margin errors from above, of support vectors from below.

    The parameters are those of `SVC` with `nu` in (0, 1] for `C`, and without `loss`, `bias` and `basis`.  Each pair of
    classes admits nu up to twice the (weighted) share of its smaller class.  Class weights count, as sample weights do.
    Where nu is not feasible, the largest feasible one is taken, with a warning unless class weights are the reason.
    Where then a single point of one class outweighs all points of the other, more of the space goes to the heavier
    class, in the limit all of it.
    """

    nu: float = 0.5

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Classifier._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    def _problem(self, gram: GramOperator, y: Vector, weights: Vector | None, basis: Matrix | None = None) -> Problem:
        return NuClassification(gram, y, min(self.nu, largest_nu(y, weights)), weights, basis)

    def _solve(
        self, problem: Problem, resources: Resources, monitor: Monitor | None, start: WarmStart | None = None
    ) -> Solution:
        found = super()._solve(problem, resources, monitor, start)
        return widened(problem, found) if isinstance(problem, NuClassification) else found

    def _train(
        self, training: TrainingSet, codes: Index, weights: Vector | None, index: Index | None, monitor: Monitor
    ) -> Trained:
        if index is None and self.class_weight is None:
            self._warn_of_small_classes(codes, weights)
        return super()._train(training, codes, weights, index, monitor)

    def _warn_of_small_classes(self, codes: Index, weights: Vector | None) -> None:
        """Say where nu is beyond what the classes admit."""
        tasks = self._tasks(codes)
        own = [None if weights is None or task.members is None else weights[task.members] for task in tasks]
        most = [largest_nu(task.signs(codes), weights if w is None else w) for task, w in zip(tasks, own)]
        if min(most) < self.nu:
            some = f" in {sum(nu < self.nu for nu in most)} of {len(most)} machines" if len(most) > 1 else ""
            warnings.warn(
                f"nu={self.nu:g} is infeasible{some}: it must lie in (0, {min(most):.6g}], twice the weighted share of "
                "the smaller class.  The largest feasible one is taken; give a smaller nu, or class_weight",
                Advice,
                stacklevel=5,
            )

    def _no_margin(self) -> Infeasible:
        return Infeasible(
            f"with nu={self.nu:g} the margin rho is zero to rounding, because the convex hulls of the classes, reduced "
            "by nu, meet; decision values are those of f, not of f / rho, which would be noise: raise nu, or choose a "
            "kernel that separates the classes better"
        )

    def _one_class_left(self) -> InvalidInput:
        return Infeasible(
            "specified nu is infeasible: all samples with positive weights belong to the same class; give points of "
            "at least two classes a positive weight"
        )
