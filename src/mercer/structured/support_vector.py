"""The structured support vector machine: a margin between the right structure and all others.

    min 1/2 |w|^2 + C sum_i max over y of  Delta(y_i, y) + w.F(x_i, y) - w.F(x_i, y_i)

The problem is stated in `mercer.problems.structured`, and solved in `mercer.solvers.structured`.
"""

from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from mercer.planning.choice import Choice
from mercer.planning.structured import structured_solver
from mercer.problems.structured import StructuredProblem, Vector
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution
from mercer.solvers.structured import frank_wolfe, n_slack, one_slack, search, subgradient
from mercer.structured.base import StructuredMachine, stated
from mercer.structured.model import StructuredModel

SOLVERS: dict[str, Any] = {
    "n-slack": n_slack,
    "one-slack": one_slack,
    "frank-wolfe": frank_wolfe,
    "subgradient": subgradient,
}
DRAWN = (frank_wolfe, subgradient)  # take the examples in random order


@dataclass(kw_only=True, eq=False, repr=False)
class StructuredSVM(StructuredMachine):
    """Structured support vector machine (Tsochantaridis et al. 2005; Taskar, Guestrin and Koller 2003).

    model : a `StructuredModel`, which says what inputs and structures are; `Multiclass()` by default.
    C : weight of the losses.
    rescaling : "margin" asks for a margin as large as the loss, "slack" multiplies what a margin of one lacks with it.
    solver : "n-slack" or "one-slack" cutting planes, "frank-wolfe" (block-coordinate), "subgradient", or "auto".
    tol : relative duality gap at which training ends.
    max_iter : most rounds, sweeps or passes of the solver; -1 for no bound.
    max_time : seconds after which training ends with the best so far.
    warm_start : begin where the last fit on the same data ended, perhaps at another C.
    checkpoint : file to which training is saved every minute, and from which it goes on if it is there.
    random_state : order of the examples, where a solver takes them in random order.

    After `fit`: `coef_` (size,), `model_`, `objective_`, `dual_objective_`, `gap_`, `solution_`, `history_`, `n_iter_`,
    `stopped_`, `solver_`, `plan_`.
    """

    C: float = field(default=1.0, kw_only=False)
    rescaling: str = "margin"
    solver: str = "auto"
    tol: float = 1e-2

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **StructuredMachine._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "rescaling": [StrOptions({"margin", "slack"})],
        "solver": [StrOptions({"auto", *SOLVERS})],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
    }

    def _problem(self, model: StructuredModel, X: Any, Y: Any, weights: Vector | None) -> StructuredProblem:
        rescaling: Any = self.rescaling
        problem = stated(model, X, Y, rescaling, self.C, weights)
        asked = Choice.asked("solver", self.solver)
        chosen = structured_solver(problem.examples) if self.solver == "auto" else asked
        self._chosen, self.solver_ = chosen.name, f"{chosen.name}: {chosen.reason}"
        return problem

    def _continues(self, problem: StructuredProblem, solution: Solution) -> bool:
        return search.continues(problem, solution, SOLVERS[self._chosen].NAME)

    def _solve(self, problem: StructuredProblem, start: Solution | None, seed: int, monitor: Monitor) -> Solution:
        module = SOLVERS[self._chosen]
        options = {"seed": seed} if module in DRAWN else {}
        found: Solution = module.solve(
            problem, tol=self.tol, start=start, monitor=monitor, max_iter=self.max_iter, **options
        )
        return found
