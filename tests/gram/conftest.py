"""What the tests of the kernel matrix share: a memory meter and naive references."""

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest


@dataclass
class Peak:
    """Most bytes allocated at once inside the block."""

    bytes: int = 0


@pytest.fixture
def measured() -> Callable[[], object]:
    """A block whose peak of allocated memory is measured: `with measured() as peak: ...; peak.bytes`."""

    @contextmanager
    def block() -> Iterator[Peak]:
        peak = Peak()
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        try:
            yield peak
        finally:
            peak.bytes = tracemalloc.get_traced_memory()[1] - before
            tracemalloc.stop()

    return block
