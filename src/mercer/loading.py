"""Loading of modules: only those that are used, and without a search for garbage among all that they define.

A room of the package brings numpy, scipy, scikit-learn and Numba with it, two hundred thousand objects that live as
long as the process.  What dies young while they are made is collected as ever; going through all the others again and
again finds next to nothing and takes a tenth of the time of loading.
"""

import gc
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

NEVER = 1 << 30  # collections of middle age before one of everything


def load(name: str) -> ModuleType:
    """The module of this name; meanwhile only young objects are searched for garbage."""
    thresholds = gc.get_threshold()
    if gc.get_freeze_count():  # the program has set objects aside itself, and they must stay there
        return import_module(name)
    gc.set_threshold(*thresholds[:2], NEVER)
    try:
        return import_module(name)
    finally:
        # There and back: all objects are now among the oldest, as after a collection, and are collected in their turn.
        gc.freeze()
        gc.unfreeze()
        gc.set_threshold(*thresholds)


def on_first_use(modules: dict[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` (PEP 562) of a package whose public names are loaded when they are first used.

    `modules` has for each module the names that are taken from it, in one string.
    """
    home = {name: module for module, names in modules.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"there is no {name!r} among {', '.join(sorted(home))}")
        return getattr(load(home[name]), name)

    return find
