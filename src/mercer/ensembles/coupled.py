"""Coupled ensembles: members on disjoint parts of the data, trained together so that neighbours agree elsewhere.

A member that saw a small part of the data is a poor function far from it.  Here the members are also asked to agree, on
coupling points that need no targets, with their neighbours in a graph (Hamers 2004, section 6.7; the problem is that of
`mercer.problems.coupled`).  To be able to follow, a member may use the points of its neighbours as basis functions, but
is fitted to the targets of its own only.  Coupling points may be

    some of the training points, points drawn uniformly in the box around them, or points given by the user;

where the user gives the points that are to be predicted, the ensemble is trained transductively.  nu = 0 leaves members
with the larger basis alone, and bases = "own" with it the plain members: what coupling does is the difference to the
former.  A second layer weighs the members (`mercer.ensembles.combining`).
"""

import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from mercer import threads
from mercer.ensembles import combining, sampling
from mercer.ensembles.base import Array, Data, Ensemble, Index
from mercer.ensembles.committee import WEIGHTS
from mercer.ensembles.coupled_members import Member, member_of
from mercer.ensembles.sampled import WeighedSum, targets_of
from mercer.ensembles.views import resolved
from mercer.errors import Advice, BudgetTooSmall, InvalidInput
from mercer.gram import KernelColumns, size
from mercer.kernels import Kernel
from mercer.least_squares import LSSVC
from mercer.least_squares.machine import LeastSquaresMachine
from mercer.machine.arguments import prediction_data, take
from mercer.machine.callbacks import watching
from mercer.machine.fitted_state import Number, State, Values
from mercer.machine.outcome import FitPlan, warn_if_stopped
from mercer.problems.coupled import GRAPHS, CoupledMembers, laplacian, laplacian_of
from mercer.resources import budget, show
from mercer.solvers.linear import coupled
from mercer.solvers.solution import Solution

COUPLING = ("training", "uniform")
ELIMINATED_UP_TO = 3000  # unknowns of a member, or of a graph that is no ring or chain, that are still factorised


class Together:
    """All members as one trained thing, with one certificate, as `SVC` has it."""

    kernel_: Any
    solution_: Solution
    objective_: float
    dual_objective_: float
    gap_: float
    n_iter_: int
    history_: Any
    stopped_: str
    solver_: str
    plan_: FitPlan

    @classmethod
    def of(cls, solution: Solution, kernel: Any, plan: FitPlan) -> "Together":
        """What a solution says."""
        found = cls()
        found.kernel_, found.solution_, found.plan_, found.solver_ = kernel, solution, plan, plan.solver
        found.objective_, found.dual_objective_, found.gap_ = solution.primal, solution.dual, solution.gap
        found.n_iter_, found.history_, found.stopped_ = solution.iterations, solution.history, solution.stopped
        return found


