"""Solvers that see their rows in passes: the problem on landmarks at any number of rows, in fixed memory."""
