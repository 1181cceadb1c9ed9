"""What a model of structured output has to say: joint features, inference, loss-augmented inference and loss.

A structured machine predicts  argmax over y of w.F(x, y).  A model knows F, the structures y of an input x, and how
to find the best of them; the solvers (`mercer.solvers.structured`) know nothing else of it.  To write one's own,
derive from `StructuredModel` and give five methods:

    class Ranked(StructuredModel):
        name = "ranked"                                  under which a model file will know it
        def size(self): ...                              the length of w
        def joint_features(self, x, y): ...              F(x, y), dense (size,) or a SparseVector
        def loss(self, y, other): ...                    Delta(y, other) >= 0, zero for other = y
        def infer(self, w, x): ...                       argmax over y' of w.F(x, y')
        def loss_augmented(self, w, x, y, rescaling):    Found(argmax over y' of what `value` computes)
            ...

`check` may look at the inputs and structures it is given and should: what it returns is what all other methods get.
Where sizes follow from the data, `prepared` returns a model that has them.  `state` and `from_state` make model files
possible. A model must not change while it is used: several threads may ask it.

Inference need not be exact.  It then returns the best structure it has with a bound on the maximum: the primal value
of the certificate is made of the bounds and stays true, and the gap ends where inference does.  What a relaxation
returns may be fractional, as long as `joint_features` and `loss` are linear in it: then the certificate is that of the
relaxed problem, whose primal value is never below the exact one.  Inference that has neither the maximum nor a bound
says bound=inf, and there is no certificate.

Models whose structures are found by compiled code hand all examples over at once: they override `examples` and
`predict`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.errors import InvalidInput
from mercer.problems.structured import Examples, Rescaling, SparseVector
from mercer.structured.looping import LoopedExamples

Vector = NDArray[np.float64]


class Found(NamedTuple):
    """What loss-augmented inference found, and an upper bound on the maximum; None: it is the maximum."""

    structure: Any
    bound: float | None = None


def distinct_labels(given: Any, structures: Sequence[Any]) -> NDArray[Any]:
    """The labels (k,) that are given, else those of structures, sorted; there must be two of them."""
    found = np.unique(np.concatenate([np.ravel(y) for y in structures])) if given is None else np.asarray(given)
    if found.ndim != 1 or len(np.unique(found)) != len(found) or len(found) < 2:
        raise InvalidInput(f"there must be at least two different labels, got {len(np.unique(found))}")
    return found


def numbered(labels: Any, given: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Numbers (...) of the labels given, and which of them are strangers."""
    order = np.argsort(labels)
    codes = order[np.minimum(np.searchsorted(labels, given, sorter=order), len(order) - 1)]
    return codes.astype(np.intp), np.asarray(np.asarray(labels)[codes] != given)


class StructuredModel(ABC):
    """Base of all models; see the head of this file for how to write one's own."""

    name: ClassVar[str]
    rescalings: ClassVar[tuple[Rescaling, ...]] = ("margin",)
    """Forms of the loss for which `loss_augmented` has an answer."""

    # What a model must say -----------------------------------------------------------------------------------------

    @abstractmethod
    def size(self) -> int:
        """The length of w."""

    @abstractmethod
    def joint_features(self, x: Any, y: Any) -> Vector | SparseVector:
        """F(x, y): dense (size,) or sparse."""

    @abstractmethod
    def loss(self, y: Any, other: Any) -> float:
        """Delta(y, other) >= 0 of `other` where y is right; Delta(y, y) = 0."""

    @abstractmethod
    def infer(self, w: Vector, x: Any) -> Any:
        """The structure of the largest w.F(x, y)."""

    @abstractmethod
    def loss_augmented(self, w: Vector, x: Any, y: Any, rescaling: Rescaling) -> Found:
        """The structure y' of the largest `value`, for the right structure y."""

    # What a model may say ------------------------------------------------------------------------------------------

    def check(self, X: Any, Y: Any = None) -> tuple[Sequence[Any], Sequence[Any] | None]:
        """Inputs and structures as the other methods take them, of equal number; bad ones are InvalidInput."""
        inputs = list(X)
        structures = None if Y is None else list(Y)
        if structures is not None and len(structures) != len(inputs):
            raise InvalidInput(f"X has {len(inputs)} inputs and Y {len(structures)} structures; give one for each")
        return inputs, structures

    def prepared(self, X: Any, Y: Any) -> Self:
        """The model for these training data, with sizes and labels read off them."""
        return self

    def decoded(self, y: Any) -> Any:
        """A structure as the user knows it."""
        return y

    def largest_loss(self, y: Any) -> float:
        """The largest loss that any prediction has where y is right; the unit of `score`."""
        return 1.0

    def points(self, x: Any) -> Any:
        """The points (T, d) of an input as the user gives it, dense, for a kernel to stand on; by default x itself."""
        values = x.toarray() if sp.issparse(x) else np.asarray(x)
        return np.atleast_2d(values) if values.size else np.empty((0, 0))

    def with_points(self, x: Any, points: Vector) -> Any:
        """The same input with other points (T, p) in the place of its own."""
        return points[0] if np.ndim(x) == 1 and len(points) else points

    def state(self) -> Mapping[str, Any]:
        """Everything `from_state` needs: names with numbers, texts, kernels, or arrays of numbers or texts."""
        raise InvalidInput(
            f"{type(self).__name__} cannot be stored in a model file: it has no `state`; give it `state` and "
            "`from_state`, or pickle the machine"
        )

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The model that `state` describes."""
        return cls(**state)

    # What follows --------------------------------------------------------------------------------------------------

    def value(self, w: Vector, x: Any, y: Any, other: Any, rescaling: Rescaling) -> float:
        """What loss-augmented inference maximises, for the right structure y and another y'.

        Delta + w.(F(x, y') - F(x, y)), or Delta (1 + w.(F(x, y') - F(x, y))) for slack rescaling.
        """
        loss = float(self.loss(y, other))
        margin = self.score_of(w, x, other) - self.score_of(w, x, y)
        return loss + margin if rescaling == "margin" else loss * (1.0 + margin)

    def score_of(self, w: Vector, x: Any, y: Any) -> float:
        """w.F(x, y)."""
        found = self.joint_features(x, y)
        return found.dot(w) if isinstance(found, SparseVector) else float(found @ w)

    def examples(self, X: Sequence[Any], Y: Sequence[Any], rescaling: Rescaling) -> Examples:
        """Checked inputs and structures as the solvers take them."""
        return LoopedExamples(self, X, Y, rescaling)

    def predict(self, w: Vector, X: Sequence[Any]) -> list[Any]:
        """The best structures of checked inputs."""
        return [self.infer(w, x) for x in X]

    def score(self, Y: Sequence[Any], Z: Sequence[Any]) -> float:
        """1 - sum of losses / sum of largest losses of predictions Z where Y is right."""
        largest = float(sum(self.largest_loss(y) for y in Y))
        lost = float(sum(self.loss(y, z) for y, z in zip(Y, Z, strict=True)))
        return 1.0 - lost / largest if largest > 0.0 else 1.0

    def refuse_rescaling(self, rescaling: str) -> None:
        """Refuse a form of the loss that this model has no inference for."""
        if rescaling not in self.rescalings:
            raise InvalidInput(
                f"{type(self).__name__} has no loss-augmented inference for rescaling={rescaling!r}; it has "
                f"{' and '.join(map(repr, self.rescalings))}"
            )
