"""What a kernel tells the matrix code about itself: an elementwise function of one base quantity.

Most kernels are k(x, z) = g(<x, z>) or k(x, z) = g(|x - z|^2).  For those a tile of the kernel matrix is one BLAS
product followed by one pass of g over values that are still in cache.  A kernel of that shape states it here; all
others leave their `profile` at None and are evaluated tile by tile through their own call.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Profile:
    """An elementwise kernel: `name` and `parameters` choose g; `scale` (d,) multiplies the features first."""

    base: Literal["product", "squared_distance"]
    name: str
    parameters: tuple[float, ...] = ()
    scale: NDArray[np.float64] | None = None
