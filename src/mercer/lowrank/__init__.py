"""Smaller stand-ins for the kernel matrix: landmarks, approximations built on them, and the solver for size."""

from typing import TYPE_CHECKING

from mercer.loading import on_first_use

if TYPE_CHECKING:
    from mercer.lowrank.approximations import (
        Approximation,
        FixedSize,
        IncompleteCholesky,
        KernelPCA,
        Nystrom,
        OrthogonalFourier,
        RandomFourier,
        ReducedBasis,
    )
    from mercer.lowrank.landmarks import Landmarks, choose
    from mercer.solvers.streamed.blocks import ArrayBlocks, BlockSource, IteratorBlocks, ParquetBlocks
    from mercer.solvers.streamed.rectangle import solve
    from mercer.solvers.streamed.rectangle_path import solve_path

__all__ = [
    "Approximation", "ArrayBlocks", "BlockSource", "FixedSize", "IncompleteCholesky", "IteratorBlocks", "KernelPCA",
    "Landmarks", "Nystrom", "OrthogonalFourier", "ParquetBlocks", "RandomFourier", "ReducedBasis", "choose", "solve",
    "solve_path",
]  # fmt: skip

__getattr__ = on_first_use(
    {
        "mercer.lowrank.approximations": (
            "Approximation FixedSize IncompleteCholesky KernelPCA Nystrom OrthogonalFourier RandomFourier ReducedBasis"
        ),
        "mercer.lowrank.landmarks": "Landmarks choose",
        "mercer.solvers.streamed.blocks": "ArrayBlocks BlockSource IteratorBlocks ParquetBlocks",
        "mercer.solvers.streamed.rectangle": "solve",
        "mercer.solvers.streamed.rectangle_path": "solve_path",
    }
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
