"""The members of an ensemble in a model file, each a machine inside the file, with what they see of new points.

Members that share a kernel matrix are machines on given kernel values: the kernel and the points are stored once, for
all of them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import get_tags

from mercer.ensembles.experts import MixtureOfExperts
from mercer.ensembles.members import Members
from mercer.ensembles.sampled import BankedEnsemble
from mercer.ensembles.sampling import Sample, coverage
from mercer.ensembles.stacking import Stacking
from mercer.ensembles.views import GivenMatrix, OwnPoints, SharedMatrix, View
from mercer.errors import ModelFileError
from mercer.models.banks import features_of
from mercer.models.expansion import decode_kernel_and_points, encode_kernel_and_points
from mercer.models.fields import Draft, Stored
from mercer.models.point_fields import count
from mercer.models.state import decode_state
from mercer.resources import Resources

VIEWS: dict[str, type[View]] = {"own points": OwnPoints, "given matrix": GivenMatrix, "shared matrix": SharedMatrix}


def encode_members(draft: Draft, ensemble: BankedEnsemble) -> None:
    """Store the members, and the machine above them where there is one."""
    bank: Members = ensemble.bank_
    draft.facts["view"] = next(name for name, kind in VIEWS.items() if type(bank.view) is kind)
    draft.facts["points seen"] = len(ensemble.coverage_.seen)
    draft.facts["features seen"] = [sample.features is not None for sample in bank.samples]
    for number, (machine, sample) in enumerate(zip(bank.machines, bank.samples)):
        draft.machine(f"member {number}", machine)
        draft.tensor(f"rows {number}", sample.rows.astype(np.int64))
        if sample.features is not None:
            draft.tensor(f"features {number}", sample.features.astype(np.int64))
    if isinstance(bank.view, SharedMatrix):
        view = draft.part("shared")
        encode_kernel_and_points(view, bank.view.kernel, bank.view.points)
        view.facts["precision"], view.facts["storage"] = bank.view.resources.precision, bank.storage
        draft.tensor("used", bank.view.used.astype(np.int64))
    if ensemble._above:
        draft.machine(ensemble._above.rstrip("_"), getattr(ensemble, ensemble._above))


def decode_members(stored: Stored, ensemble: BankedEnsemble) -> None:
    """Set the members of an ensemble that has its parameters."""
    features = features_of(ensemble)
    kind = VIEWS[stored.text("view", tuple(VIEWS))]
    n = stored.count("points seen")
    some = stored.entries("features seen")
    samples = [
        Sample(
            _index(stored, f"rows {number}", n),
            features=_index(stored, f"features {number}", features or 0) if flag is True else None,
        )
        for number, flag in enumerate(some)
    ]
    if not samples:
        raise ModelFileError("it has no members")
    decode_state(stored, ensemble, {"members": len(samples)})
    view, storage = _view(stored, kind, ensemble, features, n, samples)
    bases = ensemble._bases if isinstance(ensemble._base, (list, tuple)) else [ensemble._base] * len(samples)
    if len(bases) != len(samples):
        raise ModelFileError(f"{len(samples)} members are not made of {len(bases)} machines")
    machines = [stored.machine(f"member {number}", (type(base),)) for number, base in enumerate(bases)]
    for machine, sample in zip(machines, samples):
        _refuse_misfit(machine, sample, view, features)
    ensemble.bank_ = Members(machines, samples, view, ensemble._columns, storage)
    ensemble.coverage_ = coverage(samples, n)
    if isinstance(ensemble, Stacking):
        ensemble.final_ = stored.machine("final", (type(ensemble._final),))
        if features_of(ensemble.final_) != len(samples) * ensemble._columns:
            raise ModelFileError("its second machine does not take the outputs of its members")
    if isinstance(ensemble, MixtureOfExperts):
        ensemble.gate_ = stored.machine("gate", (type(ensemble._gate),))
        experts = np.asarray(ensemble.gate_.classes_)
        if ensemble.gate_.n_features_in_ != features or not np.array_equal(experts, np.arange(len(samples))):
            raise ModelFileError("its gate does not tell its experts apart")
    ensemble._conclude()


def _index(stored: Stored, name: str, most: int) -> Any:
    found = stored.index(name, None, most)
    if not len(found) or np.any(np.diff(found) <= 0):
        raise ModelFileError(f"{name!r} does not ascend")
    return found


def _view(
    stored: Stored,
    kind: type[View],
    ensemble: BankedEnsemble,
    features: int | None,
    n: int,
    samples: Sequence[Sample],
) -> tuple[View, str | None]:
    given = bool(get_tags(ensemble._first).input_tags.pairwise)
    if given != (kind is GivenMatrix):
        raise ModelFileError(f"its members see {stored.text('view')}, its machine does not")
    if kind is GivenMatrix:
        columns = features if ensemble._kept is None else len(ensemble._kept)
        if columns != n or (ensemble._kept is not None and max(ensemble._kept, default=0) >= (features or 0)):
            raise ModelFileError(f"its members were trained on {n} points of a matrix of other columns")
        return GivenMatrix(None), None
    if kind is OwnPoints:
        return OwnPoints(None), None
    part = stored.part("shared")
    kernel, points = decode_kernel_and_points(part, "objects" if features is None else "features", features)
    used = _index(stored, "used", n)
    if len(used) != count(points) or any(len(np.setdiff1d(sample.rows, used)) for sample in samples):
        raise ModelFileError("its members see points that it does not hold")
    precision = part.text("precision", ("float32", "float64"))
    resources = Resources(ensemble._first.memory, precision, threads=ensemble._first.n_jobs)
    return SharedMatrix(kernel, points, used, resources), part.text("storage")


def _refuse_misfit(machine: Any, sample: Sample, view: View, features: int | None) -> None:
    """A member must take what it will be shown."""
    width = features if sample.features is None else len(sample.features)
    width = len(sample.rows) if view.given else width
    pairwise = bool(get_tags(machine).input_tags.pairwise)
    kind = getattr(machine, "_kind", None)
    wrong_kind = kind is not None and (kind == "precomputed") != view.given
    if features_of(machine) != width or pairwise != view.given or wrong_kind:
        raise ModelFileError(f"the {type(machine).__name__} inside it takes other points than it")
