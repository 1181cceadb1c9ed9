"""The report is one valid, self-contained, escaped HTML file, for every kind of machine, and a browser shows it."""

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer.errors import InvalidInput
from mercer.report import write_report
from mercer.svm import SVC

VOID = {"meta", "link", "br", "img", "hr"}
CLASSES = {"confusion", "roc", "precision-recall", "calibration", "margins", "learning"}
NUMBERS = {"predictions", "residuals", "margins", "learning"}
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


def test_test_points_and_another_machine_are_used(heart: Any, lssvc: Any, tmp_path: Path) -> None:
    X, y = heart
    machine = SVC().fit(X[:180], y[:180])
    path = write_report(tmp_path / "report.html", machine, X[:180], y[:180], X[180:], y[180:], other_machine=lssvc)
    reader = read(path)
    assert "cross" in figures(reader)
    right = int(np.sum(machine.predict(X[180:]) == y[180:]))
    assert f"{90 - right} of 90" in reader.text
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
    assert figures(read(write_report(tmp_path / "report.html", machine, K, y))) == EXPECTED["binary"]


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


# A browser -------------------------------------------------------------------------------------------------------


def browse(page: Path, profile: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Load a page in headless Chromium and print its document; its console goes to stderr."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium is installed: the report is not looked at in a browser")
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    flags += " --disable-component-update --disable-sync --disable-dev-shm-usage --enable-logging=stderr"
    where = [f"--user-data-dir={profile}", *options, "--dump-dom", page.as_uri()]
    return subprocess.run([program, *flags.split(), *where], capture_output=True, text=True, timeout=120, check=True)


def test_a_browser_shows_every_figure_without_complaint(machines: Any, lssvc: Any, tmp_path: Path) -> None:
    machine, X, y = machines["binary"]
    page = write_report(tmp_path / "report.html", machine, X, y, other_machine=lssvc, data_name=HOSTILE)
    seen = browse(page, tmp_path / "profile")
    found = set(re.findall(r'<figure id="figure-([a-z-]+)"', seen.stdout))
    assert found == EXPECTED["binary"] | {"cross"}
    console = [line for line in seen.stderr.splitlines() if "CONSOLE" in line]
    assert console == []


@pytest.mark.parametrize("name", ["binary", "regression"])
def test_nothing_sticks_out_on_a_phone(name: str, machines: Any, tmp_path: Path) -> None:
    machine, X, y = machines[name]
    write_report(tmp_path / "report.html", machine, X, y, command="mercer fit " + "x" * 300)
    frame = tmp_path / "phone.html"
    frame.write_text(
        '<iframe id="f" src="report.html" style="width: 390px; height: 800px; border: 0"></iframe><p id="out"></p>'
        "<script>window.onload = () => { const page = document.getElementById('f').contentDocument.documentElement;"
        "document.getElementById('out').textContent = 'width ' + page.scrollWidth; }</script>"
    )
    seen = browse(frame, tmp_path / "profile", "--allow-file-access-from-files")
    width = re.search(r"width (\d+)", seen.stdout.partition('id="out"')[2])
    assert width is not None
    assert int(width[1]) <= 390
