"""Pictures of kernel machines, and the HTML report.

    from mercer.report import write_report
    write_report("report.html", machine, X, y, X_test, y_test)

Every picture is also a function `plot_...(..., ax=None)`, and those that belong to kernel machines are classes in the
manner of scikit-learn's displays, `MarginDisplay.from_estimator(machine, X, y)`.
"""

from mercer.errors import MissingDependency

try:
    import jinja2  # noqa: F401 - only to see whether it is there
    import matplotlib  # noqa: F401 - only to see whether it is there
except ImportError as error:
    raise MissingDependency("reports need Matplotlib and Jinja2: pip install 'mercer[report]'") from error

from mercer.report.classification import (
    calibrated,
    plot_calibration,
    plot_confusion,
    plot_precision_recall,
    plot_roc,
)
from mercer.report.convergence import ConvergenceDisplay, plot_convergence
from mercer.report.cross import CrossPlotDisplay, plot_cross
from mercer.report.document import write_report
from mercer.report.estimates import HeldOut, Interval, OfClass, bootstrap, held_out, per_class, wilson
from mercer.report.importance import Importance, measure_importance, plot_importance
from mercer.report.influence import Influence, influential
from mercer.report.learning import LearningCurve, measure_learning, plot_learning_curve
from mercer.report.margins import MarginDisplay, plot_margins
from mercer.report.regression import plot_predictions, plot_residuals
from mercer.report.surface import SurfaceDisplay, plot_surface

__all__ = [
    "ConvergenceDisplay", "CrossPlotDisplay", "HeldOut", "Importance", "Influence", "Interval", "LearningCurve",
    "MarginDisplay", "OfClass", "SurfaceDisplay", "bootstrap", "calibrated", "held_out", "influential",
    "measure_importance", "measure_learning", "per_class", "plot_calibration", "plot_confusion", "plot_convergence",
    "plot_cross", "plot_importance", "plot_learning_curve", "plot_margins", "plot_precision_recall", "plot_predictions",
    "plot_residuals", "plot_roc", "plot_surface", "wilson", "write_report",
]  # fmt: skip
