"""The optimisation problems: one quadratic program, the machines it serves, and certificates of optimality."""

from mercer.problems.base import PlainProgram, Problem
from mercer.problems.certificate import Bounds, Certificate, converged, relative_gap
from mercer.problems.margins import HardMargin, NuClassification, NuRegression, OneClass
from mercer.problems.program import GramLike, QuadraticProgram
from mercer.problems.restart import rescale
from mercer.problems.risk import RegularisedRisk
from mercer.problems.thresholds import best_threshold

__all__ = [
    "Bounds",
    "Certificate",
    "GramLike",
    "HardMargin",
    "NuClassification",
    "NuRegression",
    "OneClass",
    "PlainProgram",
    "Problem",
    "QuadraticProgram",
    "RegularisedRisk",
    "best_threshold",
    "converged",
    "relative_gap",
    "rescale",
]
