"""Theory as tools: bounds on the leave-one-out error, the training error and the risk.

Each function returns a `Bound`: the number, what it assumes, which assumptions are seen to fail, and whether the number
says anything.  None of them trains anything: they take labels, outputs, dual variables and kernel values.
"""

from mercer.selection.bounds.boosting import boosted_margin_error, boosting_rounds
from mercer.selection.bounds.capacity import cover, shattered_width, shatters
from mercer.selection.bounds.constrained import (
    ball_covering_exponent,
    ivanov_bound,
    ivanov_deviation,
    structural_bound,
    tikhonov_radius,
)
from mercer.selection.bounds.leave_one_out import (
    interval,
    jaakkola_haussler,
    least_squares,
    possible_errors,
    support_vector_count,
    xi_alpha,
)
from mercer.selection.bounds.lower import agnostic_lower_bound, coin_error, covering_floor, vc_lower_bound
from mercer.selection.bounds.margin import (
    convex_combination,
    covered_margin,
    covering_exponent,
    fat_margin_bound,
    fat_shattering,
    fat_shattering_absolute,
    margin_bound,
    margin_dimension,
    margin_error,
    perceptron_mistakes,
    regression_deviation,
    uniform_margin_bound,
    vapnik_bound,
    vc_bound,
)
from mercer.selection.bounds.multiclass import (
    coded_leave_one_out,
    decode,
    one_versus_all,
    possible_class_errors,
    row_distance,
    training_error,
)
from mercer.selection.bounds.perturbation import coefficient_change
from mercer.selection.bounds.result import Bound
from mercer.selection.bounds.span import Ball, enclosing_ball, radius_margin, span_bound, span_estimate
from mercer.selection.bounds.stability import (
    admissible,
    bagged_stability,
    decision_gaps,
    largest_loss,
    largest_output,
    multiclass_stability,
    output_stability,
    ramp,
    separating_machines,
    stability_bound,
    subbagged_stability,
    tikhonov,
    tikhonov_risk,
    uniform_stability,
)

__all__ = [
    "Ball", "Bound", "admissible", "agnostic_lower_bound", "bagged_stability", "ball_covering_exponent",
    "boosted_margin_error", "boosting_rounds", "coded_leave_one_out", "coefficient_change", "coin_error",
    "convex_combination", "cover", "covered_margin", "covering_exponent", "covering_floor", "decision_gaps", "decode",
    "enclosing_ball", "fat_margin_bound", "fat_shattering", "fat_shattering_absolute", "interval", "ivanov_bound",
    "ivanov_deviation", "jaakkola_haussler", "largest_loss", "largest_output", "least_squares", "margin_bound",
    "margin_dimension", "margin_error", "multiclass_stability", "one_versus_all", "output_stability",
    "perceptron_mistakes", "possible_class_errors", "possible_errors", "radius_margin", "ramp", "regression_deviation",
    "row_distance", "separating_machines", "shattered_width", "shatters", "span_bound", "span_estimate",
    "stability_bound", "structural_bound", "subbagged_stability", "support_vector_count", "tikhonov", "tikhonov_radius",
    "tikhonov_risk", "training_error", "uniform_margin_bound", "uniform_stability", "vapnik_bound", "vc_bound",
    "vc_lower_bound", "xi_alpha",
]  # fmt: skip
