"""Stacking: a machine h on the outputs of the members, f(x) = h(f_1(x), ..., f_q(x)).

The second machine is trained on outputs of members that did not see the point (Wolpert 1992; Hamers 2004, section 6.5):
exact leave-one-out for least squares, folds for others.  A linear one costs as much as there are members, and Wolpert
and Breiman (1996) found nothing better; a kernel machine on the outputs costs as much as there are points.
"""

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context, clone, is_classifier
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import has_fit_parameter

from mercer.ensembles.base import Array, outputs_of
from mercer.ensembles.sampled import SampledEnsemble
from mercer.errors import InvalidInput
from mercer.least_squares import LSSVC, LSSVR
from mercer.machine.fitted_state import State, Values


@dataclass(kw_only=True, eq=False, repr=False)
class Stacking(SampledEnsemble):
    """A machine trained on the outputs of the members.

    Parameters
    ----------
    base : a list of machines, each trained on all points; or one machine, whose members are trained on samples.  None
        is least squares with a Gaussian and with a linear kernel.
    members, sample, size, features, noise : as in `Bagging`, for one machine as the base; disjoint parts by default.
    final : the second machine, classifier or regressor as the base; None is least squares with a linear kernel and C
        chosen by leave-one-out.  It sees q k columns, those of each member divided by their root mean square.
    folds : of each member's sample, where exact leave-one-out is not free.
    random_state, verbose, n_jobs, executor : as in `Bagging`.

    Attributes
    ----------
    final_ : the fitted second machine; scales_ (q k,) what its columns were divided by.
    member_outputs_ : outputs (n, q k) that it was trained on, before the division.
    loo_member_errors_ : error of each member alone (q,) at points it did not see.
    bank_, coverage_ and all others : as in `Bagging`; certificates are those of the members and of the second machine.

    """

    _above = "final_"

    final: Any = None
    folds: int = 5
    members: int = 5

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SampledEnsemble._parameter_constraints,
        "final": "no_validation",  # type: ignore[dict-item]  # scikit-learn takes the word
        "folds": [Interval(Integral, 2, None, closed="left")],
    }

    @property
    def _base(self) -> Any:
        return [LSSVC(), LSSVC(kernel="linear")] if self.base is None else self.base

    @property
    def _final(self) -> Any:
        default = LSSVC if self._classify else LSSVR
        return default(kernel="linear", C="loo") if self.final is None else self.final

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Stacking":
        """Train on points X and targets y (n,); `sample_weight` (n,) multiplies how often a point counts."""
        if is_classifier(self._final) != self._classify:
            raise InvalidInput("final must be a classifier where the base is one, and a regressor where it is not")
        data = self._data(X, y, sample_weight).merged()
        if data.weights is not None and not has_fit_parameter(self._final, "sample_weight"):
            raise InvalidInput(f"{type(self._final).__name__} takes no sample_weight: leave it out")
        with self._watched(X, y) as monitor:
            crew = self._crew(data, self._generator())
            trained = self._train_members(crew, monitor, self.folds)
            F = crew.unseen(self.bank_, trained)
            crew.forget()
            self.loo_member_errors_ = np.array([self._error(f, data.y, data.weights) for f in F])
            columns = _columns(F)
            spread = np.sqrt(np.average(columns**2, axis=0, weights=data.weights))
            self.scales_ = np.where(spread > 0.0, spread, 1.0)
            options = {} if data.weights is None else {"sample_weight": data.weights}
            self.final_ = clone(self._final).fit(columns / self.scales_, data.y, **options)
            self.member_outputs_ = columns[data.point]
            self._conclude(monitor.stopped)
        return self

    def _state(self) -> State:
        learnt: State = {"scales_": Values(("columns",)), "member_outputs_": Values(("rows", "columns"))}
        return {**super()._state(), **learnt, "loo_member_errors_": Values(("members",))}

    def _combine(self, F: Array) -> Array:
        return outputs_of(self.final_, _columns(F) / self.scales_, F.shape[2])

    @property
    def loo_error_(self) -> float:
        """Leave-one-out error of the second machine on outputs of members that did not see the point.

        For a second machine that has one; what it learnt from the members' other outputs stays fixed.
        """
        return float(self.final_.loo_error_)


def _columns(F: Array) -> Array:
    """Outputs (q, n, k) as columns (n, q k)."""
    return np.ascontiguousarray(F.transpose(1, 0, 2).reshape(F.shape[1], -1))
