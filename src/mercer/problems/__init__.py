"""The optimisation problems: one quadratic program, the zoo of machines it serves, and certificates of optimality."""

from mercer.problems.base import PlainProgram, Problem
from mercer.problems.certificate import Bounds, Certificate, converged, relative_gap
from mercer.problems.classification import NuClassification, SquaredHingeClassification, SupportVectorClassification
from mercer.problems.one_class import OneClass
from mercer.problems.program import GramLike, QuadraticProgram
from mercer.problems.regression import (
    HuberRegression,
    NuRegression,
    SquaredEpsilonRegression,
    SupportVectorRegression,
)
from mercer.problems.restart import rescale
from mercer.problems.semiparametric import Semiparametric
from mercer.problems.thresholds import best_threshold

__all__ = [
    "Bounds",
    "Certificate",
    "GramLike",
    "HuberRegression",
    "NuClassification",
    "NuRegression",
    "OneClass",
    "PlainProgram",
    "Problem",
    "QuadraticProgram",
    "Semiparametric",
    "SquaredEpsilonRegression",
    "SquaredHingeClassification",
    "SupportVectorClassification",
    "SupportVectorRegression",
    "best_threshold",
    "converged",
    "relative_gap",
    "rescale",
]
