"""What a user waits for before the first answer: imports, and the compiling of the first fit."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# Nothing of this is needed to name the package, and nothing of the second list to fit a machine.
NOT_BY_NAME = ["numpy", "scipy", "sklearn", "numba", "llvmlite"]
NOT_BY_FIT = [
    "torch", "matplotlib", "typer", "safetensors", "mercer.cli", "mercer.report", "mercer.models", "mercer.ensembles",
    "mercer.multiclass", "mercer.online", "mercer.ordinal", "mercer.tuned", "mercer.selection", "mercer.data",
    "mercer.kernels.strings", "mercer.kernels.conditional", "mercer.svm.regression", "mercer.svm.linear_programming",
    "mercer.solvers.streamed.rectangle", "mercer.solvers.geometric",
]  # fmt: skip
# What Numba loads in order to compile; code that was compiled before runs without it.
NOT_BY_COMPILED_CODE = ["numba.np.npyimpl", "numba.typed.typeddict", "numba.np.random.generator_core"]

FIRST_FIT = """
import json, sys
import numpy as np
from mercer import SVC
from numba.core import event

class Compiled(event.Listener):
    names = []
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        self.names.append(function.__module__ + "." + function.__qualname__)
    def on_end(self, event):
        pass

random = np.random.default_rng(0)
X = random.normal(size=(300, 10))
with event.install_listener("numba:compile", Compiled()):
    machine = SVC().fit(X, X[:, 0] + 0.3 * random.normal(size=300) > 0)
print(json.dumps({"modules": sorted(sys.modules), "compiled": Compiled.names, "objective": machine.objective_}))
"""


def answer(program: str, **environment: str) -> Any:
    """What a program prints in a new process."""
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | environment, capture_output=True, text=True, timeout=300,
        check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def first_fits(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The first fit of two processes, one after the other, that share an empty folder for compiled code."""
    folder = str(tmp_path_factory.mktemp("compiled"))
    return [answer(FIRST_FIT, NUMBA_CACHE_DIR=folder) for _ in range(2)]


def test_the_name_of_the_package_costs_nothing() -> None:
    modules = answer("import json, sys, mercer; print(json.dumps(sorted(sys.modules)))")
    assert not [name for name in NOT_BY_NAME if name in modules]


def test_loading_leaves_the_collector_as_it_was() -> None:
    program = """
import gc, json
gc.set_threshold(500, 7, 9)
from mercer import SVC
print(json.dumps([gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()]))
"""
    assert answer(program) == [True, [500, 7, 9], 0]


def test_objects_that_a_program_has_set_aside_stay_there() -> None:
    program = "import gc, json; gc.freeze(); from mercer import SVC; print(json.dumps(gc.get_freeze_count() > 0))"
    assert answer(program)


def test_steps_on_a_stored_matrix_hold_no_code_that_computes_rows(tmp_path: Path) -> None:
    several = FIRST_FIT.replace("X[:, 0] + 0.3 * random.normal(size=300) > 0", "random.integers(0, 6, 300)")
    compiled = answer(several, NUMBA_CACHE_DIR=str(tmp_path))["compiled"]
    assert sum(name.endswith("quadratic.pair_steps.pair_steps") for name in compiled) == 1
    assert not [name for name in compiled if name.endswith("gram.rows.fill_row")]


def test_a_first_fit_compiles_few_functions(first_fits: list[dict[str, Any]]) -> None:
    compiled = first_fits[0]["compiled"]
    own = [name for name in compiled if name.startswith("mercer.")]
    assert len(own) <= 30
    assert len(compiled) <= 55


def test_a_loop_that_runs_over_the_same_types_is_compiled_once(first_fits: list[dict[str, Any]]) -> None:
    compiled = first_fits[0]["compiled"]
    for name in ("gram.rows.fill_row", "quadratic.pair_steps.refresh", "quadratic.pair_steps.layer_at"):
        assert sum(found.endswith(name) for found in compiled) == 1


def test_the_next_process_compiles_nothing_and_answers_the_same(first_fits: list[dict[str, Any]]) -> None:
    assert first_fits[1]["compiled"] == []
    # The compiler may inline in the process that compiles what a process that loads finds in a function of its own, and
    # order a sum in another way: kernel values then differ in their last bit, and the optimum by rounding.
    assert first_fits[1]["objective"] == pytest.approx(first_fits[0]["objective"], rel=1e-12)


def test_a_fit_by_code_compiled_before_loads_only_what_it_needs(first_fits: list[dict[str, Any]]) -> None:
    loaded = set(first_fits[1]["modules"])
    assert not [name for name in NOT_BY_FIT + NOT_BY_COMPILED_CODE if name in loaded]
