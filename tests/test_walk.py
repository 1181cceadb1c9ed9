"""A fit and a prediction can be followed: they visit few functions in few files (docs/architecture.md walks them)."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mercer
from mercer import SVC

SOURCE = Path(mercer.__file__).parent
PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"


def calls(action: Callable[[], Any]) -> list[tuple[str, str]]:
    """File and name of every function of mercer that `action` calls on this thread."""
    found = []

    def seen(frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(SOURCE)):
            found.append((Path(code.co_filename).relative_to(SOURCE).as_posix(), code.co_name))

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        action()
    finally:
        sys.setprofile(before)
    return found


@pytest.fixture(scope="module")
def fitted() -> tuple[SVC, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 5))
    y = np.sign(X[:, 0] + 0.3 * random.normal(size=3000))
    machine = SVC().fit(X, y)
    machine.predict(X)
    return machine, X, y


def test_a_fit_visits_few_functions_in_few_files(fitted):
    _, X, y = fitted
    found = calls(lambda: SVC().fit(X, y))
    assert len({file for file, _ in found}) <= 24
    assert len(set(found)) <= 106
    assert len(found) <= 131


def test_a_prediction_visits_few_functions_in_few_files(fitted):
    machine, X, _ = fitted
    found = calls(lambda: machine.predict(X))
    assert len({file for file, _ in found}) <= 9
    assert len(set(found)) <= 51
    assert len(found) <= 69


def test_the_page_walks_through_the_files_that_a_fit_visits(fitted):
    _, X, y = fitted
    visited = {file for file, _ in calls(lambda: SVC().fit(X, y))}
    named = set(re.findall(r"src/mercer/([\w/]+\.py)", PAGE.read_text()))
    assert len(visited - named) <= 6  # small parts, such as the checks of numbers
