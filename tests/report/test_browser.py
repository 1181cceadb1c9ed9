"""A browser shows the report: every picture, nothing that sticks out on a phone, readable text in light and dark."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mercer.report import write_report
from mercer.svm import SVC
from tests.report.test_report import EXPECTED, HOSTILE

LOOK = Path(__file__).with_name("look.js")
DARK = "--blink-settings=preferredColorScheme=0"


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


def looked_at(pages: list[Path], width: int, *options: str) -> list[dict[str, Any]]:
    """What a browser finds on pages shown `width` pixels wide: overflow, empty pictures, text hard to read."""
    frame = pages[0].with_name("frame.html")
    shown = [
        f'<iframe src="{page.name}" style="width: {width}px; height: 900px; border: 0"></iframe>' for page in pages
    ]
    frame.write_text(f'{"".join(shown)}<p id="out"></p><script>{LOOK.read_text()}</script>')
    seen = browse(
        frame, frame.with_name("profile"), "--allow-file-access-from-files", "--window-size=1400,900", *options
    )
    found = re.search(r'<p id="out">(.*?)</p>', seen.stdout, re.DOTALL)
    assert found is not None
    facts: list[dict[str, Any]] = json.loads(unescape(found[1]))
    return facts


@pytest.fixture(scope="module")
def pages(machines: Any, lssvc: Any, heart: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports with what strains a page: long and hostile names, many classes, many points, other machines."""
    folder = tmp_path_factory.mktemp("pages")
    X, y = heart
    named = np.where(y == 1, HOSTILE, "a_name_without_any_space_that_goes_on_and_on_" * 3)
    random = np.random.default_rng(0)
    many = np.arange(360) % 12
    Z = random.normal(size=(12, 5))[many] * 2.0 + random.normal(size=(360, 5))
    cases: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
        "binary": (machines["binary"], {"other_machine": lssvc, "command": "mercer fit " + "x" * 300}),
        "regression": (machines["regression"], {"data_name": "a_long_file_name_" * 12}),
        "names": ((SVC().fit(X, named), X, named), {"title": HOSTILE, "feature_names": [HOSTILE * 2] * 13}),
        "classes": ((SVC().fit(Z, many), Z, many), {}),
        "one class": (machines["one class"], {}),
    }
    return {
        name: write_report(folder / f"{number}.html", *given, time_limit=2.0, **options)
        for number, (name, (given, options)) in enumerate(cases.items())
    }


@pytest.mark.parametrize("width", [360, 1200], ids=["phone", "desk"])
@pytest.mark.parametrize("options", [[], [DARK]], ids=["light", "dark"])
def test_every_text_is_readable_and_nothing_sticks_out(width: int, options: list[str], pages: dict[str, Path]) -> None:
    for name, found in zip(pages, looked_at([*pages.values()], width, *options)):
        assert found["texts"] > 80, name
        assert found["width"] <= width, name
        assert found["outside"] == [], name
        assert found["missing"] == [], name
        assert found["faint"] == [], name


def test_the_look_notices_what_is_wrong(tmp_path: Path) -> None:
    """Faint text, a box that sticks out and an empty picture are found by the script that looks for them."""
    page = tmp_path / "bad.html"
    page.write_text(
        '<body style="background: #fff"><p style="color: #bbb">faint</p><div style="width: 900px">wide</div>'
        '<svg width="200" height="100"></svg></body>'
    )
    found = looked_at([page], 360)[0]
    assert found["width"] >= 900
    assert [text.split(" ", 1)[1] for text in found["faint"]] == ["P faint"]
    assert len(found["missing"]) == 1
    assert any("wide" in text for text in found["outside"])
