"""Methods that see the problem as geometry: hulls of the classes, hyperplanes that separate, version space.

nearest_point                 the two nearest points of the classes' hulls       Mitchell et al. 1974, Gilbert 1966
maximal_margin_perceptron     the same, a point at a time                        Kowalczyk 2000
"""
