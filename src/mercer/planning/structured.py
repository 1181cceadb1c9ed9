"""Which solver a structured problem gets, and why."""

from mercer.planning.choice import Choice
from mercer.problems.chains import ChainExamples
from mercer.problems.structured import Examples


def structured_solver(examples: Examples) -> Choice:
    """The solver for examples of this kind."""
    if isinstance(examples, ChainExamples):
        return Choice("frank-wolfe", "a sweep over chains is one compiled call")
    if type(examples).planes is not Examples.planes:
        return Choice("one-slack", "the planes of all examples are found at once")
    return Choice("n-slack", "inference is called for one example at a time, and this takes the fewest calls")
