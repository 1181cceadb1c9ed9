"""The trained members of an ensemble as one thing: outputs (q, n, k) at new points, and at those of their training.

Members are trained side by side, on mercer's threads or by an executor.  A member's outputs at points it was trained on
say little about new ones; what it would say had it not seen the point comes from exact leave-one-out where that is
free, which is for least squares, and from folds of the member's sample elsewhere.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from mercer import threads
from mercer.ensembles.base import Data, outputs_of
from mercer.ensembles.sampling import Sample
from mercer.ensembles.views import OwnPoints, SharedMatrix, View, resolved, view_of
from mercer.errors import InvalidInput
from mercer.gram import size
from mercer.least_squares.machine import LeastSquaresMachine
from mercer.machine.arguments import take
from mercer.machine.outcome import common_kernel
from mercer.selection.folds import assign
from mercer.solvers.monitor import Monitor

Array = NDArray[np.float64]
Index = NDArray[np.intp]


class Trained(NamedTuple):
    """A fitted machine, and its outputs (g, k) at its own points had it not seen them, None where not asked for."""

    machine: Any
    left_out: Array | None


class Job(NamedTuple):
    """The training of one member, complete in itself, so that it can be sent elsewhere.

    Targets y (g,) and weights (g,) belong to the rows of `points`; `folds` (g,) deal them out where outputs of left-out
    points need retraining, None where they are not wanted.  Where rows are repeated, `first` are the places of the
    distinct ones.
    """

    base: Any
    points: Any
    y: NDArray[Any]
    weights: Array | None
    columns: int
    folds: Index | None
    given: bool
    first: Index | None = None

    def run(self) -> Trained:
        """Train, and leave out."""
        machine = _fit(self.base, self.points, self.y, self.weights)
        left_out = None
        if self.folds is not None:
            exact = isinstance(machine, LeastSquaresMachine)
            left_out = machine.leave_one_out().predictions if exact else self._by_folds()
            left_out = left_out if self.first is None else left_out[self.first]
        if isinstance(machine, LeastSquaresMachine):
            machine.forget_matrix()
        return Trained(machine, left_out)

    def _by_folds(self) -> Array:
        assert self.folds is not None
        values = np.empty((len(self.y), self.columns))
        for fold in np.unique(self.folds):
            inside, outside = np.flatnonzero(self.folds != fold), np.flatnonzero(self.folds == fold)
            weights = None if self.weights is None else self.weights[inside]
            machine = _fit(self.base, self._part(inside, inside), self.y[inside], weights)
            values[outside] = outputs_of(machine, self._part(outside, inside), self.columns)
        return values

    def _part(self, rows: Index, columns: Index) -> Any:
        return self.points[np.ix_(rows, columns)] if self.given else take(self.points, rows)


def _fit(base: Any, points: Any, y: NDArray[Any], weights: Array | None) -> Any:
    return clone(base).fit(points, y) if weights is None else clone(base).fit(points, y, sample_weight=weights)


class Members:
    """Fitted machines with what each of them sees."""

    def __init__(
        self, machines: list[Any], samples: Sequence[Sample], view: View, columns: int, storage: str | None = None
    ) -> None:
        self.machines, self.samples, self.view, self.columns = machines, list(samples), view, columns
        self.storage = storage

    def __len__(self) -> int:
        return len(self.machines)

    @property
    def kernel(self) -> Any:
        """The kernel of the members, or the list of them where they differ."""
        return self.view.kernel if isinstance(self.view, SharedMatrix) else common_kernel(self.machines)

    def outputs(self, X: Any) -> Array:
        """Outputs (q, n, k) at points that have been checked."""
        values = np.empty((len(self.machines), size(X), self.columns))
        for part, stretch in self.view.stretches(X):
            for out, machine, sample in zip(values, self.machines, self.samples):
                out[part] = outputs_of(machine, self.view.new(stretch, sample), self.columns)
        return values


class Crew:
    """Trains members on samples of one data set: the kernel values they share are computed once.

    seed : of folds.  spread (d,) : of noise on the points.  executor : see `mercer.threads.run`.
    """

    def __init__(
        self,
        data: Data,
        bases: Sequence[Any],
        samples: Sequence[Sample],
        columns: int,
        *,
        seed: int = 0,
        spread: Array | None = None,
        executor: Executor | None = None,
    ) -> None:
        self.data, self.samples, self.columns = data, list(samples), columns
        whole = all(sample.features is None for sample in samples)
        definite = {id(base): resolved(base, data) if whole else base for base in bases}
        self.bases = [definite[id(base)] for base in bases]
        self.view = view_of(data, self.bases, self.samples, spread)
        self._seed, self._executor = seed, executor
        self._check()

    def _check(self) -> None:
        if self.data.weights is not None:
            for base in self.bases:
                if not has_fit_parameter(base, "sample_weight"):
                    raise InvalidInput(f"{type(base).__name__} takes no sample_weight: leave it out")
        codes = self.data.codes
        if codes is None:
            return
        k = int(codes.max()) + 1
        for sample in self.samples:
            missing = np.setdiff1d(np.arange(k), codes[sample.rows])
            if len(missing):
                raise InvalidInput(
                    f"a member would see no point of class {np.unique(self.data.y)[missing[0]]!r}, which has "
                    f"{int(np.sum(codes == missing[0]))} points: ask for fewer members or larger samples"
                )

    def job(
        self,
        member: int,
        *,
        folds: int | None = None,
        sample: Sample | None = None,
        weights: Array | None = None,
        targets: NDArray[Any] | None = None,
    ) -> Job:
        """The training of one member; a sample, weights (n,) and targets (n,) replace those it would have."""
        sample, base, data = sample or self.samples[member], self.bases[member], self.data
        weights = sample.weights(data.weights if weights is None else weights)
        rows, first, dealt = sample.rows, None, None
        if folds is not None:
            codes = None if data.codes is None else data.codes[rows]
            if codes is not None and not isinstance(base, LeastSquaresMachine):
                folds = self._enough(codes, folds)
            dealt = assign(len(rows), folds, codes, np.random.default_rng([self._seed, member]))
        if weights is not None and not has_fit_parameter(base, "sample_weight"):
            copies = weights.astype(np.intp)  # counts alone: see `_check`
            rows, weights, first = np.repeat(rows, copies), None, np.cumsum(copies) - copies
            dealt = None if dealt is None else np.repeat(dealt, copies)
        given = isinstance(self.view, SharedMatrix)
        machine = clone(base).set_params(kernel="precomputed") if given else base
        points = self.view.training(sample, rows)
        y = data.y if targets is None else targets
        return Job(machine, points, y[rows], weights, self.columns, dealt, self.view.given, first)

    def _enough(self, codes: Index, folds: int) -> int:
        """No more folds than leave a point of every class outside each."""
        fewest = np.bincount(codes)
        if fewest.min() < 2:
            raise InvalidInput(
                f"folds: a member sees one point of class {np.unique(self.data.y)[fewest.argmin()]!r}, which cannot be "
                "left out: ask for fewer members, or take least squares, whose leave-one-out needs no folds"
            )
        return int(min(folds, fewest.min()))

    def train(
        self, monitor: Monitor, *, folds: int | None = None, samples: Sequence[Sample] | None = None
    ) -> tuple[Members, list[Trained]]:
        """All members; with `folds` also their outputs at their own points had they not seen them.

        Where the monitor asks to stop, those that were trained by then are all there are.  Other samples of the same
        points may take the place of those it was made with.
        """
        samples = self.samples if samples is None else samples
        self.prepare()

        def job(member: int) -> Job:
            return self.job(member, folds=folds, sample=samples[member])

        found = run_jobs(job, range(len(samples)), self._executor, monitor)
        return self.members([one.machine for one in found], samples[: len(found)]), found

    def run(self, job: Job) -> Any:
        """The machine of one job, trained here or by the executor."""
        return threads.run(Job.run, [(job,)], executor=self._executor)[0].machine

    def prepare(self) -> None:
        """Compute what is shared, before the threads part."""
        if isinstance(self.view, SharedMatrix):
            self.view.storage()

    def members(self, machines: list[Any], samples: Sequence[Sample]) -> Members:
        """The trained machines with what each of them saw."""
        storage = self.view.storage() if isinstance(self.view, SharedMatrix) else None
        view = OwnPoints(None) if isinstance(self.view, OwnPoints) else self.view
        return Members(machines, samples, view, self.columns, storage)

    def outputs(self, members: Members) -> Array:
        """Outputs (q, n, k) of the members at all training points."""
        if isinstance(self.view, SharedMatrix) and len(self.view.used) < self.data.n:
            return members.outputs(self.data.X)
        return np.stack([self.output(*one) for one in zip(members.machines, members.samples)])

    def output(self, machine: Any, sample: Sample) -> Array:
        """Outputs (n, k) at all training points, which are all in the matrix where one is shared."""
        everything = np.arange(self.data.n)
        return outputs_of(machine, self.view.between(sample, sample.rows, everything), self.columns)

    def unseen(self, members: Members, trained: Sequence[Trained]) -> Array:
        """Outputs (q, n, k) at all training points, those of a member at its own points had it not seen them.

        NaN where that is not known, because the members were trained without folds.
        """
        values = self.outputs(members)
        for out, sample, one in zip(values, members.samples, trained):
            out[sample.rows] = np.nan if one.left_out is None else one.left_out
        return values

    def forget(self) -> None:
        """Let shared kernel values go."""
        if isinstance(self.view, SharedMatrix):
            self.view.forget()


def run_jobs(
    job: Callable[[int], Job], numbers: Sequence[int], executor: Executor | None, monitor: Monitor
) -> list[Trained]:
    """What the jobs of these numbers give, until the monitor asks to stop; each is stated when its turn has come."""
    progress = Progress(monitor)
    if executor is None:
        return threads.run(lambda number: job(number).run(), [(j,) for j in numbers], go_on=progress)
    return threads.run(Job.run, [(job(j),) for j in numbers], executor=executor, go_on=progress)


class Progress:
    """Tells a monitor of every member that is trained, with the certificates so far."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._done, self._primal, self._dual = 0, 0.0, 0.0

    def __call__(self, trained: Trained) -> bool:
        """Whether to go on."""
        machine = trained.machine
        self._done += 1
        self._primal += float(getattr(machine, "objective_", np.nan))
        self._dual += float(getattr(machine, "dual_objective_", np.nan))
        go_on = self._monitor.watch(self._done, self._primal, self._dual, members=self._done)
        return go_on and getattr(machine, "stopped_", "") != "interrupted"
