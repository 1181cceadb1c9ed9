"""inspect, predict and evaluate take the file of every machine, also of those that the command does not train."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mercer.models import save
from tests.cli.conftest import Finish
from tests.models.compound_machines import COMPOUND
from tests.models.machines import points, quietly


@pytest.mark.parametrize("name", COMPOUND)
def test_the_command_takes_its_file(name: str, folder: Path, finish: Finish) -> None:
    make, targets = COMPOUND[name]
    X, y = points()[0], targets(90)
    machine = quietly(make(), X, y)
    save(machine, "m.mercer")
    table = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    table.to_csv("points.csv", index=False)

    code, out, _ = finish("inspect", "m.mercer", "--json")
    facts = json.loads(out)
    assert code == 0
    assert facts["machine"] == type(machine).__name__
    assert facts["relative gap"] <= 1e-2

    ways = {"predict": (), "decision_function": ("--decision",), "predict_proba": ("--proba",)}
    for method, words in ways.items():
        code, out, _ = finish("predict", "m.mercer", "points.csv", "--json", *words)
        assert (code == 0) == hasattr(machine, method)
        if code == 0:
            assert np.array_equal(json.loads(out)["predictions"], getattr(machine, method)(X))

    table.assign(target=y if y.ndim == 1 else y[:, 0]).to_csv("known.csv", index=False)
    code, out, err = finish("evaluate", "m.mercer", "known.csv", "--target", "target", "--json")
    if y.ndim == 2 and name.startswith("Multilabel"):
        assert code != 0
        assert "several labels" in err
    elif not name.startswith("OneClassSVM"):
        assert code == 0, err
        other = "pairs in order" if "RankSVM" in name else "r2"
        facts = json.loads(out)
        assert facts["accuracy" if hasattr(machine, "classes_") else other] == pytest.approx(machine.score(X, y))
