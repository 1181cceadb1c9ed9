"""KernelPerceptron: wrong points are added until none is wrong; see `mercer.solvers.geometric.perceptron`."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from mercer.gram import GramOperator
from mercer.machine.base import Vector
from mercer.machine.fitted_state import State, Values
from mercer.solvers.geometric import perceptron
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Stopped
from mercer.svm.version_space import Separator

MOST_EPOCHS = 1000  # where classes cannot be separated the perceptron never ends by itself


@dataclass(kw_only=True, eq=False, repr=False)
class KernelPerceptron(Separator):
    """The perceptron in the space of a kernel.

        f = sum_j c_j (k(x_j, .) + 1),     c_i <- c_i + y_i w_i  whenever  y_i f(x_i) <= margin

    It ends where the kernel separates the classes by some margin rho, after at most R^2 / rho^2 updates (Novikoff).

    Parameters
    ----------
    margin : points count as wrong up to this value of y f; with 0 any separation will do.
    average : use the mean of f over all visits, which is less at the mercy of the last updates.
    shuffle : visit the points in a random order of every epoch, else as they are given.
    class_weight : as in scikit-learn; weights multiply the steps.
    max_iter : most epochs (visits to all points); -1 is 1,000.
    random_state : seed of the orders.
    kernel, degree, gamma, coef0, tol, approximation, memory, precision, max_time, warm_start, verbose, n_jobs
        As in `SVC`; `tol` and `warm_start` make no difference here.

    Attributes
    ----------
    classes_ : the labels.
    support_, support_vectors_, dual_coef_, intercept_ : the points that were ever wrong, with their coefficients
        (1 or k, n_SV).
    mistake_bounds_ : Novikoff's bound on the updates of each machine (1 or k,), by the separation that was found; inf
        where there is none.
    n_iter_ : updates of each machine; stopped_ is "converged" where all points are right.
    objective_, dual_objective_, gap_ : nan; a perceptron has no objective that could be bounded.
    kernel_, solver_, solution_, history_, plan_, approximation_, approximation_reason_, feature_map_ : as in `SVC`.

    """

    margin: float = 0.0
    average: bool = False
    shuffle: bool = False

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Separator._parameter_constraints,
        "margin": [Interval(Real, 0.0, None, closed="left")],
        "average": ["boolean"],
        "shuffle": ["boolean"],
    }
    _reason: ClassVar[str] = "perceptron: wrong points are added until none is wrong"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "KernelPerceptron":
        """Train on points X (n, d), dense or CSR, and labels y (n,); `sample_weight` (n,) multiplies the steps."""
        self._bounds: list[float] = []
        super().fit(X, y, sample_weight)
        self.mistake_bounds_ = np.array(self._bounds)
        return self

    def _separate(
        self, gram: GramOperator, y: Vector, weights: Vector, random: np.random.Generator, monitor: Monitor
    ) -> tuple[Vector, int, Stopped]:
        found = perceptron.solve(
            gram,
            y,
            sizes=weights,
            margin=self.margin,
            max_epochs=MOST_EPOCHS if self.max_iter < 0 else self.max_iter,
            average=self.average,
            random=random if self.shuffle else None,
            monitor=monitor,
        )
        self._bounds.append(perceptron.mistake_bound(gram, y, found.coefficients, self.margin))
        return found.coefficients, found.updates, found.stopped

    def _state(self) -> State:
        return {**super()._state(), "mistake_bounds_": Values(("outputs",))}
