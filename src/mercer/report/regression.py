"""Pictures of a regression machine's predictions f (n,) of targets y (n,), by scikit-learn's displays."""

from typing import Any

import numpy as np
from matplotlib.ticker import AutoLocator
from numpy.typing import ArrayLike
from sklearn.metrics import PredictionErrorDisplay

from mercer.report import ink

MOST = 1500  # points drawn


def _draw(y: ArrayLike, f: ArrayLike, ax: Any, kind: str) -> Any:
    ax = ink.axes(ax)
    PredictionErrorDisplay.from_predictions(
        np.asarray(y, dtype=np.float64),
        np.asarray(f, dtype=np.float64),
        kind=kind,
        subsample=min(MOST, np.size(y)),
        random_state=0,
        ax=ax,
        scatter_kwargs={"s": 10, "color": ink.GREYS[1], "alpha": 0.6, "linewidths": 0},
        line_kwargs={"color": ink.INK, "linewidth": 0.9, "linestyle": (0, (4, 3))},
    )
    for axis in (ax.xaxis, ax.yaxis):  # the display puts its own numbers there, which are not round
        axis.set_major_locator(AutoLocator())
    return ax


def plot_predictions(y: ArrayLike, f: ArrayLike, ax: Any = None) -> Any:
    """Draw the targets against the predictions, with the line on which they agree; returns the axes."""
    ax = _draw(y, f, ax, "actual_vs_predicted")
    ax.set_aspect("auto")
    ax.set(xlabel="predicted", ylabel="true")
    return ax


def plot_residuals(y: ArrayLike, f: ArrayLike, ax: Any = None) -> Any:
    """Draw the residuals y - f against the predictions; returns the axes."""
    ax = _draw(y, f, ax, "residual_vs_predicted")
    ax.set(xlabel="predicted", ylabel="residual y - f(x)")
    return ax
