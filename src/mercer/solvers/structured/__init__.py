"""Solvers of structured problems: cutting planes, block-coordinate Frank-Wolfe, subgradients, perceptrons."""
