"""Local machines: the input space is cut into cells, and every cell has a machine of its own, tuned on its own points.

A kernel machine on n points costs n^2 and more; on n / s cells of s points each it costs n s.  Where the kernel is
local, points far away hardly matter to a prediction, and parameters that suit one region need not suit another, so that
little is lost and sometimes something is gained (Bottou and Vapnik 1992; Steinwart and Thomann 2017, liquidSVM).  A new
point is answered by the machine of its cell.  The cells, and the points around each that its machine sees besides its
own, are those of `mercer.ensembles.cells`.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context, is_classifier
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from mercer import threads
from mercer.ensembles.base import Array, Data, Ensemble, Index, outputs_of
from mercer.ensembles.cells import RULES, Cells, CellTree, grow
from mercer.ensembles.members import Job, run_jobs
from mercer.errors import Advice, InvalidInput
from mercer.machine.arguments import take
from mercer.machine.callbacks import watching
from mercer.machine.fitted_state import State, Values
from mercer.machine.outcome import StoppedEarly, common_kernel, common_outcome
from mercer.solvers.monitor import Monitor
from mercer.tuned import TunedSVC

SMALLEST_CELL = 20


@dataclass(kw_only=True, eq=False, repr=False)
class LocalMachines(Ensemble):
    """A machine for each cell of the input space.

    Parameters
    ----------
    base : any machine of mercer or of scikit-learn on features, classifier or regressor, of which every cell gets a
        copy.  None is `TunedSVC` with six values of C, six widths and three folds, its search solved to `search_tol` =
        0.1: the best candidate is hardly ever another one, and found in a third of the time.
    size : most distinct points a cell may hold; the time of a fit grows in proportion to it, memory with its square.
    overlap : points around a cell that its machine is trained on besides, as a share of its own.
    partition : "projections" (random projection trees) or "k-means" (a tree of pairs of clusters).
    max_time : seconds after which no more cells are trained; those left answer with the commonest label, or the mean,
        of their points.
    random_state : seed of the partition.
    verbose : print a line for every cell.
    n_jobs : threads (None: all), each training a cell at a time.
    executor : a `concurrent.futures.Executor` to train the cells by; None is mercer's threads.

    Attributes
    ----------
    machines_ : the machine of each cell, or the number of the class, or value, that it always answers.
    sizes_ : distinct points of each cell (c,), without those around it; seen_ with them.
    directions_, thresholds_, children_ : the partition, see `tree_`.
    tree_ : a CellTree; `tree_.cell_of(X)` are the cells of points.
    best_score_ : where the base searches: mean score of the best candidates, each cell counted by its points.
    classes_ : the labels of a classifier.
    objective_, dual_objective_, gap_ : the certificate where the base has one, summed over the cells.
    kernel_, solver_, solution_, history_, n_iter_, stopped_, plan_ : as in `Bagging`.

    """

    _default = partial(TunedSVC, n_C=6, n_sigma=6, folds=3, search_tol=0.1)

    size: int = 2000
    overlap: float = 0.5
    partition: str = "projections"
    max_time: float | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Ensemble._parameter_constraints,
        "size": [Interval(Integral, SMALLEST_CELL, None, closed="left")],
        "overlap": [Interval(Real, 0.0, None, closed="left")],
        "partition": [StrOptions(set(RULES))],
        "max_time": [Interval(Real, 0.0, None, closed="neither"), None],
    }

    # Training --------------------------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LocalMachines":
        """Train on points X (n, d), dense or CSR, and targets y (n,); `sample_weight` (n,) goes to the machines."""
        data = self._data(X, y, sample_weight).merged(ordered=False)
        if data.kind != "features":
            raise InvalidInput("cells are parts of a space of features: a kernel matrix or objects have none")
        if data.weights is not None and not has_fit_parameter(self._first, "sample_weight"):
            raise InvalidInput(f"{type(self._first).__name__} takes no sample_weight: leave it out")
        with threads.limit(self.n_jobs), watching(self, X, y, self.max_time) as monitor:
            cells = grow(data.X, self.size, self.overlap, self.partition, self._generator())
            self.directions_, self.thresholds_ = cells.tree.directions, cells.tree.thresholds
            self.children_ = cells.tree.children
            self.sizes_ = np.array([len(own) for own in cells.own], dtype=np.intp)
            self.seen_ = self.sizes_ + np.array([len(around) for around in cells.around], dtype=np.intp)
            self.machines_: list[Any] = self._train(data, cells, monitor)
            ended = monitor.stopped
        self._conclude()
        if ended is not None:
            self.stopped_ = ended
            self._warn_of_cells_left(ended)
        return self

    def _conclude(self) -> None:
        """Kernel and outcome of all cells together."""
        parts = self._parts()
        self.kernel_, self.stopped_ = common_kernel(parts), common_outcome(parts)

    def _train(self, data: Data, cells: Cells, monitor: Monitor) -> list[Any]:
        """The machine of each cell; a constant where it has one class, or was not reached."""
        rows = [np.sort(np.concatenate(pair)) for pair in zip(cells.own, cells.around)]
        machines: list[Any] = [_constant(data, own) for own in cells.own]
        todo = [j for j, own in enumerate(rows) if data.codes is None or len(np.unique(data.codes[own])) > 1]

        def job(j: int) -> Job:
            weights = None if data.weights is None else data.weights[rows[j]]
            return Job(self._first, take(data.X, rows[j]), data.y[rows[j]], weights, self._columns, None, False)

        with warnings.catch_warnings(), threads.one_blas_thread():
            warnings.simplefilter("ignore", Advice)  # said once for all cells, below
            found = run_jobs(job, todo, self.executor, monitor)
        for j, trained in zip(todo, found):
            machines[j] = trained.machine
        _advise([one.machine for one in found])
        return machines

    def _warn_of_cells_left(self, ended: str) -> None:
        reason = f"the time limit (max_time={self.max_time})" if ended == "time" else "an interruption"
        warnings.warn(
            f"The training was ended by {reason} with {len(self._parts())} of {len(self.machines_)} cells trained; the "
            "others answer with a constant.",
            StoppedEarly,
            stacklevel=3,
        )

    # What it consists of ---------------------------------------------------------------------------------------

    @property
    def tree_(self) -> CellTree:
        """The partition."""
        check_is_fitted(self)
        return CellTree(self.directions_, self.thresholds_, self.children_)

    def _parts(self) -> list[Any]:
        check_is_fitted(self)
        return [machine for machine in self.machines_ if not isinstance(machine, float)]

    @property
    def best_score_(self) -> float:
        """Mean of the cells' cross-validated scores, those of cells with one class being perfect."""
        check_is_fitted(self)
        scores = [1.0 if isinstance(machine, float) else machine.best_score_ for machine in self.machines_]
        return float(np.average(scores, weights=self.sizes_))

    def _state(self) -> State:
        return {
            **super()._state(),
            "directions_": Values(("nodes", "features")),
            "thresholds_": Values(("nodes",)),
            "children_": Values(("nodes", 2), "i8"),
            "sizes_": Values(("cells",), "i8"),
            "seen_": Values(("cells",), "i8"),
        }

    # Prediction ------------------------------------------------------------------------------------------------

    def _combined(self, X: Any) -> Array:
        cells = self.tree_.cell_of(X)
        order = np.argsort(cells, kind="stable")
        borders = np.searchsorted(cells[order], np.arange(len(self.machines_) + 1))
        tasks = [(j, order[a:b]) for j, (a, b) in enumerate(pairwise(borders)) if b > a]
        values = np.empty((X.shape[0], self._columns))

        def answer(j: int, points: Index) -> None:
            values[points] = self._of_cell(self.machines_[j], X[points])

        with threads.limit(self.n_jobs), threads.one_blas_thread():
            threads.run(answer, tasks)
        return values

    def _of_cell(self, machine: Any, X: Any) -> Array:
        """Outputs (n, k) of a cell; those of a class that it has never seen are below all others."""
        classify, columns = is_classifier(self._first), self._columns
        if isinstance(machine, float):
            signs = np.where(np.arange(columns) == machine, 1.0, -1.0)
            values = np.full(1, machine) if not classify else np.full(1, 2.0 * machine - 1.0) if columns == 1 else signs
            return np.broadcast_to(values, (X.shape[0], columns))
        if not classify or columns == 1:
            return outputs_of(machine, X, 1)
        there = np.searchsorted(self.classes_, machine.classes_)
        if len(there) == 2:
            margin = outputs_of(machine, X, 1)
            found = np.hstack([-margin, margin])
        else:
            found = outputs_of(machine, X, len(there))
        values = np.repeat(found.min(axis=1, keepdims=True) - 1.0, columns, axis=1)
        values[:, there] = found
        return values


def _constant(data: Data, own: Index) -> float:
    """What a cell answers without a machine: the commonest class of its points, or the mean of their targets."""
    weights = None if data.weights is None else data.weights[own]
    if data.codes is not None:
        return float(np.argmax(np.bincount(data.codes[own], weights)))
    return float(np.average(data.y[own], weights=weights))


def _advise(machines: Sequence[Any]) -> None:
    """Say in how many cells the best candidate lies on the edge of the grid."""
    found = [edge for machine in machines if hasattr(machine, "search_") for edge in machine.search_.edges()]
    kinds = [f"the {edge.rpartition('(')[2].rstrip(')')} {edge.partition(' ')[0]}" for edge in found]
    if kinds:
        said = ", ".join(f"{kind} in {kinds.count(kind)}" for kind in sorted(set(kinds)))
        warnings.warn(f"of {len(machines)} cells, the best candidate has {said}.", Advice, stacklevel=5)
