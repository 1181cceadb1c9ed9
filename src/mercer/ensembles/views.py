"""What members see of points: some rows and features of them, or values of one kernel matrix that they share.

Members on overlapping samples of the same points need the same kernel values.  `SharedMatrix` computes them once, for
all members, at training and again at prediction; each member then is a machine on given kernel values.  That is done
where it saves values and fits in the budget:

    sum_j g_j^2 > u^2        g_j points of member j, u points that any member sees

so that disjoint parts, whose own matrices are smaller together, are trained from their points (`OwnPoints`).  A kernel
matrix that the user gives is cut in the same way (`GivenMatrix`).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mercer.ensembles.base import Data
from mercer.ensembles.sampling import Sample
from mercer.gram import Gram, KernelColumns, size
from mercer.kernels import Kernel
from mercer.machine.arguments import is_linear, take, working_form
from mercer.machine.base import KernelMachine
from mercer.resources import Resources, row_blocks

Index = NDArray[np.intp]


class View(ABC):
    """How rows of the training points, and new points, are shown to members."""

    given: bool = False
    """Whether members see kernel values in the place of points."""

    @abstractmethod
    def training(self, sample: Sample, rows: Index) -> Any:
        """What a member is trained on: its `rows`, which may repeat some of its sample."""

    @abstractmethod
    def between(self, sample: Sample, inside: Index, outside: Index) -> Any:
        """What a member trained on the rows `inside` sees of the training points `outside`."""

    def stretches(self, X: Any) -> Iterator[tuple[slice, Any]]:
        """New points, or their kernel values against the training points, in stretches that keep to the budget."""
        yield slice(0, size(X)), X

    @abstractmethod
    def new(self, stretch: Any, sample: Sample) -> Any:
        """What a member sees of a stretch."""


@dataclass(frozen=True)
class OwnPoints(View):
    """Every member computes the kernel values between its own points, on all features or on some.

    spread (d,) are the standard deviations of Gaussian noise on the points a member is trained on, None: no noise.
    """

    X: Any
    spread: NDArray[np.float64] | None = None

    def training(self, sample: Sample, rows: Index) -> Any:
        """Rows of the points, with the noise of the member."""
        points = take(self.X, rows)
        if self.spread is not None and sample.noise is not None:
            points = points + self.spread * np.random.default_rng(sample.noise).standard_normal(points.shape)
        return self.new(points, sample)

    def between(self, sample: Sample, inside: Index, outside: Index) -> Any:
        """Rows of the points."""
        return self.new(take(self.X, outside), sample)

    def new(self, stretch: Any, sample: Sample) -> Any:
        """The features of the member."""
        return stretch if sample.features is None else stretch[:, sample.features]


@dataclass(frozen=True)
class GivenMatrix(View):
    """Members see parts of a given kernel matrix (n, n), and new points as its rows against all n."""

    given = True
    matrix: Any

    def training(self, sample: Sample, rows: Index) -> Any:
        """Rows and columns."""
        return self.matrix[np.ix_(rows, rows)]

    def between(self, sample: Sample, inside: Index, outside: Index) -> Any:
        """Rows of some points, columns of others."""
        return self.matrix[np.ix_(outside, inside)]

    def new(self, stretch: Any, sample: Sample) -> Any:
        """The columns of the member."""
        return stretch[:, sample.rows]


class SharedMatrix(View):
    """One kernel matrix (u, u) of the points that any member sees."""

    given = True

    def __init__(self, kernel: Kernel, points: Any, used: Index, resources: Resources) -> None:
        self.kernel, self.points, self.used, self.resources = kernel, points, used, resources

    def __getstate__(self) -> Any:
        """The matrix is for training and does not travel."""
        return {name: value for name, value in vars(self).items() if name not in ("_gram", "_columns")}

    @cached_property
    def _gram(self) -> Any:
        memory, precision = self.resources.memory, self.resources.precision
        return Gram(self.kernel, self.points, memory=memory, precision=precision, storage="dense")

    @cached_property
    def _columns(self) -> KernelColumns:
        return KernelColumns(self.kernel, self.points, self.resources.precision, memory=self.resources.memory)

    def storage(self) -> str:
        """How the matrix is held, in lines."""
        return f"one kernel matrix for all members\n{self._gram.plan()}"

    def forget(self) -> None:
        """Let the matrix go when the members are trained."""
        vars(self).pop("_gram", None)

    def _places(self, rows: Index) -> Index:
        return np.searchsorted(self.used, rows)

    def training(self, sample: Sample, rows: Index) -> Any:
        """Rows and columns of the matrix."""
        return self.between(sample, rows, rows)

    def between(self, sample: Sample, inside: Index, outside: Index) -> Any:
        """Values between two sets of points that members see, from the matrix; others are computed."""
        columns = self._places(inside)
        return self._gram.held_values()[np.ix_(self._places(outside), columns)]

    def stretches(self, X: Any) -> Iterator[tuple[slice, Any]]:
        """Kernel values (b, u), each computed once for all members."""
        for part in row_blocks(size(X), len(self.used)):
            yield part, self._columns.values(X[part])

    def new(self, stretch: Any, sample: Sample) -> Any:
        """The columns of the member."""
        return stretch[:, self._places(sample.rows)]


def resolved(base: Any, data: Data) -> Any:
    """The base with its kernel made definite on all points: widths such as gamma="scale" are the same for all members.

    Rules that a machine follows in its own training, such as sigma="loo", stay; so do bases that have no kernel.
    """
    if not isinstance(base, KernelMachine) or data.kind != "features":
        return base
    if isinstance(base.kernel, Kernel) and set(base.kernel.placeholders.values()) - {"median"}:
        return base
    machine = clone(base)
    return machine.set_params(kernel=machine._resolved(data.kind, working_form(data.X), data.weights))


def view_of(
    data: Data, bases: Sequence[Any], samples: Sequence[Sample], spread: NDArray[np.float64] | None = None
) -> View:
    """How members of these bases on these samples see the points, to which noise may be added."""
    if data.kind == "precomputed":
        return GivenMatrix(data.X)
    if spread is not None:
        return OwnPoints(data.X, spread)
    base = bases[0]
    alike = all(other is base for other in bases) and all(sample.features is None for sample in samples)
    if not alike or not isinstance(base, KernelMachine) or not isinstance(base.kernel, Kernel):
        return OwnPoints(data.X)
    plain = base.approximation is None and base.basis is None and not base.kernel.placeholders
    used = np.unique(np.concatenate([sample.rows for sample in samples]))
    apart, together = sum(float(len(sample.rows)) ** 2 for sample in samples), float(len(used)) ** 2
    resources = Resources(base.memory, "float32" if base.precision == "float32" else "float64", threads=base.n_jobs)
    fits = 2 * 8 * together <= resources.budget
    if not plain or is_linear(base.kernel) or apart <= together or not fits:
        return OwnPoints(data.X)
    points = data.X if len(used) == data.n else take(data.X, used)
    return SharedMatrix(base.kernel, points, used, resources)
