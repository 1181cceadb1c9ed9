"""Structured output: solvers that train, and the inference that iterates."""
