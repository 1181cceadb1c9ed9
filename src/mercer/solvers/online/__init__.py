"""Solvers that see each point once: stochastic gradient steps in the space of the kernel, in fixed memory."""

from mercer.solvers.online.rules import RULES, Rule
from mercer.solvers.online.schedules import SCHEDULES, Schedule
from mercer.solvers.online.stream import Stream
from mercer.solvers.online.truncation import terms_for

__all__ = ["RULES", "SCHEDULES", "Rule", "Schedule", "Stream", "terms_for"]
