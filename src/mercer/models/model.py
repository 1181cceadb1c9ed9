"""A machine with the preparation its points need, and the file that holds both.

The file holds names and numbers only, and what they may become is in a fixed list (`mercer.models.machines`): loading
cannot run code, whoever wrote the file.
"""

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import get_tags

import mercer
from mercer.data import Standardise
from mercer.errors import InvalidInput, MercerError, ModelFileError
from mercer.models import container
from mercer.models.fields import Draft, Stored
from mercer.models.machines import decode_machine, encode_machine, feature_names
from mercer.structured import StructuredModel

EXTREME = 1e100  # means beyond it and scales below its inverse would make ordinary points infinite
# What a file can provoke that is not yet a ModelFileError: values that a constructor or NumPy refuses.
REFUSALS = (
    MercerError, ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RecursionError, MemoryError,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted machine and what belongs to it.

    - `standardise`: applied to points before the machine sees them, None where they go in as they are;
    - `feature_names`: of the d columns, where they are known;
    - `notes`: anything JSON can hold, such as how a table was turned into columns;
    - `about`: format, versions and time of writing of a model that was loaded.
    """

    machine: Any
    standardise: Standardise | None = None
    feature_names: tuple[str, ...] | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)

    def prepare(self, X: Any) -> Any:
        """Points (n, d) as the machine takes them."""
        return X if self.standardise is None else self.standardise(X)

    def predict(self, X: Any) -> Any:
        """Labels or values (n,), or (n, k) for several outputs, of points as they were before standardisation."""
        return self.machine.predict(self.prepare(X))

    def decision_function(self, X: Any) -> Any:
        """Decision values of the machine."""
        return self.machine.decision_function(self.prepare(X))

    def predict_proba(self, X: Any) -> Any:
        """Class probabilities (n, k), for a classifier that was trained with them."""
        return self.machine.predict_proba(self.prepare(X))

    def __repr__(self) -> str:
        scaled = ", standardised" if self.standardise is not None else ""
        return f"Model({self.machine!r}{scaled})"


def save(
    machine: Any,
    path: str | os.PathLike[str],
    *,
    standardise: Standardise | None = None,
    feature_names: Any = None,
    notes: Mapping[str, Any] | None = None,
    solution: bool = False,
) -> None:
    """Write a fitted machine, or a Model, to one file that appears complete or not at all.

    standardise, feature_names, notes : what belongs to it; see `Model`.
    solution : also keep `solution_`, with n coefficients and N variables for each machine, to go on training from.
    """
    model = machine if isinstance(machine, Model) else Model(machine)
    standardise = model.standardise if standardise is None else standardise
    names = model.feature_names if feature_names is None else feature_names
    notes = model.notes if notes is None else notes
    draft = Draft(encode_machine, solution)
    encode_machine(draft, model.machine)
    _encode_preparation(draft, model.machine, standardise, names)
    draft.facts["notes"] = _plain(notes)
    draft.facts["about"] = {
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "mercer": mercer.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    container.write(Path(path), draft.facts, draft.tensors)


def load(
    path: str | os.PathLike[str], *, limit: int | str | None = None, model: type[StructuredModel] | None = None
) -> Any:
    """The machine in a file, ready to predict; a Model where its points are standardised first.

    model : class of one's own `StructuredModel`, where the machine has one: a file holds its state and not its code.
    limit : largest file to read, as bytes or text such as "2 GiB"; by default what is free.  A file that is damaged,
    foreign or of another version is a ModelFileError.
    """
    found = load_model(path, limit=limit, model=model)
    return found.machine if found.standardise is None else found


def load_model(
    path: str | os.PathLike[str], *, limit: int | str | None = None, model: type[StructuredModel] | None = None
) -> Model:
    """The machine in a file with all that belongs to it."""
    try:
        stored = Stored(*container.read(Path(path), limit), decode_machine, model)
        machine = decode_machine(stored)
        standardise, names = _decode_preparation(stored, machine)
        found = Model(machine, standardise, names, stored.section("notes"), stored.section("about"))
        stored.refuse_rest()
        return found
    except REFUSALS as error:
        raise ModelFileError(f"{path}: {' '.join(str(error).split())}") from None


# What belongs to it ------------------------------------------------------------------------------------------------


def _encode_preparation(draft: Draft, machine: Any, standardise: Standardise | None, names: Any) -> None:
    draft.facts["standardise"] = None if standardise is None else "scale" if standardise.mean_ is None else "move"
    if standardise is not None:
        features = draft.facts["n_features_in_"]
        if get_tags(machine).input_tags.pairwise or len(standardise.scale_) != features:
            raise InvalidInput(f"standardise is for {len(standardise.scale_)} features, the machine for {features}")
        draft.tensor("standardise.scale", standardise.scale_)
        if standardise.mean_ is not None:
            draft.tensor("standardise.mean", standardise.mean_)
    draft.facts["features named"] = names is not None
    if names is not None:
        if draft.facts["n_features_in_"] not in (None, len(names)):
            raise InvalidInput(f"feature_names has {len(names)} names for {draft.facts['n_features_in_']} features")
        draft.texts("feature_names", [str(name) for name in names])


def _decode_preparation(stored: Stored, machine: Any) -> tuple[Standardise | None, tuple[str, ...] | None]:
    features = getattr(machine, "n_features_in_", None)
    names = feature_names(stored, "feature_names", features) if stored.flag("features named") else None
    if names is None and hasattr(machine, "feature_names_in_"):
        names = machine.feature_names_in_
    standardise = None
    if stored.fact("standardise") is not None:
        moved = stored.text("standardise", ("move", "scale")) == "move"
        scale = stored.tensor("standardise.scale", np.float64, (features,))
        mean = stored.tensor("standardise.mean", np.float64, (features,)) if moved else None
        if scale.size and not scale.min() >= 1.0 / EXTREME:
            raise ModelFileError("a scale of its standardisation is not above zero")
        if mean is not None and mean.size and np.abs(mean).max() > EXTREME:
            raise ModelFileError("a mean of its standardisation is out of range")
        standardise = Standardise.of(mean, scale)
    return standardise, None if names is None else tuple(map(str, names))


def _plain(notes: Mapping[str, Any]) -> dict[str, Any]:
    """Notes as JSON holds them; what it cannot hold is refused."""
    try:
        plain = json.loads(json.dumps(dict(notes), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"notes must be names, numbers and texts that JSON can hold: {error}") from None
    assert isinstance(plain, dict)
    return plain
