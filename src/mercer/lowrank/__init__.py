"""Smaller stand-ins for the kernel matrix: landmarks, approximations built on them, and the solver for size."""

from mercer.lowrank.approximations import (
    Approximation,
    FixedSize,
    IncompleteCholesky,
    KernelPCA,
    Nystrom,
    OrthogonalFourier,
    RandomFourier,
    ReducedBasis,
)
from mercer.lowrank.landmarks import Landmarks, choose

__all__ = [
    "Approximation",
    "FixedSize",
    "IncompleteCholesky",
    "KernelPCA",
    "Landmarks",
    "Nystrom",
    "OrthogonalFourier",
    "RandomFourier",
    "ReducedBasis",
    "choose",
]
