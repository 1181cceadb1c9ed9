"""The machines that learn all classes in one problem, as scikit-learn classifiers.

The problems and their scalings are stated in `mercer.problems.multiclass` and `mercer.problems.multinomial`.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from mercer.estimation.similarity import is_linear
from mercer.estimation.training import TrainingSet
from mercer.gram import Gram, GramOperator
from mercer.multiclass.machine import Array, ClassMachine, Task
from mercer.problems.multiclass import BredensteinerBennett, CrammerSinger, LeeLinWahba, WestonWatkins
from mercer.problems.multinomial import MultinomialLogistic, softmax
from mercer.solvers import crammer_singer, lee_lin_wahba, multinomial, weston_watkins
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution


class CrammerSingerSVC(ClassMachine):
    """Crammer and Singer's multiclass support vector machine.

        min 1/2 sum_m ||f_m||^2 + C sum_i w_i max_{j != y_i} (1 - f_{y_i}(x_i) + f_j(x_i))_+

    Two classes give the binary machine with 2 C.  On the linear kernel C is that of LIBLINEAR's solver 4.

    Parameters
    ----------
    C : positive number; large means little regularisation.
    kernel, degree, gamma, coef0 : as in scikit-learn; `kernel` may also be a Kernel object, a function, "precomputed".
    bias : "none", "free" (outside the penalty) or "penalised" (1/2 |b|^2 joins the norm).
    class_weight : as in scikit-learn.
    tol : relative duality gap at which training ends.
    max_iter : most steps on a point (passes over the points on the linear kernel); -1 is no limit.
    max_time : seconds after which the best so far is kept.
    memory : bytes for kernel values, as a number or text like "2 GiB"; None is a quarter of what is free.
    precision : of kernel values; "auto" is float64 up to 2048 points and float32 above.
    n_jobs : threads.

    Attributes
    ----------
    classes_ : the labels.
    support_, support_vectors_, n_support_ : points with a non-zero coefficient, their number in each class.
    dual_coef_ : coefficients (k, n_SV); intercept_ (k,).
    coef_ : weight vectors (k, d) of a linear kernel.
    kernel_ : the kernel that was used.
    objective_, dual_objective_, gap_ : the certificate.
    solver_, stopped_, n_iter_, history_, solution_ : how it was reached.

    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        bias: str = "none",
        class_weight: Any = None,
        tol: float = 1e-3,
        max_iter: int = -1,
        max_time: float | None = None,
        memory: int | str | None = None,
        precision: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            C,
            kernel=kernel,
            degree=degree,
            gamma=gamma,
            coef0=coef0,
            bias=bias,
            class_weight=class_weight,
            tol=tol,
            max_iter=max_iter,
            max_time=max_time,
            memory=memory,
            precision=precision,
            n_jobs=n_jobs,
        )

    def _problem(self, gram: GramOperator, task: Task) -> Any:
        bias: Any = self.bias
        return CrammerSinger(gram, task.codes, self.C, task.weights, bias, k=task.k)

    def _solver(self) -> Callable[..., Solution]:
        return crammer_singer.solve


class WestonWatkinsSVC(ClassMachine):
    """Weston and Watkins' multiclass support vector machine.

        min 1/2 sum_m ||f_m||^2 + C sum_i w_i sum_{j != y_i} (2 - f_{y_i}(x_i) + f_j(x_i))_+

    Two classes give the binary machine with the same C.  Parameters and attributes are those of `CrammerSingerSVC`.
    """

    def _problem(self, gram: GramOperator, task: Task) -> Any:
        bias: Any = self.bias
        return WestonWatkins(gram, task.codes, self.C, task.weights, bias, k=task.k)

    def _solver(self) -> Callable[..., Solution]:
        return weston_watkins.solve


class LeeLinWahbaSVC(ClassMachine):
    """Lee, Lin and Wahba's multiclass support vector machine, Fisher consistent for any number of classes.

        min 1/2 sum_m ||f_m||^2 + C sum_i w_i sum_{j != y_i} (f_j(x_i) + 1/(k - 1))_+,    sum_m f_m = 0

    Two classes give the binary machine with C/2.  Parameters and attributes are those of `CrammerSingerSVC`.
    """

    def _problem(self, gram: GramOperator, task: Task) -> Any:
        bias: Any = self.bias
        return LeeLinWahba(gram, task.codes, self.C, task.weights, bias, k=task.k)

    def _solver(self) -> Callable[..., Solution]:
        return lee_lin_wahba.solve

    def _train(self, training: TrainingSet, task: Task, monitor: Monitor) -> Solution:
        """Most points are support vectors, and each is worked on many times: the matrix is held where that pays."""
        if not is_linear(self.kernel_):
            training.share()
        return super()._train(training, task, monitor)


class BredensteinerBennettSVC(ClassMachine):
    """Bredensteiner and Bennett's multiclass support vector machine.

        min 1/2 sum_{lm} ||f_l - f_m||^2 + 1/2 sum_m ||f_m||^2 + C sum_i w_i sum_{j != y_i} (1 - f_{y_i} + f_j)_+

    It is solved as the Weston-Watkins machine it is equivalent to; objective and gap are those of the problem above.
    Parameters and attributes are those of `CrammerSingerSVC`; the bias is "free" or "none".
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ClassMachine._parameter_constraints,
        "bias": [StrOptions({"free", "none"})],
    }

    def _problem(self, gram: GramOperator, task: Task) -> Any:
        bias: Any = self.bias
        return BredensteinerBennett(gram, task.codes, self.C, task.weights, bias, k=task.k)

    def _solver(self) -> Callable[..., Solution]:
        return weston_watkins.solve


class KernelLogistic(ClassMachine):
    """Multinomial kernel logistic regression.

        min 1/2 sum_m ||f_m||^2 - C sum_i w_i log p_{y_i}(x_i),    p = softmax(f + b)

    Two classes give binary logistic regression of f_1 - f_0 with 2 C.  Parameters and attributes are those of
    `CrammerSingerSVC`; `max_iter` counts Newton steps, and every point is a support vector.
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        bias: str = "free",
        class_weight: Any = None,
        tol: float = 1e-6,
        max_iter: int = -1,
        max_time: float | None = None,
        memory: int | str | None = None,
        precision: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            C,
            kernel=kernel,
            degree=degree,
            gamma=gamma,
            coef0=coef0,
            bias=bias,
            class_weight=class_weight,
            tol=tol,
            max_iter=max_iter,
            max_time=max_time,
            memory=memory,
            precision=precision,
            n_jobs=n_jobs,
        )

    def _problem(self, gram: GramOperator, task: Task) -> Any:
        bias: Any = self.bias
        return MultinomialLogistic(gram, task.codes, self.C, task.weights, bias, k=task.k)

    def _train(self, training: TrainingSet, task: Task, monitor: Monitor) -> Solution:
        """Newton's method needs products alone: the matrix is held where it fits, else computed again in tiles."""
        if training.kind in ("features", "objects"):
            gram = Gram(self.kernel_, training.points, memory=training.memory, precision=training.precision)
        else:
            gram = training.whole
        problem = self._problem(gram, task)
        return multinomial.solve(problem, tol=self.tol, max_iter=self.max_iter, monitor=monitor)

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities (n, k)."""
        return softmax(self._values(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the class probabilities (n, k)."""
        f = self._values(X)
        f = f - f.max(axis=1, keepdims=True)
        return np.asarray(f - np.log(np.exp(f).sum(axis=1, keepdims=True)))
