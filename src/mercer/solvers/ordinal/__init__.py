"""Solvers of problems that see the points through one latent function: orders and ranks."""
