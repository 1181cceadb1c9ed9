"""mercer: kernel machines, each answer with a certificate of how far from optimal it is.

Everything here minimises a loss on the data plus a norm in the space of a kernel,

    min over f, b of   sum_i C_i loss(y_i, f(x_i) + b)  +  1/2 ||f||^2_K .

The names below are loaded when they are first used, so that `import mercer` itself stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mercer.data import Dataset as Dataset
    from mercer.versions import show_versions as show_versions

__version__ = "0.1.0"

# Public name -> the module that defines it.
_HOME = {
    "Dataset": "mercer.data",
    "show_versions": "mercer.versions",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    """Load a public name from the module that defines it (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'mercer' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
