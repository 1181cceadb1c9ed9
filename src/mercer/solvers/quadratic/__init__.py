"""Quadratic programs of support vector machines: working sets, pair steps, interior point, dual coordinate descent."""
