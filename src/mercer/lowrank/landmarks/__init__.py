"""Landmarks: the m points whose kernel functions stand for all n, chosen in one of many ways with one signature."""

from mercer.lowrank.landmarks.choosing import METHODS, SUPERVISED, choose
from mercer.lowrank.landmarks.measures import quadratic_entropy, residual_diagonal
from mercer.lowrank.landmarks.task import Landmarks

__all__ = ["METHODS", "SUPERVISED", "Landmarks", "choose", "quadratic_entropy", "residual_diagonal"]
