"""The search for C, width and epsilon by cross-validation, with the grid as the unit of work.

Candidates are rows: one width (and epsilon) with all its values of C, which are one warm path.  All rows share one
set of squared distances, all folds and all C of a row one kernel matrix.

    "grid"      every combination
    "random"    as many widths, drawn at random (uniform in the logarithm) between the ends of the grid, each with its
                own random values of C
    "halving"   all combinations on a ninth of the points, the better third of them on a third, the best third of
                those on all; C times the number of losses is held fixed from round to round, which keeps the weight
                of the norm (Rifkin 2002, section 2.6)
"""

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer import threads
from mercer.errors import InvalidInput
from mercer.gram import SquaredDistances
from mercer.kernels import Kernel
from mercer.resources import budget
from mercer.selection import cross_validation as validation
from mercer.selection import latent_path, logistic_path
from mercer.selection.class_pairs import Pairs
from mercer.selection.cross_validation import Classes, Outcome, Settings, Targets
from mercer.selection.folds import Layout, assign
from mercer.selection.grid import Grid
from mercer.selection.latent_path import Learner, Ranks
from mercer.selection.logistic_path import Distributions
from mercer.selection.result import SearchResult
from mercer.selection.scoring import CLASSIFICATION, score_of
from mercer.selection.search_record import EVERY, SearchRecord
from mercer.selection.similarities import Streamed, similarities
from mercer.selection.streamed_path import StreamedPairs, streamed_fold
from mercer.solvers.monitor import Monitor, listening

Array = NDArray[np.float64]
Index = NDArray[np.intp]

MODES = ("grid", "random", "halving")
SHARE = 3  # every round of halving keeps one candidate in three and takes three times the points
SMALLEST_ROUND = 300
MATRICES = 4  # kernel matrices held at a time, so that threads always find a task
# Of fewer points, folds one after the other: what Python does around their short products holds the interpreter's lock
# (three widths, three C, 100 points: logistic 0.35 s, two threads 0.41; 300 points: ranks 0.51, two threads 0.38).
SIDE_BY_SIDE = 200
# Paths of C of what is not a support vector machine, on a stored matrix and on values that are streamed.
STORED: dict[type, Any] = {Ranks: latent_path.stored_fold, Distributions: logistic_path.stored_fold}
STREAMED: dict[type, Any] = {Ranks: latent_path.streamed_fold, Distributions: logistic_path.streamed_fold}


@dataclass(frozen=True)
class Row:
    """One width and epsilon (None: the problem has none) with values of C in rising order."""

    sigma: float | None
    epsilon: float | None
    costs: tuple[float, ...]

    def candidate(self, C: float) -> dict[str, float]:
        """The parameters of one candidate."""
        named = {"C": C, "sigma": self.sigma, "epsilon": self.epsilon}
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True)
class Data:
    """Points X (n, d), and either classes codes (n,) in 0..k-1 or targets y (n,); weights (n,) of the cost.

    Of ranks, y (n,) are the relevances behind the codes, where scores want them.  Points count in the scores by
    `counted` (n,): sample weights do, class weights do not; None: all alike.
    """

    X: Any
    codes: Index | None
    y: Array | None
    classes: int
    weights: Array
    counted: Array | None = None
    logistic: bool = False
    """Whether classes are learnt by logistic regression, and judged by their probabilities unless a score says else."""
    learner: Learner | None = None
    """The machine that learns the codes as ranks, where it is one of a latent function."""
    queries: Index | None = None
    """The query (n,) of every point, where ranks are compared inside queries alone; no fold parts a query."""

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.weights)

    @property
    def terms(self) -> float:
        """What the number of losses is proportional to: points, or their square where all pairs have losses."""
        paired = self.learner is not None and self.learner.by_pairs and self.queries is None
        return float(self.n) ** (2 if paired else 1)

    def part(self, index: Index) -> "Data":
        """Some of the points, in the order of the index."""
        there = {name: getattr(self, name) for name in ("X", "codes", "y", "weights", "counted", "queries")}
        return replace(self, **{name: values[index] for name, values in there.items() if values is not None})

    def identity(self) -> str:
        """A fingerprint of all numbers."""
        digest = hashlib.sha256()
        parts = (self.X.data, self.X.indices, self.X.indptr) if sp.issparse(self.X) else (self.X,)
        for part in (*parts, self.codes, self.y, self.weights, self.counted, self.queries):
            if part is not None:
                digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()


