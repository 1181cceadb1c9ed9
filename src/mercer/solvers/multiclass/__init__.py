"""Machines with one problem for all classes: steps on the variables of a point, working sets, Newton's method."""
