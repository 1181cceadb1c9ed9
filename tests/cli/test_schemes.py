"""`mercer compare` takes every multiclass scheme, by name or by group, with parameters shared within a fold."""

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from mercer import data
from mercer.cli import schemes
from mercer.cli.machines import Wish
from mercer.planning.machines import LEAST_SQUARES_POINTS
from tests.cli.conftest import Finish


def test_all_schemes_are_compared_in_one_command(folder: Path, finish: Finish) -> None:
    data.write("iris.svm", data.sample("iris"))
    code, out, err = finish("compare", "iris.svm", "--machine", "schemes", "--no-tune", "--folds", "3", "--json")
    assert code == 0, err
    facts = json.loads(out)
    assert list(facts["machines"]) == list(schemes.GROUPS["schemes"])
    assert all(found["mean"] > 0.9 for found in facts["machines"].values())
    scores = {name: found["scores"] for name, found in facts["machines"].items()}
    assert scores["lssvc-ova"] == scores["lssvc-complete"]  # a theorem under least squares
    assert len(facts["pairs"]) == len(list(combinations(schemes.GROUPS["schemes"], 2)))


def test_groups_and_names_mix_and_doubles_are_refused(folder: Path, finish: Finish) -> None:
    data.write("iris.svm", data.sample("iris"))
    words = ("compare", "iris.svm", "--no-tune", "--folds", "2", "--json", "--machine")
    code, out, _ = finish(*words, "lssvc-codes,svc")
    assert code == 0
    assert set(json.loads(out)["machines"]) == {"svc", *schemes.GROUPS["lssvc-codes"]}
    code, _, err = finish(*words, "lssvc-codes,lssvc-ova")
    assert (code, err.count("\n")) == (3, 1)


def test_parameters_are_found_once_for_each_kind_of_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    iris = data.sample("iris")
    fold = schemes.Fold(iris.X, iris.y)
    searched: list[str] = []
    search = schemes.Fold._search

    def counting(self: schemes.Fold, wish: Wish) -> Wish:
        searched.append(wish.machine)
        return search(self, wish)

    monkeypatch.setattr(schemes.Fold, "_search", counting)
    found = [schemes.trained(name, Wish(), fold) for name in ("svc-ova", "svc-ava", "lssvc-ova", "lssvc-sparse")]
    assert searched == ["svc", "lssvc"]
    assert found[0].base.C == found[1].base.C
    assert found[2].base.kernel == found[3].base.kernel


def test_many_points_are_searched_on_a_sample_that_has_every_class() -> None:
    random = np.random.default_rng(0)
    y = np.concatenate([np.zeros(LEAST_SQUARES_POINTS), np.ones(LEAST_SQUARES_POINTS), [2]]).astype(int)
    X = random.normal(size=(len(y), 2)) + 4 * y[:, None]
    fold = schemes.Fold(X, y)
    machine = schemes.trained("lssvc-ova", Wish(C=1.0), fold)
    assert machine.base.kernel.sigma > 0
    assert list(machine.classes_) == [0, 1, 2]
