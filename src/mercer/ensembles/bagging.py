"""Bagging: members on random samples of the points, and the mean of their outputs.

Averaging leaves the mean of a predictor as it is and removes its variance (Breiman 1996; Hamers 2004, section 6.2).  At
each x, with f_D trained on data D and the ideal bag E_D f_D,

    E_D (f_D - E[y|x])^2 - (E_D f_D - E[y|x])^2 = Var_D f_D ,

so that stable machines gain little.  Points that a member did not draw estimate its error at no cost: the out-of-bag
output at a point is that of the members that did not see it.
"""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from mercer.ensembles import combining
from mercer.ensembles.base import Array
from mercer.ensembles.sampled import SampledEnsemble
from mercer.machine.fitted_state import Number, State, Values


@dataclass(kw_only=True, eq=False, repr=False)
class Bagging(SampledEnsemble):
    """The mean, median or vote of members on random samples of the points.

    Parameters
    ----------
    base : any machine of mercer or of scikit-learn, classifier or regressor; None is `mercer.SVC()`.  A kernel whose
        width is read off the points, such as gamma="scale", has one width for all members, read off all points; C="loo"
        and sigma="loo" are chosen by each member.
    members : how many.
    sample : "bootstrap" draws with replacement, a point drawn twice counting with weight two; "subsample" without
        (subbagging); "disjoint" parts; "committee" leaves one part of a partition out for each member.  Every member
        sees every class.
    size : of a bootstrap or subsample, a number of points or a share of them.
    features : how many features each member sees, at random; a number or a share of them.
    noise : standard deviation of Gaussian noise on the training points of each member, in units of that of the feature.
    combine : "mean", "median", "trimmed" (the mean without the lowest and highest `trim` of the outputs: robust against
        members gone wild) or "vote".
    trim : share that "trimmed" leaves out on either side.
    random_state : seed of everything random.
    verbose : print a line for every member.
    n_jobs : threads (None: all).
    executor : a `concurrent.futures.Executor` to train the members by, such as a process pool or that of a cluster;
        None is mercer's threads.

    Attributes
    ----------
    bank_ : the members as one thing; `member_outputs(X)` their outputs (q, n, k), `members_` the machines.
    coverage_ : how the samples cover the points (`mercer.ensembles.Coverage`).
    oob_outputs_ : out-of-bag outputs (n, k) at the training points of positive weight; NaN where all members saw it.
    oob_error_ : their error rate, or mean squared error; NaN where there are none.
    classes_ : the labels of a classifier.
    objective_, dual_objective_, gap_ : the certificate where the base has one, summed over the members.
    kernel_, solver_, solution_, history_, n_iter_, stopped_, plan_ : as in `OutputCode`.

    """

    sample: str = "bootstrap"
    combine: str = "mean"
    trim: float = 0.1

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SampledEnsemble._parameter_constraints,
        "combine": [StrOptions(set(combining.RULES))],
        "trim": [Interval(Real, 0.0, 0.5, closed="left"), Integral],
    }

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Bagging":
        """Train on points X and targets y (n,); `sample_weight` (n,) multiplies how often a point counts."""
        data = self._data(X, y, sample_weight).merged()
        with self._watched(X, y) as monitor:
            crew = self._crew(data, self._generator())
            trained = self._train_members(crew, monitor)
            found = left_out(crew.unseen(self.bank_, trained), self._combine)
            crew.forget()
        known = np.isfinite(found[:, 0])
        weights = None if data.weights is None else data.weights[known]
        self.oob_error_ = self._error(found[known], data.y[known], weights) if known.any() else float("nan")
        self.oob_outputs_ = found[data.point]
        return self

    def _state(self) -> State:
        return {**super()._state(), "oob_error_": Number(), "oob_outputs_": Values(("rows", "columns"), finite=False)}

    def _combine(self, F: Array) -> Array:
        return combining.trimmed(F, self.trim) if self.combine == "trimmed" else combining.RULES[self.combine](F)


def left_out(F: Array, combine: Any) -> Array:
    """Combined outputs (n, k) at each point of the members whose outputs (q, n, k) are known there, NaN where none is.

    Points with the same members are combined together.
    """
    known = np.isfinite(F[:, :, 0])
    patterns, group = np.unique(known, axis=1, return_inverse=True)
    values = np.full(F.shape[1:], np.nan)
    for pattern, members in enumerate(patterns.T):
        if members.any():
            points = np.flatnonzero(np.ravel(group) == pattern)
            values[points] = combine(F[np.ix_(members, points)])
    return values
