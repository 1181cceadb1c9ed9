"""The package as a whole: a light import, an honest list of names, and a read-only installation that still works."""

import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer import versions

PACKAGE = Path(mercer.__file__).parent


def python(code: str, **environment: str) -> str:
    """Output of a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_mercer_is_light() -> None:
    """Under 0.4 s, the best of several, so that a busy machine does not decide."""
    code = "import time; t = time.perf_counter(); import mercer; print(time.perf_counter() - t)"
    assert min(float(python(code)) for _ in range(3)) < 0.4


def test_importing_mercer_loads_none_of_the_heavy_packages() -> None:
    code = "import sys, json, mercer; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    loaded = set(json.loads(python(code)))
    assert not loaded & {"matplotlib", "torch", "dask", "distributed", "sklearn", "numba", "pandas", "pyarrow"}


def test_every_public_name_is_there_and_listed() -> None:
    assert set(mercer._HOME) | mercer._ROOMS | {"__version__"} == set(mercer.__all__)
    for name in mercer.__all__:
        assert getattr(mercer, name) is not None
        assert name in dir(mercer)
    assert mercer.Gaussian is mercer.kernels.Gaussian
    with pytest.raises(AttributeError, match="no attribute 'gaussian'"):
        mercer.gaussian  # noqa: B018 - looking it up is the test


def test_show_versions_prints_what_a_report_needs(capsys: pytest.CaptureFixture[str]) -> None:
    mercer.show_versions()
    shown = capsys.readouterr().out
    for section in versions.facts():
        assert f"{section}:" in shown
    assert np.__version__ in shown


def _give_up_the_right_to_ignore_permissions() -> None:
    """Root may write anywhere; without this capability it is bound by permissions like any other user."""
    drop_from_bounding_set, dac_override = 24, 1
    ctypes.CDLL(None).prctl(drop_from_bounding_set, dac_override, 0, 0, 0)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="uses Linux capabilities to be bound by permissions")
def test_a_read_only_installation_works(tmp_path: Path) -> None:
    """Neither the package nor the home folder can be written, and no cache folder is named."""
    shutil.copytree(PACKAGE, tmp_path / "site" / "mercer", ignore=shutil.ignore_patterns("__pycache__"))
    home = tmp_path / "home"
    home.mkdir()
    folders = [home, *(path for path in (tmp_path / "site").rglob("*") if path.is_dir())]
    code = """
import os, numpy as np, mercer
folder = os.path.dirname(mercer.__file__)
assert folder == os.environ["EXPECTED"], folder
assert not os.access(folder, os.W_OK)
assert not os.access(os.environ["HOME"], os.W_OK)
X = np.random.default_rng(0).standard_normal((40, 3))
machine = mercer.LSSVC(C=1.0).fit(X, X[:, 0] > 0)
print(machine.score(X, X[:, 0] > 0))
"""
    environment = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    environment |= {
        "HOME": str(home),
        "PYTHONPATH": str(tmp_path / "site"),
        "EXPECTED": str(tmp_path / "site" / "mercer"),
    }
    try:
        for folder in folders:
            folder.chmod(0o555)
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            cwd=tmp_path,
            preexec_fn=_give_up_the_right_to_ignore_permissions,
        )
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) > 0.9
    assert not list((tmp_path / "site").rglob("__pycache__"))


def test_versions_agree() -> None:
    from importlib import metadata

    assert metadata.version("mercer") == mercer.__version__


PROJECT = Path(__file__).resolve().parents[1]


def test_the_python_versions_that_are_declared_are_those_the_tests_run_on() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = [text.rpartition(" ")[2] for text in project["classifiers"] if re.search(r"Python :: \d\.\d", text)]
    assert project["requires-python"] == f">={declared[0]}"
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    if running not in declared:
        pytest.skip(f"Python {running} is not declared, and may be tried all the same")
    assert declared == [running], "a version that no run of the tests sees must not be declared"


def test_continuous_integration_runs_the_command_of_the_readme() -> None:
    last = (PROJECT / ".ci" / "run").read_text(encoding="utf-8").strip().splitlines()[-1]
    assert last == "exec make test"
    assert "make test" in (PROJECT / "README.md").read_text(encoding="utf-8")
