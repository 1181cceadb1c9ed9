"""The low-rank approximation of a machine in a model file.

Landmarks are stored like support vectors, and predictions need nothing else.  Random Fourier features are stored as
their frequencies.
"""

from typing import Any

import numpy as np

from mercer.errors import ModelFileError
from mercer.kernels import Kernel
from mercer.lowrank.approximations import approximation_from_dict
from mercer.lowrank.fourier import FourierMap
from mercer.models.fields import Draft, Stored, encode

MOST_FEATURES = 1 << 24


def encode_approximation(draft: Draft, machine: Any) -> None:
    """Store which approximation was used and why, and the frequencies of a Fourier map."""
    draft.facts["approximation"] = None
    draft.facts["approximation reason"] = machine.approximation_reason_
    if machine.approximation_ is None:
        return
    draft.facts["approximation"] = machine.approximation_.to_dict()
    draft.facts["fourier"] = None
    if isinstance(machine.feature_map_, FourierMap):
        found = machine.feature_map_
        draft.facts["fourier"] = {"variance": encode(float(found.variance), "variance"), "method": found.method}
        draft.tensor("frequencies", found.frequencies)


def decode_approximation(stored: Stored, machine: Any, kernel: Kernel | None, features: int | None) -> None:
    """Set `approximation_`, its reason, and `feature_map_` where predictions go through it (else None)."""
    machine.approximation_ = machine.feature_map_ = None
    machine.approximation_reason_ = stored.text("approximation reason")
    if stored.fact("approximation") is None:
        return
    machine.approximation_ = approximation_from_dict(stored.fact("approximation"))
    if machine._kind != "features" or kernel is None:
        raise ModelFileError("an approximation needs points with features")
    if stored.fact("fourier") is not None:
        facts = Stored(stored.section("fourier"), {})
        frequencies = stored.tensor("frequencies", np.float64, (features, None))
        variance = facts.number("variance")
        if not 0.0 < variance < np.inf or not 0 < frequencies.shape[1] <= MOST_FEATURES:
            raise ModelFileError("its Fourier features have no frequencies or no variance")
        machine.feature_map_ = FourierMap(kernel, frequencies, variance, method=facts.text("method"))
