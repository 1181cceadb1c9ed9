"""`mercer compare` takes ensembles by name or by group, with the parameters of one machine of their kind."""

import json
from pathlib import Path

import numpy as np

from mercer import data
from mercer.cli import ensembles
from mercer.cli.machines import Wish
from mercer.cli.schemes import Fold
from mercer.data import Dataset
from tests.cli.conftest import Finish


def test_all_ensembles_of_a_machine_are_compared_with_it(folder: Path, finish: Finish) -> None:
    data.write("iris.svm", data.sample("iris"))
    words = ("compare", "iris.svm", "--machine", "lssvc-ensembles", "--no-tune", "--folds", "2", "--json")
    code, out, err = finish(*words)
    assert code == 0, err
    found = json.loads(out)["machines"]
    assert list(found) == ["lssvc", *(f"{kind}-lssvc" for kind in ensembles.KINDS)]
    assert all(machine["mean"] > 0.85 for machine in found.values())


def test_ensembles_of_regressions_are_compared(folder: Path, finish: Finish) -> None:
    random = np.random.default_rng(0)
    X = random.standard_normal((80, 2))
    data.write("wave.csv", Dataset(X, np.sin(X[:, 0])))
    words = ("compare", "wave.csv", "--machine", "lssvr-ensembles", "--no-tune", "--folds", "2", "--json")
    code, out, err = finish(*words)
    assert code == 0, err
    found = json.loads(out)["machines"]
    assert "boosted-lssvr" not in found
    assert all(machine["mean"] > 0.5 for machine in found.values())


def test_members_have_the_parameters_of_the_fold() -> None:
    iris = data.sample("iris")
    fold = Fold(iris.X, iris.y)
    found = ensembles.trained("committee-lssvc", Wish(machine="lssvc", C=3.0, sigma=2.0), fold)
    assert all(member.C_ == 3.0 for member in found.members_)
    assert found.kernel_.sigma == 2.0


def test_only_least_squares_members_are_coupled() -> None:
    assert {"coupled-lssvc", "coupled-lssvr", "local-svc", "local-svr"} <= set(ensembles.ENSEMBLES)
    assert not {"coupled-svc", "coupled-svr"} & set(ensembles.ENSEMBLES)
