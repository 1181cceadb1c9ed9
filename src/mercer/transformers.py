"""Features of a kernel as a step of a scikit-learn pipeline.

    make_pipeline(Standardise(), KernelFeatures("rbf", approximation=Nystrom(500)), LogisticRegression())

An approximation of `mercer.lowrank` turns a kernel into a feature map phi with <phi(x), phi(z)> ~ k(x, z).  Inside
mercer's own machines it is the argument `approximation=`; here it feeds any linear method, and with `KernelPCA` it is
kernel principal component analysis.
"""

from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from mercer.kernels import Kernel
from mercer.kernels.names import named_kernel
from mercer.lowrank.approximations import Approximation, Nystrom
from mercer.lowrank.feature_map import FeatureMap
from mercer.machine import advice, arguments
from mercer.machine.arguments import NAMES, HoldsValues, gamma_of, with_widths
from mercer.selection.bounds.multiclass import one_versus_all

Array = NDArray[np.float64]

DEFAULT_LANDMARKS = 100


@dataclass(kw_only=True, eq=False, repr=False)
class KernelFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, HoldsValues):  # type: ignore[misc]  # untyped
    """Features Z = phi(X), (n, p), with Z Z' close to the kernel matrix; its principal components with `KernelPCA`.

    Parameters
    ----------
    kernel, degree, gamma, coef0 : as in `SVC`: a name, or a Kernel object; a width "median" is read off the points.
    approximation : Nystrom(m), RandomFourier(m), KernelPCA(m, rank=r) or another of `mercer.lowrank`; None is
        Nystrom(100).
    memory : bytes, or text such as "512 MiB", that the choice of landmarks may take; None is a quarter of what is free.
    random_state : seed of landmarks and frequencies that have none of their own; None is 0: a fit is repeatable.

    Attributes
    ----------
    kernel_, approximation_ : what was used.
    feature_map_ : phi; its `points` are the landmarks, where there are any.
    n_features_in_, feature_names_in_ : as in scikit-learn.

    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions(NAMES - {"precomputed"}), Kernel],
        "approximation": [Approximation, None],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "memory": [Interval(Integral, 1, None, closed="left"), str, None],
        "random_state": ["random_state"],
    }

    kernel: Any = field(default="rbf", kw_only=False)
    approximation: Approximation | None = None
    degree: int = 3
    gamma: Any = "scale"
    coef0: float = 0.0
    memory: int | str | None = None
    random_state: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def fit(self, X: Any, y: Any = None) -> Self:
        """Make the feature map for points X (n, d), dense or CSR; y (n,) is used by landmarks that are chosen by it."""
        X, _ = arguments.training_data(self, "features", X, supervised=False)
        X = arguments.working_form(X)
        if isinstance(self.kernel, Kernel):
            self.kernel_ = with_widths(self.kernel, X)
        else:
            self.kernel_ = named_kernel(self.kernel, gamma_of(self.gamma, X, None), self.degree, self.coef0)
        advice.on_scales(self.kernel_, X)
        self.approximation_ = Nystrom(DEFAULT_LANDMARKS) if self.approximation is None else self.approximation
        targets = _columns(y) if self.approximation_.supervised else None
        self.feature_map_: FeatureMap = self.approximation_.feature_map(
            self.kernel_, X, y=targets, seed=self._seed(), memory=self.memory
        )
        return self

    def transform(self, X: Any) -> Array:
        """Features (n, p) of points X (n, d)."""
        check_is_fitted(self)
        X = arguments.prediction_data(self, "features", X, 0)
        return np.asarray(self.feature_map_.features(arguments.working_form(X)))

    @property
    def _n_features_out(self) -> int:
        return self.feature_map_.dimension

    def _seed(self) -> int:
        if self.random_state is None or isinstance(self.random_state, Integral):
            return int(self.random_state or 0)
        return int(check_random_state(self.random_state).randint(2**31 - 1))


def _columns(y: Any) -> Any:
    """Targets as numbers: one column of +-1 for each class of labels, real targets as they are."""
    if y is None or type_of_target(y).startswith("continuous"):
        return y
    classes, codes = np.unique(y, return_inverse=True)
    return one_versus_all(len(classes))[codes]
