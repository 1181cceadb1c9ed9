"""The averaged structured perceptron (Collins 2002); with chains, the hidden Markov perceptron (Altun et al. 2003)."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from mercer.machine.fitted_state import Number, State
from mercer.problems.structured import StructuredProblem, Vector
from mercer.solvers.monitor import Monitor
from mercer.solvers.solution import Solution
from mercer.solvers.structured import perceptron
from mercer.structured.base import StructuredMachine, stated
from mercer.structured.model import StructuredModel


@dataclass(kw_only=True, eq=False, repr=False)
class StructuredPerceptron(StructuredMachine):
    """Passes over the examples, each mistake corrected at once; the answer is the mean of all weights on the way.

    model : a `StructuredModel`; `Multiclass()` by default.  With `Chain()` it is the hidden Markov perceptron.
    max_iter : number of passes; a pass without a mistake is the last.
    random_state : order of the examples, another one for each pass.

    The other parameters are those of `StructuredSVM`.  There is no objective, and so no certificate: `objective_`,
    `dual_objective_` and `gap_` are NaN; `history_` has the losses of each pass, `mistakes_` counts those of the last.
    """

    max_iter: int = 10

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **StructuredMachine._parameter_constraints,
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def _problem(self, model: StructuredModel, X: Any, Y: Any, weights: Vector | None) -> StructuredProblem:
        return stated(model, X, Y, model.rescalings[0], 1.0, weights)

    def _continues(self, problem: StructuredProblem, solution: Solution) -> bool:
        return solution.variables.shape == (1 + 2 * problem.size,)

    def _solve(self, problem: StructuredProblem, start: Solution | None, seed: int, monitor: Monitor) -> Solution:
        self.solver_ = f"{perceptron.NAME}: {self.max_iter} passes"
        found = perceptron.solve(problem, start=start, monitor=monitor, max_iter=self.max_iter, seed=seed)
        self.mistakes_ = int(found.details["mistakes"])
        return found

    def _state(self) -> State:
        return {"mistakes_": Number()}
