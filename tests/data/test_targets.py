"""Classes and measurements are told apart by one rule, and a measurement is not handed to a classifier."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mercer import SVC, TunedSVC
from mercer.cli.app import main
from mercer.cli.exits import INPUT
from mercer.data import Dataset, write
from mercer.data.targets import looks_like, refuse_measurement
from mercer.errors import InvalidInput
from mercer.least_squares import LSSVC
from mercer.multiclass import CrammerSingerSVC, OutputCode

RNG = np.random.default_rng(4)
MEASURED = RNG.normal(size=200)
AGES = RNG.permutation(200)
SECTORS = np.arange(1200) % 105
NAMES = np.array([f"name {k}" for k in range(200)])


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (np.array(["a", "b"]), "classification"),
        (np.array([True, False]), "classification"),
        (np.array([1, -1, 1]), "classification"),
        (np.arange(100) % 50, "classification"),
        (np.arange(100) % 51, "regression"),
        (MEASURED, "regression"),
        (AGES, "regression"),
        (np.zeros((3, 2), int), "regression"),
    ],
)
def test_a_target_looks_like_classes_or_like_a_measurement(y: np.ndarray, task: str) -> None:
    assert looks_like(y) == task


@pytest.mark.parametrize(
    ("y", "seen"),
    [
        (MEASURED, "200 different numbers with fractions"),
        (np.array([1.0, 2.5, 1.0]), "2 different numbers with fractions"),
        (AGES, "200 different whole numbers at 200 points"),
        (np.arange(1999) % 200, "200 different whole numbers at 1999 points"),
        (NAMES, "200 different texts at 200 points"),
    ],
)
def test_a_measurement_is_refused_with_the_remedy(y: np.ndarray, seen: str) -> None:
    with pytest.raises(InvalidInput, match=rf"a.csv: the target is a measurement, not a class \({seen}\); use another"):
        refuse_measurement(y, "a.csv", "use another")


@pytest.mark.parametrize("y", [SECTORS, np.arange(2000) % 200, np.arange(40), NAMES[:50], np.repeat(NAMES, 2)])
def test_classes_are_not_refused(y: np.ndarray) -> None:
    refuse_measurement(y, "a.csv", "use another")


@pytest.mark.parametrize(
    "make", [SVC, LSSVC, TunedSVC, CrammerSingerSVC, lambda: OutputCode(LSSVC(C=1.0))],
    ids=["SVC", "LSSVC", "TunedSVC", "CrammerSingerSVC", "OutputCode"],
)  # fmt: skip
def test_every_classifier_refuses_numbers_with_fractions_as_scikit_learn_does(make: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        make().fit(RNG.normal(size=(200, 3)), MEASURED)


@pytest.mark.parametrize("command", ["fit", "tune", "compare"])
@pytest.mark.parametrize(
    ("y", "remedy"), [(MEASURED, "svr or lssvr"), (AGES, "svr or lssvr"), (NAMES, "another --target")],
    ids=["fractions", "whole numbers", "texts"],
)  # fmt: skip
def test_the_command_refuses_a_measurement_for_a_classifier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str,
    y: np.ndarray, remedy: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    write("a.csv", Dataset(RNG.normal(size=(200, 3)), y))
    with pytest.raises(SystemExit) as end:
        main([command, "a.csv", "--machine", "svc,lssvc" if command == "compare" else "svc"])
    error = capsys.readouterr().err
    assert end.value.code == INPUT
    assert "a.csv: the target is a measurement, not a class (200 different" in error
    assert remedy in error
    assert error.count("\n") == 1
