"""The optimisation problems: one quadratic program, the machines it serves, and certificates of optimality."""

from mercer.problems.base import PlainProgram, Problem
from mercer.problems.certificate import Bounds, Certificate, converged, relative_gap
from mercer.problems.conventions import CONVENTIONS, C_of_nu, from_C, nu_of_C, to_C
from mercer.problems.margins import HardMargin, NuClassification, NuRegression, OneClass
from mercer.problems.program import GramLike, QuadraticProgram
from mercer.problems.restart import rescale
from mercer.problems.risk import RegularisedRisk
from mercer.problems.thresholds import best_threshold

__all__ = [
    "CONVENTIONS",
    "Bounds",
    "C_of_nu",
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
    "from_C",
    "nu_of_C",
    "relative_gap",
    "rescale",
    "to_C",
]
