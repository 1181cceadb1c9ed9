"""The machines that learn all classes in one problem, as scikit-learn classifiers.

The problems and their scalings are stated in `mercer.problems.multiclass` and `mercer.problems.multinomial`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_softmax
from sklearn.utils._param_validation import StrOptions

from mercer.gram import Gram, GramOperator
from mercer.machine.arguments import is_linear
from mercer.machine.training_set import TrainingSet
from mercer.multiclass.base import Array, ClassMachine
from mercer.problems.multiclass import BredensteinerBennett, CrammerSinger, LeeLinWahba, WestonWatkins
from mercer.problems.multinomial import MultinomialLogistic, softmax
from mercer.solvers.multiclass import logistic_pairs, multinomial
from mercer.solvers.solution import Solution


@dataclass(kw_only=True, eq=False, repr=False)
class CrammerSingerSVC(ClassMachine):
    """Crammer and Singer's multiclass support vector machine.

        min 1/2 sum_m ||f_m||^2 + C sum_i w_i max_{j != y_i} (1 - f_{y_i}(x_i) + f_j(x_i))_+

    Two classes give the binary machine with 2 C.  On the linear kernel C is that of LIBLINEAR's solver 4.

    Parameters
    ----------
    C : positive number; large means little regularisation.
    kernel, degree, gamma, coef0 : as in scikit-learn; gamma = "scale" counts rows by sample weight.  `kernel` may also
        be a Kernel object, a function, "precomputed".
    bias : "none", "free" (outside the penalty) or "penalised" (1/2 |b|^2 joins the norm).
    class_weight : as in scikit-learn.
    tol : relative duality gap at which training ends.
    max_iter : most steps on a point (passes over the points on the linear kernel); -1 is no limit.
    max_time : seconds after which the best so far is kept.
    random_state : seed of landmarks that have none of their own.
    approximation : None for the exact machine, a low-rank kernel such as Nystrom(1000) from `mercer.lowrank`, or "auto"
        to let size and memory decide: the linear machine on its features, kept as an expansion on the landmarks.
    memory : bytes for kernel values, as a number or text like "2 GiB"; None is a quarter of what is free.
    precision : of kernel values; "auto" is float64 up to 2048 points, and of features, and float32 above.
    warm_start : begin the next fit from the solution of this one, for the same points and other parameters.
    verbose : print a line for every record of the solver.
    n_jobs : threads.

    Attributes
    ----------
    classes_ : the labels.
    support_, support_vectors_, n_support_ : points with a non-zero coefficient, their number in each class.
    dual_coef_ : coefficients (k, n_SV); intercept_ (k,).
    coef_ : weight vectors (k, d) of a linear kernel.
    kernel_ : the kernel that was used.
    objective_, dual_objective_, gap_ : the certificate, of the low-rank problem where there is an approximation.
    solver_, stopped_, n_iter_, history_, solution_, plan_ : how it was reached.
    approximation_, approximation_reason_, feature_map_ : as in `SVC`.

    """

    _problem = CrammerSinger

    bias: str = "none"


class WestonWatkinsSVC(ClassMachine):
    """Weston and Watkins' multiclass support vector machine.

        min 1/2 sum_m ||f_m||^2 + C sum_i w_i sum_{j != y_i} (2 - f_{y_i}(x_i) + f_j(x_i))_+

    Two classes give the binary machine with the same C.  Parameters and attributes are those of `CrammerSingerSVC`.
    """

    _problem = WestonWatkins


class LeeLinWahbaSVC(ClassMachine):
    """Lee, Lin and Wahba's multiclass support vector machine, Fisher consistent for any number of classes.

        min 1/2 sum_m ||f_m||^2 + C sum_i w_i sum_{j != y_i} (f_j(x_i) + 1/(k - 1))_+,    sum_m f_m = 0

    Two classes give the binary machine with C/2.  Parameters and attributes are those of `CrammerSingerSVC`.
    """

    _problem = LeeLinWahba

    def _choice(self, training: TrainingSet) -> tuple[GramOperator, Callable[..., Solution]]:
        """Most points are support vectors, and each is worked on many times: the matrix is held where that pays."""
        if not is_linear(training.kernel):
            training.share()
        return super()._choice(training)


class BredensteinerBennettSVC(ClassMachine):
    """Bredensteiner and Bennett's multiclass support vector machine.

        min 1/2 sum_{lm} ||f_l - f_m||^2 + 1/2 sum_m ||f_m||^2 + C sum_i w_i sum_{j != y_i} (1 - f_{y_i} + f_j)_+

    It is solved as the Weston-Watkins machine it is equivalent to; objective and gap are those of the problem above.
    Parameters and attributes are those of `CrammerSingerSVC`; the bias is "free" or "none".
    """

    _problem = BredensteinerBennett

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ClassMachine._parameter_constraints,
        "bias": [StrOptions({"free", "none"})],
    }


@dataclass(kw_only=True, eq=False, repr=False)
class KernelLogistic(ClassMachine):
    """Multinomial kernel logistic regression.

        min 1/2 sum_m ||f_m||^2 - C sum_i w_i log p_{y_i}(x_i),    p = softmax(f + b)

    Two classes give binary logistic regression of f_1 - f_0 with 2 C.  Parameters and attributes are those of
    `CrammerSingerSVC`; every point is a support vector, and

    solver : "auto" or "newton", Newton's method with conjugate gradients, for any number of classes and points;
        "pairs", the dual two variables at a time (Keerthi et al. 2005), for two classes, a free bias and few points.
    max_iter : most Newton steps, or pair steps.
    """

    _problem = MultinomialLogistic

    tol: float = 1e-6
    solver: str = "auto"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ClassMachine._parameter_constraints,
        "solver": [StrOptions({"auto", "newton", "pairs"})],
    }

    def _choice(self, training: TrainingSet) -> tuple[GramOperator, Callable[..., Solution]]:
        """Newton's method needs products alone: the matrix is held where it fits, else computed again in tiles."""
        solve = logistic_pairs.solve if self.solver == "pairs" else multinomial.solve
        if training.kind not in ("features", "objects") or training.reduction is not None:
            return training.whole, solve
        memory, precision = training.resources.memory, training.resources.precision
        return Gram(self.kernel_, training.points, memory=memory, precision=precision), solve

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities (n, k)."""
        return softmax(self._values(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the class probabilities (n, k)."""
        return np.asarray(log_softmax(self._values(X), axis=1))
