"""What this installation stands on: versions, cores, BLAS, devices and caches; the facts a bug report needs."""

import os
import platform
import sys
from importlib import metadata, util

PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "scikit-learn", "safetensors", "typer", "rich", "threadpoolctl")
OPTIONAL = {
    "torch": "gpu", "triton": "gpu", "matplotlib": "report", "jinja2": "report", "dask": "dask", "distributed": "dask",
    "pyarrow": "parquet", "onnx": "onnx",
}  # fmt: skip


def facts() -> dict[str, dict[str, str]]:
    """Section -> name -> value, all as text."""
    return {
        "mercer": _mercer(),
        "machine": _machine(),
        "linear algebra": _blas(),
        "devices": _devices(),
        "caches": _caches(),
        "packages": {name: _version(name) or "not installed" for name in PACKAGES},
        "optional packages": {
            name: _version(name) or f"not installed (pip install 'mercer[{extra}]')" for name, extra in OPTIONAL.items()
        },
    }


def show_versions() -> None:
    """Print the facts about this installation, for a bug report."""
    for section, entries in facts().items():
        print(f"{section}:")
        for name, value in entries.items():
            print(f"    {name}: {value}")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _mercer() -> dict[str, str]:
    import mercer

    return {
        "version": mercer.__version__,
        "folder": os.path.dirname(os.path.abspath(mercer.__file__)),
        "python": f"{platform.python_version()} ({sys.executable})",
        "benchmark data (MERCER_DATA)": os.environ.get("MERCER_DATA", "not set"),
    }


def _machine() -> dict[str, str]:
    from mercer import resources as memory
    from mercer import threads

    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": f"{os.cpu_count()} in all, {allowed} for this process",
        "threads": f"{threads.count()} (MERCER_NUM_THREADS {os.environ.get('MERCER_NUM_THREADS', 'not set')})",
        "free memory": memory.show(memory.available()),
    }


def _processor() -> str:
    """Model name of the processor."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _blas() -> dict[str, str]:
    """BLAS libraries that NumPy and SciPy have loaded."""
    import numpy  # noqa: F401 - loads its BLAS, so that the scan finds it
    from threadpoolctl import threadpool_info

    import mercer.dense  # noqa: F401 - and that of SciPy

    found = {}
    for number, library in enumerate((entry for entry in threadpool_info() if entry["user_api"] == "blas"), start=1):
        detail = ", ".join(str(library[key]) for key in ("version", "architecture") if library.get(key))
        found[f"BLAS {number}"] = f"{library['internal_api']} {detail}, {library['num_threads']} threads"
    return found or {"BLAS": "none found"}


def _devices() -> dict[str, str]:
    """The CPU, and every CUDA device that PyTorch sees."""
    devices = {"cpu": _processor()}
    if util.find_spec("torch") is None:
        devices["cuda"] = "not usable: PyTorch is not installed (pip install 'mercer[gpu]')"
        return devices
    import torch

    if not torch.cuda.is_available():
        devices["cuda"] = f"none seen by PyTorch {torch.__version__}"
    for k in range(torch.cuda.device_count()):
        about = torch.cuda.get_device_properties(k)
        devices[f"cuda:{k}"] = f"{about.name}, {about.total_memory >> 20} MiB, capability {about.major}.{about.minor}"
    return devices


def _caches() -> dict[str, str]:
    """Where compiled loops are kept."""
    from numba.core import config

    from mercer import compiled

    here = os.path.dirname(os.path.abspath(compiled.__file__))
    if config.CACHE_DIR:
        return {"compiled loops": config.CACHE_DIR}
    if os.access(here, os.W_OK):
        return {"compiled loops": os.path.join(here, "**", "__pycache__")}
    return {"compiled loops": "the user's cache folder, because the package cannot be written"}
