"""Landmarks: the m points whose kernel functions stand for all n, chosen in one of many ways with one signature."""

from typing import TYPE_CHECKING

from mercer.loading import on_first_use

if TYPE_CHECKING:
    from mercer.lowrank.landmarks.choosing import METHODS, SUPERVISED, choose
    from mercer.lowrank.landmarks.measures import quadratic_entropy, residual_diagonal
    from mercer.lowrank.landmarks.task import Landmarks

__all__ = ["METHODS", "SUPERVISED", "Landmarks", "choose", "quadratic_entropy", "residual_diagonal"]

__getattr__ = on_first_use(
    {
        "mercer.lowrank.landmarks.choosing": "METHODS SUPERVISED choose",
        "mercer.lowrank.landmarks.measures": "quadratic_entropy residual_diagonal",
        "mercer.lowrank.landmarks.task": "Landmarks",
    }
)
