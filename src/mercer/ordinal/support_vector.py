"""OrdinalSVC: large-margin ordinal regression, by thresholds or by pairs."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from mercer.gram import GramOperator
from mercer.machine.base import Index, Vector
from mercer.ordinal.base import SOLVERS, RankClassifier
from mercer.ordinal.boundaries import rank_boundaries
from mercer.problems.latent import LatentProblem
from mercer.problems.rank_thresholds import RankThresholds
from mercer.problems.ranking import RankedPairs
from mercer.solvers.solution import Solution


@dataclass(kw_only=True, eq=False, repr=False)
class OrdinalSVC(RankClassifier):
    """Support vector ordinal regression: one function, and a threshold between every two neighbouring ranks.

        min 1/2 ||f||^2 + C sum_j sum_{i in I_j} w_i l(1 - s_ij (f(x_i) - b_j)),    s_ij = 1 for y_i above j, else -1

    The ranks are the labels in their own order (numbers, or texts in alphabetical order).

    Parameters
    ----------
    C : positive number; large means little regularisation.
    thresholds : "implicit": every point counts at every threshold, and these are in order by themselves; "explicit": a
        threshold hears the two ranks beside it, and the order is a constraint (Chu and Keerthi 2007); "pairs": f is
        learnt from all pairs, as by `RankSVM`, and thresholds are put where the ranks are parted with the smallest
        absolute error (Herbrich, Graepel and Obermayer 2000).
    loss : "hinge" or "squared_hinge".
    solver : with thresholds="pairs" as in `RankSVM`; the others are solved by Newton's method ("auto" or "newton").
    class_weight : as in scikit-learn.
    kernel, degree, gamma, coef0, tol, max_iter, max_time, approximation, random_state, memory, precision, warm_start,
    verbose, n_jobs : as in `RankSVM`.

    Attributes
    ----------
    classes_ : the ranks (k,), from low to high.
    thresholds_ : b (k - 1,), never decreasing.
    Others : as in `RankSVM`.

    """

    thresholds: str = "implicit"
    loss: str = "hinge"
    solver: str = "auto"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RankClassifier._parameter_constraints,
        "thresholds": [StrOptions({"implicit", "explicit", "pairs"})],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "solver": [StrOptions({"auto", *SOLVERS})],
    }

    def _solver(self) -> Any:
        return SOLVERS["newton" if self.solver == "auto" else self.solver]

    def _problem(self, gram: GramOperator, codes: Index, weights: Vector | None) -> LatentProblem:
        loss: Any = self.loss
        thresholds: Any = self.thresholds
        if thresholds == "pairs":
            return RankedPairs(gram, codes, self.C, weights, loss)
        return RankThresholds(gram, codes, self.C, weights, loss, thresholds)

    def _thresholds(self, solution: Solution, codes: Index, weights: Vector | None) -> Vector:
        if self.thresholds == "pairs":
            return rank_boundaries(solution.details["f"], codes, weights)
        return super()._thresholds(solution, codes, weights)

    def _decisions(self, f: Vector) -> NDArray[np.float64]:
        """A number for each rank (n, k), the largest that of the answer; for two ranks f - b (n,).

        The number of rank m is the sum of f(x) - b_j over the thresholds below it: that of m exceeds that of m - 1
        where f(x) lies above the threshold between them.
        """
        above = f[:, None] - self.thresholds_
        if above.shape[1] == 1:
            return np.asarray(above[:, 0])
        return np.concatenate((np.zeros((len(above), 1)), np.cumsum(above, axis=1)), axis=1)