@dataclass(kw_only=True, eq=False, repr=False)
class CoupledEnsemble(WeighedSum):
    """Least-squares members on disjoint parts that agree with their neighbours on points without targets.

    Parameters
    ----------
    base : an LSSVC (classes, coded as +-1) or LSSVR, whose kernel and C the members have; None is `LSSVC()`.  A list of
        them gives each member its own.  C="loo", a list of C, and a width "loo" are chosen by each member before it is
        coupled, by its exact leave-one-out error.  C is the weight of the squared errors against half the squared
        coefficients, not against the norm of the function, and there is no bias: it is not the C of the base alone.
        tol, max_iter, max_time, memory and precision are those of the base (of the first): relative gap, steps and
        seconds of conjugate gradients, bytes for kernel values and factors, and in what kernel values are computed.
    members : how many; no more than there are distinct points, unless `parts`, `graph` or `base` name them all.
    nu : strength of the coupling; 0 couples nothing.  Negative values drive members apart, and are refused where the
        problem has no minimum left.
    graph : "ring", "chain" (a ring with one link cut), "star", "complete", or weights of edges (q, q).
    bases : "neighbours" gives a member the points of its neighbours as basis functions too (in a chain those of the
        ring); "own" its own only.
    parts : the member (n,) of each point, 0 to q - 1; None deals them out at random.
    coupling : where `fit` is given no points: "training" takes some of the training points, "uniform" draws points in
        the box around them.
    coupling_size : how many, a number or a share of the training points.
    weights : "equal", "affine" or "convex" (see `Committee`).
    summed : "values" sums the members' outputs, "decisions" their decisions +-1 (classes).
    errors : what weights are learnt from: "leave_one_out" (exact) or "training" outputs.
    ridge : share of the mean diagonal added to the matrix of error products.
    solver : "elimination", "conjugate_gradient" or "auto".
    random_state : seed of parts and coupling points.
    verbose : print a line for every step of the solver.
    n_jobs : threads (None: all).
    executor : taken for the sake of the other ensembles; one system is not sent elsewhere.

    Attributes
    ----------
    parts_ : the member of each row of positive weight.
    points_ : the distinct points (n, d) of positive weight, in an order of their own; coefficients_ (n, q, k) of the
        members over them.
    weights_ : (q,) of the members; support_models_ how many are not zero.
    C_ : (q,) of the members; kernel_ their kernel, or the list of them.
    fit_value_ : what the members would minimise alone, at the solution; disagreement_ the mean squared difference of
        two neighbours on the coupling points.
    loo_outputs_, loo_error_, loo_member_errors_ : at training points whose target is left out (errors="leave_one_out"
        and a system solved by elimination, else None and NaN), exact for given weights, C and kernel.
    classes_ : the labels of a classifier.
    objective_, dual_objective_, gap_ : of all members together; the dual value is a lower bound.
    solver_, solution_, history_, n_iter_, stopped_, plan_ : as in `LSSVC`.

    """

    _default = LSSVC

    members: int = 8
    nu: float = 1.0
    graph: Any = "ring"
    bases: str = "neighbours"
    parts: Any = None
    coupling: str = "training"
    coupling_size: float = 0.1
    weights: str = "equal"
    summed: str = "values"
    errors: str = "leave_one_out"
    ridge: float = 1e-6
    solver: str = "auto"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Ensemble._parameter_constraints,
        "members": [Interval(Integral, 1, None, closed="left")],
        "nu": [Interval(Real, None, None, closed="neither")],
        "graph": [StrOptions(set(GRAPHS)), "array-like"],
        "bases": [StrOptions({"neighbours", "own"})],
        "parts": ["array-like", None],
        "coupling": [StrOptions(set(COUPLING))],
        "coupling_size": [Interval(Integral, 1, None, closed="left"), Interval(Real, 0.0, 1.0, closed="right")],
        "weights": [StrOptions(set(WEIGHTS) - {"bayesian"})],
        "summed": [StrOptions({"values", "decisions"})],
        "errors": [StrOptions({"leave_one_out", "training"})],
        "ridge": [Interval(Real, 0.0, None, closed="left")],
        "solver": [StrOptions({"auto", *coupled.SOLVERS})],
    }

    # Training --------------------------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def fit(self, X: Any, y: Any, sample_weight: Any = None, unlabelled: Any = None) -> "CoupledEnsemble":
        """Train on points X (n, d) and targets y (n,), coupled on the points `unlabelled` (m, d) where they are given.

        `sample_weight` (n,) multiplies the squared error of a point.
        """
        data = self._data(X, y, sample_weight).merged()
        if data.kind != "features":
            raise InvalidInput("coupled members share basis points: give features, not a kernel matrix or objects")
        random = self._generator()
        q = self._count(data)
        dealt = self._dealt(data, len(np.asarray(y)), q, random)
        self.parts_ = dealt[data.point]
        L = self._graph(q)
        places = self._coupling_points(data, unlabelled, random)
        first = self._first
        watched = self if self.verbose or "_skl_callbacks" in vars(self) else first  # whichever is asked to speak
        with (
            threads.limit(self.n_jobs),
            threads.blas_threads(data.n),
            watching(watched, X, y, first.max_time) as monitor,
        ):
            members = self._members(data, dealt, L)
            problem = self._problem(data, members, L, places)
            method, reason = self._method(problem)
            solution = coupled.solve(problem, tol=first.tol, monitor=monitor, method=method, max_iter=first.max_iter)
            self._keep(data, members, problem, solution, reason)
            self._weigh(data, members, problem, solution.coefficients)
        self.stopped_ = warn_if_stopped([solution], first.max_iter, first.max_time)
        return self

    def _count(self, data: Data) -> int:
        """The number of members: as many as are asked for, or as there are points where nothing else depends on it."""
        named = self.parts is not None or not isinstance(self.graph, str) or len(self._bases) > 1
        if named or self.members <= data.n:
            return self.members
        warnings.warn(
            f"members={self.members}: there are {data.n} distinct points, and so {data.n} members are trained",
            Advice,
            stacklevel=3,
        )
        return data.n

    def _dealt(self, data: Data, rows: int, q: int, random: np.random.Generator) -> Index:
        """The member (n,) of each point; so many rows were handed to `fit`."""
        if self.parts is None:
            if q > data.n:
                raise InvalidInput(f"members={q} are more than the {data.n} points")
            found = np.zeros(data.n, dtype=np.intp)
            if q > 1:
                for j, sample in enumerate(sampling.disjoint(data.n, q, seed=random, strata=data.codes)):
                    found[sample.rows] = j
            return found
        given = np.asarray(self.parts)
        if given.shape != (rows,):
            raise InvalidInput(f"parts must name the member of each of the {rows} points")
        given = given if data.kept is None else given[data.kept]
        found = np.zeros(data.n, dtype=given.dtype)
        found[data.point[::-1]] = given[::-1]  # of copies the first decides
        if not np.array_equal(np.unique(found), np.arange(q)):
            raise InvalidInput(f"parts must name one of the members 0 to {q - 1} for each point, and all of them")
        return found.astype(np.intp)

    def _graph(self, q: int) -> Array:
        """The Laplacian of the graph, which for one member has no edge."""
        if isinstance(self.graph, str):
            return laplacian(self.graph, q) if q > 1 else np.zeros((1, 1))
        L = laplacian_of(np.asarray(self.graph, dtype=np.float64))
        if len(L) != q:
            raise InvalidInput(f"graph is one of {len(L)} members, and members={q}")
        return L

    def _coupling_points(self, data: Data, unlabelled: Any, random: np.random.Generator) -> Any:
        if unlabelled is not None:
            return prediction_data(self, "features", unlabelled, 0)
        count = sampling.absolute(self.coupling_size, data.n)
        if self.coupling == "training":
            return take(data.X, np.sort(random.choice(data.n, min(count, data.n), replace=False)))
        X = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
        return random.uniform(X.min(axis=0), X.max(axis=0), (count, X.shape[1]))

    def _members(self, data: Data, dealt: Index, L: Array) -> list[Member]:
        """Rows, basis, kernel and ridge of every member, those that it chooses itself included."""
        q, bases = len(L), self._bases
        if len(bases) not in (1, q) or not all(isinstance(base, LeastSquaresMachine) for base in bases):
            raise InvalidInput(f"base must be an LSSVC or LSSVR, or a list of {q} of them, one for each member")
        definite = [resolved(base, data) for base in bases]
        near = np.eye(q, dtype=bool)
        if self.bases == "neighbours":
            of_ring = isinstance(self.graph, str) and self.graph == "chain" and q > 2
            near |= (laplacian("ring", q) if of_ring else L) != 0.0
        rows = [np.flatnonzero(dealt == j) for j in range(q)]
        Y = targets_of(data, self._columns)
        weights = np.ones(data.n) if data.weights is None else data.weights
        found = []
        for j in range(q):
            basis = np.concatenate([rows[l] for l in np.flatnonzero(near[j])])
            found.append(member_of(definite[j % len(definite)], data.X, rows[j], np.sort(basis), Y, weights))
        return found

    def _problem(self, data: Data, members: list[Member], L: Array, places: Any) -> CoupledMembers:
        taken, allowed = _bytes(members, size(places)), budget(self._first.memory)
        if taken > allowed:
            raise BudgetTooSmall(
                f"kernel values and factors of {len(members)} members take {show(taken)}, and memory allows "
                f"{show(allowed)}: take more members, or fewer coupling points"
            )
        Y = targets_of(data, self._columns)
        weights = np.ones(data.n) if data.weights is None else data.weights
        return CoupledMembers(
            [one.at(data.X, take(data.X, one.rows)) for one in members],
            [Y[one.rows] for one in members],
            [weights[one.rows] for one in members],
            [one.at(data.X, places) for one in members],
            np.array([1.0 / one.C for one in members]),
            L,
            float(self.nu),
        )

    def _method(self, problem: CoupledMembers) -> tuple[str, str]:
        """The solver, and why."""
        if self.solver != "auto":
            return self.solver, "asked for"
        shape = coupled.shape_of(problem.laplacian, problem.nu)
        largest = problem.size if shape == "graph" else int(np.diff(problem.borders).max())
        if largest <= ELIMINATED_UP_TO:
            return "elimination", f"a {shape} whose largest block has {largest} unknowns"
        return "conjugate_gradient", f"a block of {largest} unknowns costs more to factorise than products with it"

    def _keep(
        self, data: Data, members: list[Member], problem: CoupledMembers, solution: Solution, reason: str
    ) -> None:
        """The expansions of all members, their certificate and their agreement."""
        A = solution.coefficients
        self.points_, self.C_ = data.X, np.array([one.C for one in members])
        self._coefficients = np.zeros((data.n, len(members) * A.shape[1]))  # a file holds no more than two axes
        for j, one in enumerate(members):
            self.coefficients_[one.basis, j] = A[problem.part(j)]
        kernels = [one.kernel for one in members]
        self.kernel_ = kernels[0] if all(kernel == kernels[0] for kernel in kernels) else kernels
        self.fit_value_ = problem.fit(A)
        edges = float(np.trace(problem.laplacian)) / 2.0
        pairs = edges * len(problem.coupled[0]) * A.shape[1]
        self.disagreement_ = problem.disagreement(A) / pairs if pairs else 0.0
        reason = f"{solution.solver}: {reason}"
        first = self._first
        memory = "a quarter of what is free" if first.memory is None else str(first.memory)
        largest, taken = int(np.diff(problem.borders).max()), show(_bytes(members, len(problem.coupled[0])))
        storage = (
            f"the kernel matrix is held in blocks, {len(members)} members of up to {largest} basis points: {taken} "
            "with their factors"
        )
        plan = FitPlan(
            reason, 1, "exact: every member expands over its basis", memory, members[0].precision, "cpu", storage
        )
        self.together_ = Together.of(solution, self.kernel_, plan)

    def _weigh(self, data: Data, members: list[Member], problem: CoupledMembers, A: Array) -> None:
        """The second layer, and the errors of targets left out."""
        direct = self.together_.solution_.solver.endswith("elimination")
        if not direct and self.errors == "leave_one_out" and self.weights != "equal":
            raise InvalidInput(
                "leaving targets out takes a factorised system, and this one is solved by conjugate gradients: take "
                "errors='training', weights='equal' or solver='elimination'"
            )
        left_out = direct and self.errors == "leave_one_out"
        F = self._summands(self._left_out(data, members, problem, A) if left_out else self._outputs(data.X))
        S = combining.error_products(F, targets_of(data, self._columns), data.weights)
        self.weights_ = combining.learnt(S, self.weights, self.ridge)
        self.loo_outputs_, self.loo_member_errors_, self.loo_error_ = None, None, float("nan")
        if left_out:
            self._keep_errors(F, data)

    def _left_out(self, data: Data, members: list[Member], problem: CoupledMembers, A: Array) -> Array:
        """Outputs (q, n, k) at each point had its target not been known."""
        factor = coupled.factorised(problem)
        F = np.empty((len(members), data.n, A.shape[1]))
        for j, own in enumerate(members):
            places = take(data.X, own.rows)
            at = [one.at(data.X, places) for one in members]
            F[:, own.rows] = coupled.left_out(problem, A, factor, j, at)
        return F

    # What it consists of ---------------------------------------------------------------------------------------

    def _parts(self) -> list[Any]:
        check_is_fitted(self)
        return [self.together_]

    @property
    def coefficients_(self) -> Array:
        """Coefficients (n, q, k) of the members over the points."""
        return self._coefficients.reshape(len(self._coefficients), len(self.C_), -1)

    def _state(self) -> State:
        return {
            **super()._state(),
            "parts_": Values(("rows",), "i8"),
            "_coefficients": Values(("points", "columns")),
            "weights_": Values(("members",)),
            "C_": Values(("members",)),
            "fit_value_": Number(),
            "disagreement_": Number(),
            "loo_outputs_": Values(("rows", "outputs"), optional=True),
            "loo_error_": Number(),
            "loo_member_errors_": Values(("members",), optional=True),
        }

    # Prediction ------------------------------------------------------------------------------------------------

    def member_outputs(self, X: Any) -> Array:
        """Outputs (q, n, k) of every member."""
        return self._outputs(self._points(X))

    def _outputs(self, X: Any) -> Array:
        n, q, k = self.coefficients_.shape
        if isinstance(self.kernel_, Kernel):
            columns = KernelColumns(self.kernel_, self.points_, memory=self._first.memory)
            (found,) = columns.expand(X, [slice(0, n)], [self.coefficients_.reshape(n, q * k)])
            return np.ascontiguousarray(found.reshape(-1, q, k).transpose(1, 0, 2))
        outputs = []
        for j, kernel in enumerate(self.kernel_):
            used = np.flatnonzero(self.coefficients_[:, j].any(axis=1))
            columns = KernelColumns(kernel, take(self.points_, used), memory=self._first.memory)
            outputs += columns.expand(X, [slice(0, len(used))], [self.coefficients_[used, j]])
        return np.stack(outputs)

    def _combined(self, X: Any) -> Array:
        return combining.weighted(self._summands(self._outputs(X)), self.weights_)


def _bytes(members: list[Member], places: int) -> int:
    """What kernel values and factors take."""
    return 8 * sum((len(one.rows) + places) * len(one.basis) + 2 * len(one.basis) ** 2 for one in members)
