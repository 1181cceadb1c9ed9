"""The bare routines of BLAS and LAPACK, called without the interpreter lock.

SciPy's own wrappers keep the lock, so that factorisations handed to several threads run one after the other.  SciPy
also exports the bare functions (`scipy.linalg.cython_lapack`); called through ctypes they do not hold it.  The
functions of `numpy.linalg` let it go as well and are used where nothing has to happen in place.
"""

import ctypes
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_blas, cython_lapack

from mercer.errors import InvalidInput

Matrix = NDArray[Any]

LETTERS = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}

# Arguments by their kinds: a letter (l), a size (n) or number (s) by reference, an array (a) by its address.  The
# last size of a LAPACK routine is its report, which `call` returns.
BLAS = {
    "gemm": "llnnnsanansan",
    "symm": "llnnsanansan",
    "symv": "lnsanansan",
    "syrk": "llnnsansan",
    "trsm": "llllnnsanan",
}
LAPACK = {
    "geqp3": "nnanaaann",
    "orgqr": "nnnanaann",
    "ormqr": "llnnnanaanann",
    "pbtrf": "lnnann",
    "pbtrs": "lnnnanann",
    "pocon": "lnansaaan",
    "potrf": "lnann",
    "potri": "lnann",
    "potrs": "lnnanann",
    "pstrf": "lnanansan",
    "syevd": "llnanaanann",
    "sytrd": "lnanaaaann",
    "sytrf": "lnanaann",
    "sytrs": "lnnanaann",
    "trtri": "llnann",
    "trtrs": "lllnnanann",
}


def call(name: str, dtype: Any, *arguments: Any) -> int:
    """Run a routine of numbers of one type; what it reports: 0, or the place where it failed.

    Arrays must be contiguous and of that type, those of integers int32; an integer in their place is an address.
    """
    kinds = BLAS.get(name) or LAPACK[name]
    letter = LETTERS.get(np.dtype(dtype))
    if letter is None:
        raise InvalidInput(f"matrices must be of float32 or of float64 and contiguous, these are of {dtype}")
    report = ctypes.c_int(0)
    given = [_argument(kind, value, dtype) for kind, value in zip(kinds, (*arguments, report), strict=False)]
    _routine(letter + name)(*given)
    return report.value


def call_with_room(name: str, dtype: Any, *arguments: Any, integers: bool = False) -> int:
    """`call` for a routine that ends with working arrays: they are asked for first and then made."""
    size, whole = np.empty(1, dtype), np.empty(1, np.int32)
    call(name, dtype, *arguments, size, -1, *((whole, -1) if integers else ()))
    work, places = np.empty(max(1, int(size[0])), dtype), np.empty(max(1, int(whole[0])) if integers else 1, np.int32)
    return call(name, dtype, *arguments, work, len(work), *((places, len(places)) if integers else ()))


def _argument(kind: str, value: Any, dtype: Any) -> Any:
    """What ctypes is given for a letter, size, number or array."""
    if kind == "n" and not isinstance(value, ctypes.c_int):
        return ctypes.c_int(value)
    if kind == "s":
        return ctypes.byref((ctypes.c_float if dtype == np.float32 else ctypes.c_double)(value))
    if kind == "a" and isinstance(value, np.ndarray):
        if not value.flags.forc or value.dtype not in (dtype, np.int32):
            raise InvalidInput("matrices must be of float32 or of float64, all alike and contiguous")
        return value.ctypes.data
    return value


@cache
def _routine(name: str) -> Any:
    """The routine as a ctypes function."""
    module, kinds = (cython_blas, BLAS) if name[1:] in BLAS else (cython_lapack, LAPACK)
    capsule = module.__pyx_capi__[name]
    title, address = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    title.restype, title.argtypes = ctypes.c_char_p, [ctypes.py_object]
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    types: dict[str, Any] = dict.fromkeys("sa", ctypes.c_void_p)
    types |= {"l": ctypes.c_char_p, "n": ctypes.POINTER(ctypes.c_int)}
    return ctypes.CFUNCTYPE(None, *(types[kind] for kind in kinds[name[1:]]))(address(capsule, title(capsule)))
