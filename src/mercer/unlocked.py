"""Cholesky factors, solutions and inverses that let other Python threads run meanwhile.

SciPy's own wrappers of LAPACK keep the interpreter lock, so that factorisations handed to several threads run one
after the other.  SciPy also exports the bare functions (`scipy.linalg.cython_lapack`); called through ctypes they do
not hold the lock.  Everything here works in place on the lower triangle of a matrix of float32 or float64, in either
order: LAPACK thinks in columns and sees the lower triangle of rows as the upper one.
"""

import ctypes
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InvalidInput

Matrix = NDArray[Any]

LETTERS = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}
MIRRORED = 256  # rows turned at a time: a square of them stays in cache


def factorise(A: Matrix) -> bool:
    """Write L with A = L L' over the lower triangle of A (n, n); False where A is not positive definite."""
    info, n = ctypes.c_int(0), ctypes.c_int(len(A))
    _function("potrf", A)(_side(A), n, A.ctypes.data, n, info)
    return info.value == 0


def solve(L: Matrix, B: Matrix) -> None:
    """Write (L L')^-1 b over each row b of B (m, n) in C order, from a factor (n, n) of `factorise`."""
    _check_rows(L, B)
    info, n, m = ctypes.c_int(0), ctypes.c_int(len(L)), ctypes.c_int(len(B))
    _function("potrs", L, B)(_side(L), n, m, L.ctypes.data, n, B.ctypes.data, n, info)


def solve_lower(L: Matrix, B: Matrix) -> None:
    """Write L^-1 b over each row b of B (m, n) in C order."""
    _check_rows(L, B)
    info, n, m = ctypes.c_int(0), ctypes.c_int(len(L)), ctypes.c_int(len(B))
    turned = b"T" if L.flags.c_contiguous else b"N"
    _function("trtrs", L, B)(_side(L), turned, b"N", n, m, L.ctypes.data, n, B.ctypes.data, n, info)


def invert_lower(L: Matrix) -> None:
    """Write L^-1 over the lower triangle of L (n, n)."""
    info, n = ctypes.c_int(0), ctypes.c_int(len(L))
    _function("trtri", L)(_side(L), b"N", n, L.ctypes.data, n, info)


def invert(A: Matrix) -> bool:
    """Write the inverse of A (n, n) over it, both triangles; False where A is not positive definite."""
    if not factorise(A):
        return False
    invert_factored(A)
    return True


def invert_factored(L: Matrix) -> None:
    """Write (L L')^-1, both triangles, over a factor L (n, n) of `factorise`."""
    info, n = ctypes.c_int(0), ctypes.c_int(len(L))
    _function("potri", L)(_side(L), n, L.ctypes.data, n, info)
    mirror(L)


def mirror(A: Matrix) -> None:
    """Write the lower triangle of A (n, n) over the upper one."""
    for start in range(0, len(A), MIRRORED):
        stop = start + MIRRORED
        A[:start, start:stop] = A[start:stop, :start].T
        corner = np.tril(A[start:stop, start:stop])
        A[start:stop, start:stop] = corner + np.tril(corner, -1).T


def _check_rows(L: Matrix, B: Matrix) -> None:
    if B.shape[1:] != (len(L),) or not B.flags.c_contiguous:
        raise InvalidInput(f"rows of length {len(L)} in C order are needed, got an array of shape {B.shape}")


def _side(A: Matrix) -> bytes:
    """What LAPACK calls the lower triangle of A."""
    return b"U" if A.flags.c_contiguous else b"L"


def _function(name: str, *arrays: Matrix) -> Any:
    """The routine for these arrays, contiguous and all of one type."""
    letter = LETTERS.get(arrays[0].dtype)
    if letter is None or any(a.dtype != arrays[0].dtype or not a.flags.forc for a in arrays):
        raise InvalidInput("matrices must be of float32 or of float64, all alike and contiguous")
    return _routine(letter + name)


@cache
def _routine(name: str) -> Any:
    """A LAPACK routine as a ctypes function: integers by reference, arrays by address."""
    from scipy.linalg import cython_lapack

    capsule = cython_lapack.__pyx_capi__[name]
    title, address = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    title.restype, title.argtypes = ctypes.c_char_p, [ctypes.py_object]
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    letter, whole, array = ctypes.c_char_p, ctypes.POINTER(ctypes.c_int), ctypes.c_void_p
    arguments = {
        "potrf": (letter, whole, array, whole, whole),
        "potri": (letter, whole, array, whole, whole),
        "potrs": (letter, whole, whole, array, whole, array, whole, whole),
        "trtri": (letter, letter, whole, array, whole, whole),
        "trtrs": (letter, letter, letter, whole, whole, array, whole, array, whole, whole),
    }[name[1:]]
    return ctypes.CFUNCTYPE(None, *arguments)(address(capsule, title(capsule)))
