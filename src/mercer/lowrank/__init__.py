"""Smaller stand-ins for the kernel matrix: landmarks, approximations built on them, and the solver for size."""

from mercer.lowrank.landmarks import Landmarks, choose

__all__ = ["Landmarks", "choose"]
