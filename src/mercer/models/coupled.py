"""A coupled ensemble in a model file: its points once, coefficients and kernels of all members, and a certificate."""

from mercer.ensembles import CoupledEnsemble
from mercer.ensembles.coupled import Together
from mercer.errors import ModelFileError
from mercer.kernels import Kernel
from mercer.models.banks import features_of
from mercer.models.certificate import decode_certificate, encode_certificate
from mercer.models.expansion import decode_kernel_and_points, encode_kernel_and_points
from mercer.models.fields import Draft, Stored, decode_kernel
from mercer.models.state import decode_state


def encode_coupled(draft: Draft, ensemble: CoupledEnsemble) -> None:
    """Store points, kernels and the certificate; coefficients and weights are part of the state."""
    several = not isinstance(ensemble.kernel_, Kernel)
    kernels = ensemble.kernel_ if several else [ensemble.kernel_]
    encode_kernel_and_points(draft, kernels[0], ensemble.points_)
    draft.facts["kernels"] = [kernel.to_dict() for kernel in kernels] if several else None
    encode_certificate(draft, ensemble.together_)


def decode_coupled(stored: Stored, ensemble: CoupledEnsemble) -> None:
    """Set the fitted state of a coupled ensemble that has its parameters."""
    kernel, ensemble.points_ = decode_kernel_and_points(stored, "features", features_of(ensemble))
    decode_state(stored, ensemble, {"points": int(ensemble.points_.shape[0])})
    q, found = len(ensemble.C_), ensemble._coefficients.shape
    if found[1] != q * ensemble._columns or len(ensemble.weights_) != q:
        raise ModelFileError(f"coefficients of the shape {found} are not those of {q} members")
    kernels = None if stored.fact("kernels") is None else [decode_kernel(one) for one in stored.entries("kernels")]
    if kernels is not None and len(kernels) != q:
        raise ModelFileError(f"{len(kernels)} kernels are not those of {q} members")
    ensemble.kernel_ = kernel if kernels is None else kernels
    together = Together()
    decode_certificate(stored, together)
    together.kernel_, ensemble.together_, ensemble.stopped_ = ensemble.kernel_, together, together.stopped_
