"""How good is a machine, and which parameters should it have: leave-one-out, bounds, paths, search."""
