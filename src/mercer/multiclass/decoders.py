"""From the outputs of the binary machines to a class.

With a code M (k, F) and outputs f(x) (F,), class r is charged

    hamming       sum_a (1 - sign(M_ra f_a)) / 2        a zero entry, or a zero output, costs one half
    loss          sum_a L(M_ra f_a)                     L the loss the machines were trained with

and the class of the smallest charge wins (Allwein, Schapire and Singer 2000; Rifkin 2002, section 4.2.2).  For
one-versus-all the second is argmax f_r whenever L(z) - L(-z) falls strictly, as it does for the hinge, square and
exponential losses; for all-versus-all the first is the majority vote.
Bounds on the training error of both are in `mercer.selection.bounds.multiclass`.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer import losses
from mercer.errors import InvalidInput
from mercer.losses import Loss

Array = NDArray[np.float64]

LOSSES: dict[str, type[Loss]] = {
    "hinge": losses.Hinge,
    "squared_hinge": losses.SquaredHinge,
    "square": losses.Square,
    "logistic": losses.Logistic,
    "exponential": losses.Exponential,
    "perceptron": losses.Perceptron,
    "absolute": losses.Absolute,
    "huber": losses.Huber,
}
LARGEST_EXPONENT = 500.0  # beyond it exp(-z), and sums of it over machines, would overflow
CHUNK = 1 << 23  # outputs decoded together


def loss_of(loss: str | Loss) -> Loss:
    """A Loss by its name, or the one given."""
    if isinstance(loss, Loss):
        return loss
    if loss not in LOSSES:
        raise InvalidInput(f"loss={loss!r} is not one of {', '.join(LOSSES)}, and not an object of mercer.losses")
    return LOSSES[loss]()


def _three_sides(loss: Loss, f: Array) -> tuple[Array, Array, Array]:
    """L(f), L(-f) (n, F) and L(0) (n, 1); a loss of residuals is that of predicting z where 1 is true: (1 - z)^2.

    Charges of the exponential loss would overflow: those of a point with an output beyond `LARGEST_EXPONENT` are all
    multiplied by one small number, which leaves their order alone.
    """
    if not isinstance(loss, losses.Exponential):
        return loss.value(1.0, f), loss.value(1.0, -f), np.full((len(f), 1), float(loss.value(1.0, 0.0)))
    shift = np.maximum(np.abs(f).max(axis=1, keepdims=True) - LARGEST_EXPONENT, 0.0)
    return np.exp(-f - shift), np.exp(f - shift), np.exp(-shift)


def hamming(code: ArrayLike, outputs: ArrayLike) -> Array:
    """Charges (n, k): the number of machines that disagree with each class, zeros counting one half."""
    M, f = np.asarray(code, dtype=np.float64), np.asarray(outputs, dtype=np.float64)
    return np.asarray(0.5 * (M.shape[1] - np.sign(f) @ M.T))


def loss_based(code: ArrayLike, outputs: ArrayLike, loss: Loss) -> Array:
    """Charges (n, k): total loss of the outputs (n, F) against each row of the code."""
    M, f = np.asarray(code), np.asarray(outputs, dtype=np.float64)
    against, by = (M < 0).T.astype(np.float64), (M > 0).T.astype(np.float64)
    idle = (M == 0).sum(axis=1)
    charges = np.empty((len(f), len(M)))
    step = max(1, CHUNK // M.shape[1])
    for start in range(0, len(f), step):
        positive, negative, none = _three_sides(loss, f[start : start + step])
        charges[start : start + step] = positive @ by + negative @ against + none * idle
    return charges


def natural_loss(base: Any) -> Loss:
    """The loss an estimator minimises, as far as its kind tells; hinge for unknown ones with decision values.

    Machines that only give probabilities p are decoded by their log-odds under the logistic loss: the class of the
    largest product of probabilities.
    """
    kind = type(base).__name__
    given = getattr(base, "loss", None)
    if kind in ("Pipeline", "GridSearchCV", "RandomizedSearchCV", "FixedThresholdClassifier"):
        return natural_loss(base.steps[-1][1] if kind == "Pipeline" else base.estimator)
    if kind in ("LinearSVC", "SVC"):
        return losses.SquaredHinge() if given == "squared_hinge" else losses.Hinge()
    if kind == "SGDClassifier":
        names = {"log_loss": "logistic", "squared_error": "square", "modified_huber": "squared_hinge"}
        return loss_of(names.get(str(given), str(given) if str(given) in LOSSES else "hinge"))
    square = ("LSSVC", "RidgeClassifier", "RidgeClassifierCV")
    logistic = {"LogisticRegression", "LogisticRegressionCV", "KernelLogistic", "GradientBoostingClassifier"}
    logistic |= {"HistGradientBoostingClassifier", "LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis"}
    by_kind = {"Perceptron": "perceptron", "AdaBoostClassifier": "exponential"}
    by_kind |= dict.fromkeys(square, "square") | dict.fromkeys(logistic, "logistic")
    if kind in by_kind:
        return loss_of(by_kind[kind])
    return losses.Hinge() if hasattr(base, "decision_function") else losses.Logistic()