def rows_of(grid: Grid, mode: str, seed: int) -> list[Row]:
    """The rows of a search, from the middle of the grid outwards: one that is cut short has seen the likely ones."""
    sigmas: list[float | None] = list(grid.sigma) or [None]
    epsilons: list[float | None] = list(grid.epsilon) or [None]
    if mode == "random":
        random = np.random.default_rng(seed)

        def draw(values: tuple[float, ...]) -> list[float]:
            return sorted(np.exp(random.uniform(np.log(min(values)), np.log(max(values)), len(values))).tolist())

        drawn: list[float | None] = list(draw(grid.sigma)) if grid.sigma else [None]
        return _outwards([Row(s, e, tuple(draw(grid.C))) for s in drawn for e in epsilons])
    return _outwards([Row(s, e, grid.C) for s in sigmas for e in epsilons])


def _outwards(rows: list[Row]) -> list[Row]:
    middle = (len(rows) - 1) / 2.0
    order = sorted(range(len(rows)), key=lambda i: abs(i - middle))
    return [rows[i] for i in order]


class Round:
    """All rows of one round of a search on one set of points."""

    def __init__(
        self, data: Data, kernel: Kernel, folds: Any, settings: Settings, memory: int, seed: int, name: str,
        record: SearchRecord, report: Any,
    ) -> None:  # fmt: skip
        self.kernel, self.settings, self.memory, self.name = kernel, settings, memory, name
        self.record, self.report = record, report
        self.fresh: dict[tuple[Row, int], Outcome] = {}
        fold = assign(data.n, folds, data.codes, seed, data.queries)
        self.layout = Layout.of(fold, data.codes, seed)
        self.data = data.part(self.layout.order)

    def kernel_at(self, row: Row) -> Kernel:
        """The kernel with the width of a row."""
        return self.kernel if row.sigma is None else self.kernel.with_parameters(sigma=row.sigma)

    def kind(self, row: Row) -> Classes | Targets:
        """The problem of a row."""
        data = self.data
        if data.codes is not None and data.learner is not None:
            known = (data.codes, data.classes, data.weights, data.counted)
            return Ranks(*known, learner=data.learner, relevance=data.y, queries=data.queries)
        if data.codes is not None and data.logistic:
            labels = self.settings.score in CLASSIFICATION.values()
            return Distributions(data.codes, data.classes, data.weights, data.counted, labels)
        if data.codes is not None:
            return Classes(data.codes, data.classes, data.weights, data.counted)
        assert data.y is not None
        assert row.epsilon is not None
        return Targets(data.y, data.weights, row.epsilon, data.counted)

    def key(self, row: Row, fold: int) -> str:
        """Name of an entry of the record."""
        return f"{self.name}/{row.sigma!r}/{row.epsilon!r}/{','.join(map(repr, row.costs))}/{fold}"

    def known(self, row: Row, fold: int) -> Outcome | None:
        """What the record has of a row outside a fold."""
        return self.record.get(self.key(row, fold))

    def run(self, rows: list[Row]) -> Iterator[tuple[Row, list[Outcome]]]:
        """Outcomes of all folds, row by row."""
        folds = range(self.layout.folds)
        todo = [row for row in rows if any(self.known(row, f) is None for f in folds)]
        plain = self.data.learner is None and not self.data.logistic
        if todo and self.data.classes > 2 and plain:
            self._pairs(todo)
        elif todo and self.data.learner is not None and latent_path.by_points(self.kernel_at(todo[0]), self.data.X):
            self._streamed(todo)
        elif todo:
            source = self._source(todo, self.memory)
            if source.capacity >= 1:
                self._stored(source, todo)
            else:
                self._streamed(todo)
        nothing = Outcome(np.empty(0), np.empty(0), 0.0, False)
        for row in rows:
            yield row, [self.known(row, f) or self.fresh.get((row, f), nothing) for f in folds]

    def _keep(self, row: Row, fold: int, outcome: Outcome) -> None:
        self.fresh[row, fold] = outcome
        if outcome.complete:
            self.record.put(self.key(row, fold), outcome)
            self.report(row, outcome)

    def _source(self, todo: list[Row], memory: int) -> SquaredDistances | Streamed:
        """Kernel values for the widths of these rows."""
        widths = len({row.sigma for row in todo})
        return similarities(self.data.X, self.kernel_at(todo[0]), widths=widths, memory=memory)

    def _pairs(self, todo: list[Row]) -> None:
        """As many pairs side by side as the budget holds matrices; where it holds none, values are streamed."""
        kind = self.kind(todo[0])
        assert isinstance(kind, Classes)
        machines = Pairs.coefficient_bytes(kind, self.layout.folds, max(len(row.costs) for row in todo))
        each, left = Pairs.matrix_bytes(kind), self.memory - machines
        source = self._source(todo, left) if each <= left else None
        if isinstance(source, SquaredDistances):
            left -= source.values.nbytes
        for row in todo:
            if not self.settings.go_on():
                return
            settings = replace(self.settings, costs=np.array(row.costs))
            if source is None:
                streamed = StreamedPairs(self.data.X, self.kernel_at(row), self.layout, kind, settings, self.memory)
                found = streamed.run()
            else:
                pairs = Pairs(source.at(self.kernel_at(row)), self.layout, kind, settings)
                found = pairs.run(max(1, left // each))
            for fold, outcome in enumerate(found):
                self._keep(row, fold, outcome)

    def _stored(self, source: SquaredDistances | Streamed, todo: list[Row]) -> None:
        """A few kernel matrices at a time, in the same memory, with the folds of all their rows as tasks."""
        n = self.data.n
        sigmas = list(dict.fromkeys(row.sigma for row in todo))
        held = min(MATRICES, source.capacity, len(sigmas))
        matrices = [np.empty((n, n), np.float32) for _ in range(held)]

        def task(K: Any, row: Row, fold: int) -> None:
            settings = replace(self.settings, costs=np.array(row.costs))
            kind = self.kind(row)
            validated = STORED.get(type(kind), validation.one_fold)
            self._keep(row, fold, validated(K, self.layout, fold, kind, settings))

        for first in range(0, len(sigmas), held):
            here = sorted(sigmas[first : first + held], key=lambda sigma: sigma or 0.0)  # narrow ones take longest
            tasks = []
            for K, sigma in zip(matrices, here):
                if not self.settings.go_on():
                    return
                own = [row for row in todo if row.sigma == sigma]
                source.at(self.kernel_at(own[0])).block(slice(None), slice(None), K)
                pending = [(row, f) for row in own for f in range(self.layout.folds)]
                tasks += [(K, row, f) for row, f in pending if self.known(row, f) is None]
            with threads.one_blas_thread():
                threads.run(task, tasks, 1 if n < SIDE_BY_SIDE else None)

    def _streamed(self, todo: list[Row]) -> None:
        for row in todo:
            settings = replace(self.settings, costs=np.array(row.costs))
            for fold in range(self.layout.folds):
                if not self.settings.go_on():
                    return
                if self.known(row, fold) is None:
                    kind = self.kind(row)
                    validated = STREAMED.get(type(kind), streamed_fold)
                    where = (self.data.X, self.kernel_at(row), self.layout, fold)
                    self._keep(row, fold, validated(*where, kind, settings, self.memory))


@dataclass
class Table:
    """Rows as they are finished, on the way to a SearchResult."""

    rows: list[tuple[Row, list[Outcome], int, float]]

    def add(self, row: Row, outcomes: list[Outcome], points: int, factor: float = 1.0) -> None:
        """`factor` is what C was multiplied by in this round."""
        self.rows.append((row, outcomes, points, factor))

    def means(self) -> dict[tuple[int, int], float]:
        """Mean score of every finished candidate of the table, by row and cost."""
        found = {}
        for r, (row, outcomes, _, _) in enumerate(self.rows):
            for c in range(len(row.costs)):
                scores = [o.scores[c] if o.scores.size else np.nan for o in outcomes]
                if np.isfinite(scores).all():
                    found[r, c] = float(np.mean(scores))
        return found

    def result(self, folds: int, final: int, **facts: Any) -> SearchResult:
        """All candidates in order of epsilon, width and C; those not judged on `final` points were dropped."""
        lines = []
        for row, outcomes, points, factor in self.rows:
            complete = all(o.complete for o in outcomes)
            for c, C in enumerate(row.costs):
                scores = np.array([o.scores[c] if o.scores.size else np.nan for o in outcomes])
                vectors = float(np.mean([o.support[c] if o.support.size else np.nan for o in outcomes]))
                share = sum(o.seconds for o in outcomes) / len(row.costs)
                ended = "done" if np.isfinite(scores).all() else "stopped early" if complete else "not reached"
                ended = "dropped" if points < final else ended
                lines.append((row.candidate(C / factor), scores, vectors, share, points, ended))
        lines.sort(key=lambda line: (line[0].get("epsilon", 0.0), line[0].get("sigma", 0.0), line[0]["C"]))
        candidates, scored, support, seconds, judged, status = zip(*lines)
        table = np.array(scored).reshape(len(lines), folds)
        counts = np.array(judged, dtype=np.intp)
        return SearchResult(candidates, table, np.array(support), np.array(seconds), counts, status, **facts)


def search(
    data: Data,
    kernel: Kernel,
    grid: Grid,
    *,
    mode: str = "grid",
    folds: Any = 5,
    tol: float = 1e-3,
    scoring: Any = None,
    seed: int = 0,
    early: bool = True,
    memory: int | str | None = None,
    monitor: Monitor | None = None,
    checkpoint: Any = None,
    every: float = EVERY,
) -> SearchResult:
    """Cross-validate all candidates of a grid; see the head of this file for the modes.

    `early` lets a path of C stop once it has clearly turned (two classes and regression).  `checkpoint` names a file
    from which the same search goes on after it was killed.  The monitor's time limit and Ctrl-C end the search with
    what has been finished.
    """
    if mode not in MODES:
        raise InvalidInput(f"mode={mode!r} is not known; give one of {', '.join(MODES)}")
    began = time.perf_counter()
    listener = listening(monitor)
    allowed = budget(memory)
    score = score_of(scoring, data.codes is not None, data.logistic)
    settings = Settings(np.empty(0), tol, score, early, listener.go_on)
    rows = rows_of(grid, mode, seed)
    named = np.asarray(folds).tolist()
    learnt = data.logistic if data.learner is None else repr(data.learner)
    about = repr((data.identity(), repr(kernel), grid, mode, named, tol, str(scoring), seed, early, learnt))
    record = SearchRecord(hashlib.sha256(about.encode()).hexdigest(), checkpoint, every)
    report = _reporter(listener, sum(len(row.costs) for row in rows))
    make = partial(Round, kernel=kernel, settings=settings, memory=allowed, seed=seed, record=record, report=report)
    with listener:
        if mode == "halving":
            table, count = _halve(data, rows, folds, make, seed)
        else:
            whole = make(data, folds=folds, name="all")
            table, count = Table([]), whole.layout.folds
            for row, outcomes in whole.run(rows):
                table.add(row, outcomes, data.n)
        record.close()
        stopped = listener.stopped or "converged"
    seconds = time.perf_counter() - began
    final = max(points for _, _, points, _ in table.rows)
    facts = {"mode": mode, "folds": count, "seed": seed, "points": data.n}
    return table.result(count, final, stopped=stopped, total_seconds=seconds, resumed=record.resumed, facts=facts)


def _reporter(monitor: Monitor, total: int) -> Any:
    """Tell the monitor of every finished fold: best score so far as the objective, and how much is done."""
    state = {"done": 0, "best": -np.inf}

    def report(row: Row, outcome: Outcome) -> None:
        state["done"] += 1
        if np.isfinite(outcome.scores).any():
            state["best"] = max(state["best"], float(np.nanmax(outcome.scores)))
        facts: dict[str, Any] = {"sigma": row.sigma, "epsilon": row.epsilon, "candidates": total}
        monitor.watch(int(state["done"]), -state["best"], -state["best"], best_fold_score=state["best"], **facts)

    return report


def _halve(data: Data, rows: list[Row], folds: Any, make: Any, seed: int) -> tuple[Table, int]:
    """Rounds on more and more points with fewer and fewer candidates."""
    if np.ndim(folds):
        raise InvalidInput("mode='halving' draws samples of the points: give folds as a number")
    random = np.random.default_rng(seed)
    order = random.permutation(data.n)
    if data.queries is not None:  # whole queries, in random order
        order = order[np.argsort(random.permutation(int(data.queries.max()) + 1)[data.queries[order]], kind="stable")]
    elif data.codes is not None:
        # Every beginning of the order holds the classes in their shares.
        place = np.empty(data.n)
        for c in range(data.classes):
            own = order[data.codes[order] == c]
            place[own] = (np.arange(len(own)) + random.uniform(size=1)) / max(1, len(own))
        order = np.argsort(place, kind="stable")
    sizes = [data.n]
    while sizes[0] // SHARE >= SMALLEST_ROUND and len(sizes) < 3:
        sizes.insert(0, sizes[0] // SHARE)
    final, count = Table([]), int(folds)
    for turn, size in enumerate(sizes):
        last = size == data.n
        part = data if last else data.part(np.sort(order[:size]).astype(np.intp))
        factor = data.terms / part.terms
        here = make(part, folds=folds, name=f"round {turn}")
        count = here.layout.folds
        table = Table([])
        scaled = [replace(row, costs=tuple(C * factor for C in row.costs)) for row in rows]
        for row, outcomes in here.run(scaled):
            table.add(row, outcomes, size, factor)
        means = table.means()
        if last or not means:
            final.rows += table.rows
            break
        kept = set(sorted(means, key=lambda at: -means[at])[: max(1, -(-len(means) // SHARE))])
        rows = []
        for r, (row, outcomes, points, _) in enumerate(table.rows):
            stay = [c for c in range(len(row.costs)) if (r, c) in kept]
            leave = [c for c in range(len(row.costs)) if (r, c) not in kept]
            if leave:
                final.add(_columns(row, leave), [_columns_of(o, leave) for o in outcomes], points, factor)
            if stay:
                rows.append(replace(row, costs=tuple(row.costs[c] / factor for c in stay)))
    return final, count


def _columns(row: Row, which: list[int]) -> Row:
    return replace(row, costs=tuple(row.costs[c] for c in which))


def _columns_of(outcome: Outcome, which: list[int]) -> Outcome:
    if not outcome.scores.size:
        return outcome
    return Outcome(outcome.scores[which], outcome.support[which], outcome.seconds, outcome.complete)
