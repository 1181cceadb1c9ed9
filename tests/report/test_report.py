"""The report is one valid, self-contained, escaped HTML file, for every kind of machine."""

import re
import subprocess
import sys
from copy import copy
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer.cli.machines import certificate
from mercer.errors import InvalidInput
from mercer.problems.certificate import gap_text, relative_gap
from mercer.report import write_report
from mercer.svm import SVC

VOID = {"meta", "link", "br", "img", "hr"}
CLASSES = {"confusion", "roc", "precision-recall", "calibration", "margins", "importance", "learning"}
NUMBERS = {"predictions", "residuals", "margins", "importance", "learning"}
EXPECTED = {
    "binary": CLASSES | {"convergence"},
    "least squares": CLASSES | {"surface"},
    "pairs": CLASSES | {"convergence"},
    "one against the rest": CLASSES | {"convergence"},
    "nu": CLASSES | {"convergence"},
    "least squares, classes": CLASSES,
    "regression": NUMBERS | {"convergence"},
    "least squares, regression": NUMBERS | {"surface"},
    "one class": {"margins", "convergence"},
}
HOSTILE = "<script>alert('x')</script> & \"$\\frac$\" </svg><img src=http://example.org/x onerror=alert(1)>"


class Reader(HTMLParser):
    """Collects elements, ids and text, and complains of tags that are not closed in order."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(path: Path) -> Reader:
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    reader.close()
    assert reader.open == []
    return reader


def figures(reader: Reader) -> set[str]:
    return {str(a["id"]).removeprefix("figure-") for tag, a in reader.elements if tag == "figure"}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_report_of_every_kind_of_machine_is_whole(name: str, machines: Any, tmp_path: Path) -> None:
    machine, X, y = machines[name]
    path = write_report(tmp_path / "report.html", machine, X, y, command="mercer fit train.svm --seed 0", seconds=1.25)
    reader = read(path)
    assert figures(reader) == EXPECTED[name]
    ids = [a["id"] for _, a in reader.elements if "id" in a]
    assert len(ids) == len(set(ids))
    assert {"done", "error", "certificate", "points", "timings", "versions", "repeat"} <= set(ids)
    links = [a["href"] for tag, a in reader.elements if tag == "a"]
    assert {link.removeprefix("#") for link in links if link} <= set(ids)
    assert "mercer fit train.svm --seed 0" in reader.text
    assert "dual objective" in reader.text
    assert list(tmp_path.iterdir()) == [path]


def test_the_report_refers_to_nothing_outside(machines: Any, tmp_path: Path) -> None:
    path = write_report(tmp_path / "report.html", *machines["binary"])
    reader = read(path)
    assert not [tag for tag, _ in reader.elements if tag in ("script", "iframe", "object", "embed")]
    for tag, attributes in reader.elements:
        for key in ("src", "href", "xlink:href", "action"):
            value = attributes.get(key)
            assert value is None or value.startswith(("#", "data:")), f"<{tag} {key}={value}>"
    assert not re.search(r"https?://|url\((?!#)|@import", path.read_text(encoding="utf-8"))


def test_every_picture_and_table_can_be_read_without_eyes(machines: Any, tmp_path: Path) -> None:
    reader = read(write_report(tmp_path / "report.html", *machines["binary"]))
    drawn = [a for tag, a in reader.elements if tag == "svg"]
    assert len(drawn) == len(figures(reader))
    assert all(a["role"] == "img" and len(str(a["aria-label"])) > 30 for a in drawn)
    tags = [tag for tag, _ in reader.elements]
    assert tags.count("table") == tags.count("caption") == tags.count("thead")
    assert all(a.get("scope") in ("row", "col") for tag, a in reader.elements if tag == "th")


def test_hostile_names_are_shown_and_do_nothing(heart: Any, svc: SVC, tmp_path: Path) -> None:
    X, y = heart
    labels = np.where(y == 1, HOSTILE, "$a$ <b>")
    machine = SVC().fit(X, labels)
    path = write_report(
        tmp_path / "report.html",
        machine,
        X,
        labels,
        title=HOSTILE,
        data_name=HOSTILE,
        command=HOSTILE,
        notes=[HOSTILE],
        seconds={HOSTILE: 1.0},
        feature_names=[HOSTILE] * X.shape[1],
    )
    reader = read(path)
    assert HOSTILE in reader.text
    assert not [tag for tag, _ in reader.elements if tag in ("script", "img", "b")]
    assert not [a for _, a in reader.elements if any(key.startswith("on") for key in a)]
    assert figures(reader) == EXPECTED["binary"]


def test_what_cannot_be_said_of_few_points_is_left_out(tmp_path: Path) -> None:
    X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0]])
    y = np.array([0, 0, 0, 1, 0, 1, 1, 1])
    reader = read(write_report(tmp_path / "report.html", SVC().fit(X, y), X, y))
    assert not {"importance", "learning", "calibration"} & figures(reader)
    sections = [a["id"] for tag, a in reader.elements if tag == "section"]
    assert not {"features", "growth", "choice", "other"} & set(sections)
    assert "too slow" not in reader.text


def test_every_section_has_something_to_show(machines: Any, tmp_path: Path) -> None:
    """A table or a picture under every heading; one picture never stands beside nothing."""
    for name in ("binary", "least squares, regression", "one class"):
        text = write_report(tmp_path / "report.html", *machines[name], time_limit=300.0).read_text()
        sections = re.findall(r"<section.*?</section>", text, re.DOTALL)
        assert len(sections) >= 6
        for section in sections:
            drawn, tables = section.count("<figure"), section.count("<table")
            assert drawn + tables > 0 or "<pre>" in section
            assert drawn != 1 or tables + section.count('<div class="words">') > 0


def test_a_machine_without_certificate_says_so(machines: Any, tmp_path: Path) -> None:
    machine, X, y = machines["binary"]
    bare = copy(machine)
    bare.gap_ = bare.dual_objective_ = float("nan")
    text = read(write_report(tmp_path / "report.html", bare, X, y, time_limit=300.0)).text
    assert "There is no certificate" in text
    assert "optimal to rounding" not in text
    assert "not known" in text


@pytest.mark.parametrize("name", ["binary", "least squares"])
def test_the_relative_gap_is_one_number_wherever_it_stands(name: str, machines: Any, tmp_path: Path) -> None:
    """In the key, the table and the text, and as the command prints it: that of `mercer.problems.certificate`."""
    machine, X, y = machines[name]
    text = write_report(tmp_path / "report.html", machine, X, y, time_limit=300.0).read_text()
    relative = relative_gap(machine.objective_, machine.dual_objective_, machine.gap_)
    assert certificate(machine)["relative gap"] == relative
    expected = escape(gap_text(relative))
    assert re.findall(r"relative gap</dt><dd[^>]*>(.*?)<", text) == [expected]
    assert re.findall(r'<th scope="row">relative gap</th><td>(.*?)<', text) == [expected]
    assert re.findall(r"distance from the optimum is (?:at most )?(.+?)(?:\.?</p>|\. |: it is)", text) == [expected]


def test_test_points_and_another_machine_are_used(heart: Any, lssvc: Any, tmp_path: Path) -> None:
    X, y = heart
    machine = SVC().fit(X[:180], y[:180])
    path = write_report(tmp_path / "report.html", machine, X[:180], y[:180], X[180:], y[180:], other_machine=lssvc)
    reader = read(path)
    assert "cross" in figures(reader)
    right = int(np.sum(machine.predict(X[180:]) == y[180:]))
    assert f"{90 - right} of 90" in reader.text
    assert "Measured at 90 test points" in reader.text
    assert "exact leave-one-out" not in reader.text


def test_pipelines_and_sparse_points_have_reports(heart: Any, tmp_path: Path) -> None:
    from scipy.sparse import csr_matrix

    X, y = heart
    whole = make_pipeline(StandardScaler(), SVC(C=1.0)).fit(X, y)
    assert figures(read(write_report(tmp_path / "a.html", whole, X, y))) == EXPECTED["binary"]
    S = csr_matrix(np.where(np.abs(X) > 1.0, X, 0.0))
    assert figures(read(write_report(tmp_path / "b.html", SVC().fit(S, y), S, y))) == EXPECTED["binary"]


def test_a_tuned_machine_shows_its_search(heart: Any, tmp_path: Path) -> None:
    from mercer.tuned import TunedSVC, tune

    X, y = heart
    tuned = TunedSVC(C=[0.1, 1.0, 10.0], sigma=[2.0, 6.0]).fit(X, y)
    reader = read(write_report(tmp_path / "a.html", tuned, X, y))
    assert figures(reader) == EXPECTED["binary"] | {"surface"}
    assert "6 candidates" in reader.text
    found = tune(X, y, "svc", folds=3)
    assert figures(read(write_report(tmp_path / "b.html", found, X, y))) == EXPECTED["binary"] | {"surface"}


def test_a_given_kernel_matrix_has_a_report(heart: Any, tmp_path: Path) -> None:
    X, y = heart
    K = X @ X.T
    machine = SVC(kernel="precomputed", C=0.1).fit(K, y)
    assert figures(read(write_report(tmp_path / "report.html", machine, K, y))) == EXPECTED["binary"] - {"importance"}


def test_labelled_test_points_of_a_one_class_machine_give_curves(machines: Any, yacht: Any, tmp_path: Path) -> None:
    machine, X, _ = machines["one class"]
    Z = np.vstack([X[:50], X[:50] + 8.0])
    labels = np.repeat([1, -1], 50)
    reader = read(write_report(tmp_path / "report.html", machine, X, None, Z, labels))
    assert {"roc", "confusion"} <= figures(reader)


def test_the_same_machine_gives_the_same_pictures(machines: Any, tmp_path: Path) -> None:
    texts = [write_report(tmp_path / name, *machines["binary"]).read_text() for name in ("a.html", "b.html")]
    drawn = [re.findall(r"<svg.*?</svg>", text, re.DOTALL) for text in texts]
    assert drawn[0] == drawn[1]


def test_a_failed_report_leaves_the_old_file(svc: SVC, heart: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(InvalidInput, match="targets"):
        write_report(path, svc, heart[0])
    with pytest.raises(InvalidInput, match="one target"):
        write_report(path, svc, heart[0], np.ones((270, 2)))
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_importing_mercer_does_not_load_matplotlib() -> None:
    code = "import sys, mercer, mercer.svm; assert 'matplotlib' not in sys.modules and 'jinja2' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
