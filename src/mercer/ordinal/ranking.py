"""RankSVM: a latent function that orders points, learnt from all pairs of different rank."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_consistent_length

from mercer.errors import InvalidInput
from mercer.gram import GramOperator
from mercer.machine import arguments
from mercer.machine.arguments import kind_of, sample_weights
from mercer.machine.base import Index, Vector
from mercer.ordinal.base import SOLVERS, LatentMachine
from mercer.ordinal.metrics import scaled_pair_loss
from mercer.problems.normed_pairs import NormedPairs
from mercer.problems.ranking import RankedPairs


@dataclass(kw_only=True, eq=False, repr=False)
class RankSVM(LatentMachine):
    """Large-margin ordering: points of higher rank should have values higher by one, within their group.

        min 1/2 ||f||^2 + C sum over pairs with y_i > y_j of w_i w_j l(1 - f(x_i) + f(x_j)),   l(z) = (z)_+^2 or (z)_+

    Pairs are those of one group (a query), all n points without `groups`.  They are never formed: one step costs a
    product with the kernel matrix, O(n d) for a linear kernel, and O(n log n).  Ties teach nothing; neither does a
    group of one point or one rank.  C counts for every pair: with n points there may be n^2 / 2.

    Parameters
    ----------
    C : positive number; large means little regularisation.
    loss : "squared_hinge" or "hinge".
    norm : "l2", the norm of f as above; "l1" or "linf", that of the coefficients of f = sum_j a_j k(x_j, .), the sum of
        their absolute values, which leaves few of them, or the largest: a linear program, for the hinge alone.
    solver : "newton", Newton's method with conjugate gradients; "one_slack", cutting planes; "working_sets", a variable
        for each pair, which tells the pairs that define the order (`solution_.details["free_pairs"]`) and takes 8 n^2
        bytes.  "auto" is Newton's method, the fastest on all but the smallest problems; for "l1" and "linf" cutting
        planes.
    kernel, degree, gamma, coef0 : as in scikit-learn; "linear" is what long lists are usually ranked by.  `kernel` may
        also be a Kernel object, a function, "precomputed".
    tol : relative duality gap at which training ends.
    max_iter : most Newton steps, planes, or steps on a pair; -1 is no limit.
    max_time : seconds after which the best so far is kept.
    approximation, random_state, memory, precision, warm_start, verbose, n_jobs : as in `CrammerSingerSVC`.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_ : the points of the expansion and their coefficients (1, n_SV).
    coef_ : weights (1, d) of a linear kernel.
    kernel_, objective_, dual_objective_, gap_, solver_, stopped_, n_iter_, history_, solution_, plan_,
    approximation_, approximation_reason_, feature_map_ : as in `CrammerSingerSVC`.

    """

    loss: str = "squared_hinge"
    norm: str = "l2"
    solver: str = "auto"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LatentMachine._parameter_constraints,
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "norm": [StrOptions({"l2", "l1", "linf"})],
        "solver": [StrOptions({"auto", *SOLVERS})],
    }

    def _solver(self) -> Any:
        return SOLVERS[("newton" if self.norm == "l2" else "one_slack") if self.solver == "auto" else self.solver]

    def _problem(
        self, gram: GramOperator, ranks: Index, weights: Vector | None, queries: Index | None
    ) -> RankedPairs | NormedPairs:
        """Pairs with the norm of f, or with one of the coefficients."""
        norm: Any = self.norm
        loss: Any = self.loss
        if norm == "l2":
            return RankedPairs(gram, ranks, self.C, weights, loss, queries)
        if loss != "hinge":
            raise InvalidInput(f"norm={norm!r} makes a linear program of the hinge: set loss='hinge'")
        return NormedPairs(gram, ranks, self.C, weights, norm, queries)

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> "RankSVM":
        """Train on points X (n, d), dense or CSR, relevances y (n,), and the query of every point, `groups` (n,).

        A pair counts with the product of the weights of its points.
        """
        kind = kind_of(self.kernel, X)
        X, y = arguments.training_data(self, kind, X, y, numeric=True)
        if len(y) < 2:
            raise InvalidInput("an order is learnt from two points at least; got 1 sample")
        weights = sample_weights(sample_weight, X)
        ranks = np.unique(y, return_inverse=True)[1]
        queries = group_codes(groups, y)
        with self._watched(X, y) as monitor:
            targets = None if self.approximation is None else np.asarray(y, dtype=np.float64)
            labels = np.column_stack([ranks, queries])
            training, weights = self._training_set(kind, X, weights, labels, targets, largest=0.0)
            if training.kept is not None:
                ranks, queries = ranks[training.kept], queries[training.kept]
                queries = np.unique(queries, return_inverse=True)[1]
            gram = self._operator(training)
            solution = self._solved(self._problem(gram, ranks, weights, queries), monitor)
        self._finish(X, training, gram, solution)
        return self

    def decision_function(self, X: Any) -> Vector:
        """Values (n,): the higher, the earlier in the order."""
        return self.utility(X)

    def predict(self, X: Any) -> Vector:
        """The same values: what a ranking is sorted by, largest first."""
        return self.utility(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> float:
        """Share of the pairs of different rank in one group that are put in the right order; ties are wrong."""
        return 1.0 - scaled_pair_loss(y, self.utility(X), groups=groups, sample_weight=sample_weight)


def group_codes(groups: Any, y: Any) -> NDArray[np.intp]:
    """The query (n,) of every point as numbers from 0 on; all zero without groups."""
    if groups is None:
        return np.zeros(len(y), dtype=np.intp)
    check_consistent_length(groups, y)
    return np.asarray(np.unique(np.asarray(groups), return_inverse=True)[1], dtype=np.intp)
