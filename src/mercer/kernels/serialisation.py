"""Kernels as plain dictionaries, for model files: names and numbers only, so that reading one cannot run code."""

from collections.abc import Mapping
from functools import cache
from inspect import isabstract, signature
from typing import Any

from mercer.errors import InvalidInput
from mercer.kernels.base import Kernel
from mercer.parameters import described, rebuilt


@cache
def _registry() -> dict[str, type[Kernel]]:
    """The public kernels by name, without those that hold a Python function."""
    from mercer import kernels

    public = (getattr(kernels, name) for name in kernels.__all__)
    kinds = [kind for kind in public if isinstance(kind, type) and issubclass(kind, Kernel) and not isabstract(kind)]
    return {kind.__name__: kind for kind in kinds if "function" not in signature(kind).parameters}


def kernel_to_dict(kernel: Kernel) -> dict[str, Any]:
    """The kernel as a dictionary that JSON can hold, see `mercer.parameters.described`."""
    _refuse_functions(kernel)
    return described(kernel)


def _refuse_functions(kernel: Kernel) -> None:
    """Refuse a kernel with a part that is none of mercer's own, or holds a Python function."""
    if _registry().get(type(kernel).__name__) is not type(kernel):
        raise InvalidInput(
            f"{kernel!r} holds a Python function or a class of your own, which a file cannot carry without running "
            "code; give the kernel again when you load the model, or compute the matrix and use Precomputed"
        )
    for part in kernel._children.values():
        _refuse_functions(part)


def kernel_from_dict(description: Mapping[str, Any]) -> Kernel:
    """The kernel a dictionary describes; names and arguments that are not known are refused."""
    return rebuilt(description, _registry(), "kernel")
