"""nu-support vector classification: a share nu of errors in the place of their cost C.

    min 1/2 ||f||^2 - nu (sum_i w_i) rho + sum_i w_i (rho - y_i (f(x_i) + b))_+ ,  then f / rho

(Schoelkopf and Smola 2002, chapter 7).
"""

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from mercer.errors import Infeasible, InvalidInput
from mercer.gram import GramOperator
from mercer.problems import NuClassification, Problem
from mercer.svm.classification import Classifier, Matrix, Vector


@dataclass(kw_only=True, eq=False, repr=False)
class NuSVC(Classifier):
    """nu-support vector classification: nu bounds the share of margin errors from above, of support vectors from below.

    The parameters are those of `SVC` with `nu` in (0, 1] for `C`, and without `loss`, `bias` and `basis`.  Each pair of
    classes admits nu up to twice the (weighted) share of its smaller class.  Class weights count, as sample weights do;
    where they make nu infeasible, the largest feasible one is taken.
    """

    nu: float = 0.5

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Classifier._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    def _problem(self, gram: GramOperator, y: Vector, weights: Vector | None, basis: Matrix | None = None) -> Problem:
        nu = self.nu
        if self.class_weight is not None and weights is not None:
            smaller = min(float(weights[y > 0].sum()), float(weights[y < 0].sum()))
            nu = min(nu, 2.0 * smaller / float(weights.sum()))
        try:
            return NuClassification(gram, y, nu, weights, basis)
        except Infeasible as error:
            raise Infeasible(f"specified nu is infeasible: {error}") from None

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
