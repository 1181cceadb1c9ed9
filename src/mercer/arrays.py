"""The names that the arrays of one type have in all signatures; their shapes stand in the docstrings."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Vector = Array  # of one dimension
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]
