"""A model whose points are seen through a kernel: scores of labels are expansions sum_v c_v k(x_t, v).

The kernel's feature map phi (`mercer.lowrank`) takes the place of the points, so that the linear model on phi(x_t) is
the kernel model, and every solver and every model with points takes part.  With landmarks S the score of a label is an
expansion on S; where S are all training points the machine is the exact one, because K~ = K on these.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from mercer.errors import InvalidInput
from mercer.kernels import Kernel
from mercer.lowrank.approximations import Approximation, Nystrom
from mercer.lowrank.feature_map import FeatureMap, KernelMap
from mercer.problems.structured import Examples, Rescaling, SparseVector, Vector
from mercer.structured.model import Found, StructuredModel

Array = NDArray[np.float64]


class WithKernel(StructuredModel):
    """Any model with points (chains, trees, grids, classes), its points seen through a kernel.

    model : the model.
    kernel : a positive definite kernel.
    approximation : the feature map, such as Nystrom(1000); None takes all training points as landmarks, which is exact.
    seed : of the choice of landmarks.
    feature_map : the map itself, by default made from the training data.
    """

    name = "with kernel"

    def __init__(
        self,
        model: StructuredModel,
        kernel: Kernel,
        approximation: Approximation | None = None,
        seed: int = 0,
        feature_map: FeatureMap | None = None,
    ) -> None:
        self.model, self.kernel, self.approximation, self.seed = model, kernel, approximation, seed
        self.feature_map = feature_map

    @property
    def rescalings(self) -> tuple[Rescaling, ...]:  # type: ignore[override]  # those of the model inside
        """Those of the model inside."""
        return self.model.rescalings

    # Points ---------------------------------------------------------------------------------------------------------

    def prepared(self, X: Any, Y: Any) -> Self:
        """The feature map of all points in X, and the model inside prepared for its features."""
        if not isinstance(self.kernel, Kernel):
            raise InvalidInput(f"kernel must be a kernel such as Gaussian(sigma=1.0), got {self.kernel!r}")
        inputs = list(X)
        points = self._all_points(inputs)
        chosen = Nystrom(m=len(points)) if self.approximation is None else self.approximation
        found = chosen.feature_map(self.kernel, points, seed=self.seed)
        inner = self.model.prepared(self._mapped(inputs, found), Y)
        return type(self)(inner, self.kernel, self.approximation, self.seed, found)

    def check(self, X: Any, Y: Any = None) -> tuple[Any, Any]:
        """Inputs and structures as the model inside takes them, with features for points."""
        assert self.feature_map is not None, "prepared first"
        return self.model.check(self._mapped(list(X), self.feature_map), Y)

    def _all_points(self, inputs: Sequence[Any]) -> Array:
        """The points (N, d) of all inputs, one below the other."""
        parts = [part for part in map(self.model.points, inputs) if len(part)]
        if len({part.shape[1] for part in parts}) != 1:
            raise InvalidInput("all points of X need the same number of features, and there must be some")
        return np.asarray(check_array(np.concatenate(parts), dtype=np.float64))

    def _mapped(self, inputs: Sequence[Any], feature_map: FeatureMap) -> list[Any]:
        """The inputs with features in the place of their points."""
        counts = [len(self.model.points(x)) for x in inputs]
        if not sum(counts):
            features = np.empty((0, feature_map.dimension))
        else:
            points = self._all_points(inputs)
            wide = feature_map.points.shape[1] if isinstance(feature_map, KernelMap) else points.shape[1]
            if points.shape[1] != wide:
                raise InvalidInput(f"X has {points.shape[1]} features, the model was made for {wide}")
            features = feature_map.features(points)
        parts = np.split(features, np.cumsum(counts)[:-1])
        return [self.model.with_points(x, part) for x, part in zip(inputs, parts, strict=False)]

    # All else is said by the model inside --------------------------------------------------------------------------

    def size(self) -> int:
        """The length of the weights of the features."""
        return self.model.size()

    def joint_features(self, x: Any, y: Any) -> Vector | SparseVector:
        """Those of the model inside."""
        return self.model.joint_features(x, y)

    def loss(self, y: Any, other: Any) -> float:
        """That of the model inside."""
        return self.model.loss(y, other)

    def largest_loss(self, y: Any) -> float:
        """That of the model inside."""
        return self.model.largest_loss(y)

    def infer(self, w: Vector, x: Any) -> Any:
        """That of the model inside."""
        return self.model.infer(w, x)

    def loss_augmented(self, w: Vector, x: Any, y: Any, rescaling: Rescaling) -> Found:
        """That of the model inside."""
        return self.model.loss_augmented(w, x, y, rescaling)

    def examples(self, X: Sequence[Any], Y: Sequence[Any], rescaling: Rescaling) -> Examples:
        """Those of the model inside."""
        return self.model.examples(X, Y, rescaling)

    def predict(self, w: Vector, X: Sequence[Any]) -> list[Any]:
        """Those of the model inside."""
        return self.model.predict(w, X)

    def decoded(self, y: Any) -> Any:
        """As the model inside says it."""
        return self.model.decoded(y)

    def state(self) -> Mapping[str, Any]:
        """The kernel, the landmarks with their transform, and the state of the model inside."""
        found = self.feature_map
        if not isinstance(found, KernelMap):
            raise InvalidInput(
                f"a {type(found).__name__} cannot be stored in a model file: use Nystrom, or pickle the machine"
            )
        parts = {"points": found.points, "transform": found.transform, "shift": found.shift}
        arrays = {name: part for name, part in parts.items() if part is not None}
        inside = {f"model {name}": value for name, value in self.model.state().items()}
        return {"model": self.model.name, "kernel": self.kernel, **arrays, **inside}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The model that `state` describes."""
        kind = next((kind for kind in known_models() if kind.name == state["model"]), None)
        if kind is None:
            raise InvalidInput(f"a model of the name {state['model']!r:.80} is not known")
        inside = {name.removeprefix("model "): value for name, value in state.items() if name.startswith("model ")}
        found = KernelMap(state["kernel"], state["points"], state.get("transform"), state.get("shift"))
        return cls(kind.from_state(inside), state["kernel"], feature_map=found)


def known_models() -> list[type[StructuredModel]]:
    """All models that are defined, one's own among them."""
    found: list[type[StructuredModel]] = []
    waiting = StructuredModel.__subclasses__()
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        found += [kind] if hasattr(kind, "name") else []
    return found
