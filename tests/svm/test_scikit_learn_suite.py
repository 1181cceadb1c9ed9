"""scikit-learn's own tests of its support vector machines, run against these.

The published test modules are loaded a second time with SVC, NuSVC, SVR, NuSVR and OneClassSVM replaced; tests of the
liblinear machines, which are not ours, are left out.  Each deliberate difference is listed with its reason and must
fail.
"""

import importlib.util
import re
import types
import warnings
from pathlib import Path

import pytest
import sklearn.svm

import mercer.svm

OURS = {name: getattr(mercer.svm, name) for name in mercer.svm.__all__}

NOT_OURS = re.compile(r"linear_?sv[cmr]|liblinear|lsvc|dual_auto|crammer")

DIFFERENCES: dict[str, str] = {}


def load(name):
    """The test module of scikit-learn with our machines in place of its own."""
    path = Path(sklearn.svm.__file__).parent / "tests" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"scikit_learn_{name}", path)
    module = importlib.util.module_from_spec(spec)
    theirs = {machine: getattr(sklearn.svm, machine) for machine in OURS}
    try:
        for machine, replacement in OURS.items():
            setattr(sklearn.svm, machine, replacement)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pytest.PytestUnknownMarkWarning)
            spec.loader.exec_module(module)
    finally:
        for machine, original in theirs.items():
            setattr(sklearn.svm, machine, original)
    module.svm = types.SimpleNamespace(**{**vars(sklearn.svm), **OURS})
    return module


for _origin, _prefix in (("test_svm", "test_dense"), ("test_sparse", "test_sparse")):
    for _name, _function in vars(load(_origin)).items():
        if _name.startswith("test_") and callable(_function) and not NOT_OURS.search(_name):
            globals()[_prefix + _name.removeprefix("test")] = _function


@pytest.fixture
def global_random_seed():
    """The seed scikit-learn's suite runs with by default."""
    return 42
