"""What all tests share: threads kept in bounds, and the benchmark data where the machine has them."""

import os
from pathlib import Path

# Test workers run side by side: BLAS gets one thread in each, while mercer keeps two, so that its parallel paths are
# tested.  This must happen before NumPy is imported.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("MERCER_NUM_THREADS", "2")

import pytest
from hypothesis import settings

# The first example of a property may compile a loop or import a room: how long it takes says nothing about the claim.
settings.register_profile("mercer", deadline=None)
settings.load_profile("mercer")


@pytest.fixture(scope="session")
def benchmark_data() -> Path:
    """Folder of the benchmark data sets; a test that asks for it is skipped where there is none."""
    folder = os.environ.get("MERCER_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the benchmark data: set MERCER_DATA to their folder")
    return Path(folder)
