"""Least-squares machines: one linear system instead of a quadratic program, with exact leave-one-out."""

from mercer.least_squares.classifier import LSSVC
from mercer.least_squares.narx import NARX, LagWindow
from mercer.least_squares.pruning import PruningStep, prune
from mercer.least_squares.regressor import LSSVR

__all__ = ["LSSVC", "LSSVR", "NARX", "LagWindow", "PruningStep", "prune"]
