"""Every Python block of the documentation runs, page by page, as a reader would type it."""

import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

import mercer
from mercer import data

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md"])
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")


def given() -> dict[str, object]:
    """What a page may take as given: points X with labels y, new points, a series, and mercer's public names."""
    heart = data.sample("heart-statlog")
    X = data.Standardise.learn(heart.X)(heart.X)
    series = np.sin(np.arange(120) / 4.0)
    names = {name: getattr(mercer, name) for name in mercer.__all__ if not name.startswith("_")}
    own = {"X": X[:120], "y": heart.y[:120], "X_new": X[120:], "y_new": heart.y[120:]}
    return {
        "__name__": "page",
        "np": np,
        "mercer": mercer,
        "series": series,
        "other_series": series + 0.1,
        **names,
        **own,
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    text = page.read_text(encoding="utf-8")
    names = given()
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block[1], str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
