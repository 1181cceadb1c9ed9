"""BayesPointMachine: the middle of all functions that separate the classes; see `mercer.solvers.geometric.billiard`."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from mercer.errors import BudgetTooSmall, Infeasible
from mercer.gram import Gram, GramOperator
from mercer.kernels import Precomputed
from mercer.machine.base import Vector
from mercer.resources import show
from mercer.solvers.geometric import billiard, perceptron
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Stopped
from mercer.svm.version_space import Separator

MATRICES = 3  # n x n arrays held at once: the matrix, its eigenvectors, and their workspace
BOUNCES = 10_000
MOST_EPOCHS = 10_000  # of the perceptron that finds a point of version space


@dataclass(kw_only=True, eq=False, repr=False)
class BayesPointMachine(Separator):
    """The centre of mass of version space, which stands for the vote of all functions that separate the classes.

    Parameters
    ----------
    method : "billiard", the path of a ball in version space, or "perceptrons", the mean of `members` perceptrons that
        saw the points in different orders, each of norm one: quicker, and less near to the middle.
    softness : added to the diagonal of the kernel matrix, divided by the weight of the point; what is larger than zero
        allows errors on the training points, the lighter the more, and lets any classes be separated.
    members : perceptrons of the average.
    class_weight : as in scikit-learn; weights divide the softness.
    max_iter : bounces of the ball; -1 is 10,000.
    random_state : seed of the directions and orders.
    kernel, degree, gamma, coef0, tol, approximation, memory, precision, max_time, warm_start, verbose, n_jobs
        As in `SVC`; `tol` and `warm_start` make no difference here.

    Attributes
    ----------
    classes_, support_, support_vectors_, dual_coef_, intercept_ : as in `KernelPerceptron`.
    n_iter_ : bounces, or updates of all perceptrons; stopped_ is "converged" where all were made.
    objective_, dual_objective_, gap_ : nan; a centre of mass has no objective that could be bounded.
    kernel_, solver_, solution_, history_, plan_, approximation_, approximation_reason_, feature_map_ : as in `SVC`.

    """

    method: str = "billiard"
    softness: float = 1.0
    members: int = 50

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Separator._parameter_constraints,
        "method": [StrOptions({"billiard", "perceptrons"})],
        "softness": [Interval(Real, 0.0, None, closed="left")],
        "members": [Interval(Integral, 1, None, closed="left")],
    }
    _reason: ClassVar[str] = "Bayes point: the centre of mass of all functions that separate the classes"

    def _separate(
        self, gram: GramOperator, y: Vector, weights: Vector, random: np.random.Generator, monitor: Monitor
    ) -> tuple[Vector, int, Stopped]:
        n, budget = y.size, self._resources().budget
        if MATRICES * 8 * n * n > budget:
            raise BudgetTooSmall(
                f"the Bayes point of {n} points needs {show(MATRICES * 8 * n * n)} and the budget is {show(budget)}: "
                "raise memory, train on fewer points, or use SVC"
            )
        K = np.array(gram.dense(), dtype=np.float64)
        K.flat[:: n + 1] += self.softness / weights
        soft = Gram(Precomputed(), K)
        if self.method == "perceptrons":
            return self._averaged(soft, y, random, monitor)
        found = self._separated(soft, y, None, monitor)
        if found.stopped != "converged":
            return found.coefficients, 0, found.stopped
        most = BOUNCES if self.max_iter < 0 else self.max_iter
        return billiard.solve(K + 1.0, y, found.coefficients, bounces=most, random=random, monitor=monitor)

    def _separated(
        self, gram: GramOperator, y: Vector, random: np.random.Generator | None, monitor: Monitor
    ) -> perceptron.Separation:
        """Some function of version space."""
        found = perceptron.solve(gram, y, max_epochs=MOST_EPOCHS, random=random, monitor=monitor)
        if found.stopped == "iterations":
            raise Infeasible(
                "the kernel does not separate the classes, and version space is empty: give softness > 0, or a kernel "
                "of smaller width"
            )
        return found

    def _averaged(
        self, gram: GramOperator, y: Vector, random: np.random.Generator, monitor: Monitor
    ) -> tuple[Vector, int, Stopped]:
        """The mean of perceptrons of norm one."""
        total, updates = np.zeros(y.size), 0
        for _ in range(self.members):
            found = self._separated(gram, y, random, monitor)
            c = found.coefficients
            if found.stopped != "converged":
                return (total if total.any() else c), updates, found.stopped
            square = float(c @ np.asarray(gram.dot(c))) + float(c.sum()) ** 2
            total, updates = total + c / np.sqrt(square), updates + found.updates
        return total / self.members, updates, "converged"
