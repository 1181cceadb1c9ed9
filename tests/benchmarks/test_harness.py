"""The harness: it interleaves, reports medians and ratios, says what it left out, and survives a failing peer."""

import json
import os
import time
from pathlib import Path

import pytest

from benchmarks import harness, peers


def task(**measure) -> harness.Task:
    return harness.Task("toy", lambda smoke: 2 if smoke else 3, measure, warm_up=False)


def test_runs_are_interleaved_in_alternating_order() -> None:
    calls: list[str] = []
    toy = task(mercer=lambda data: calls.append("mercer"), other=lambda data: calls.append("other"))
    harness.run([toy], repeats=3, in_process=True, report=lambda line: None)
    assert calls == ["mercer", "other", "other", "mercer", "mercer", "other"]


def test_the_table_gives_ratios_of_medians_with_figures_beside(tmp_path: Path) -> None:
    times = iter([1.0, 9.0, 2.0])
    toy = task(
        mercer=lambda data: {"seconds": next(times), "accuracy": 0.5},
        other=lambda data: {"seconds": 4.0, "accuracy": 0.25},
    )
    results = harness.run([toy], repeats=3, in_process=True, report=lambda line: None)
    harness.write("toy", [toy], results, tmp_path)
    text = (tmp_path / "toy.md").read_text()
    assert "| toy | mercer | 2 | 1.00 | 3 |" in text
    assert "| toy | other | 4 | 2.00 | 3 |" in text
    content = json.loads((tmp_path / "toy.json").read_text())
    assert content["results"]["toy"]["mercer"]["seconds"] == [1.0, 9.0, 2.0]
    assert content["machine"]["processor"]
    assert sorted(os.listdir(tmp_path)) == ["toy.json", "toy.md"]


def test_each_measurement_has_a_process_of_its_own() -> None:
    toy = task(mercer=lambda data: {"pid": os.getpid(), "data": data})
    answer = harness.measure_apart(toy, "mercer", False, 60)
    assert answer["figures"]["pid"] != os.getpid()
    assert answer["figures"]["data"] == 3


def test_a_failing_or_slow_library_is_reported_and_not_tried_again() -> None:
    def fail(data):
        raise RuntimeError("no good")

    toy = task(mercer=lambda data: None, broken=fail, slow=lambda data: time.sleep(30), dead=lambda data: os._exit(3))
    results = harness.run([toy], repeats=2, budget_seconds=1.0, report=lambda line: None)["toy"]
    assert len(results["mercer"].seconds) == 2
    assert results["broken"].skipped == "RuntimeError: no good"
    assert results["slow"].skipped == "took more than 1 s"
    assert results["dead"].skipped == "the process died (exit code 3)"
    assert "left out: took more than 1 s" in harness.table({"toy": results})


def test_a_peer_that_is_not_installed_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(peers.KNOWN, "nobody", ("no_such_module", "nobody-svm"))
    results = harness.run(
        [task(mercer=lambda data: None, nobody=lambda data: None)], smoke=True, report=lambda line: None
    )
    assert results["toy"]["nobody"].skipped == "nobody-svm is not installed"


def test_tasks_are_chosen_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    toys = [harness.Task(name, lambda smoke: None, {"mercer": lambda data: None}) for name in ("one", "two")]
    assert list(harness.main("toy", toys, ["--smoke", "--only", "tw"])) == ["two"]
    with pytest.raises(SystemExit):
        harness.main("toy", toys, ["--only", "three"])


def test_tasks_that_were_not_run_again_keep_their_rows(tmp_path: Path) -> None:
    def timed(seconds: float) -> list[harness.Task]:
        work = {"mercer": lambda data: {"seconds": seconds}}
        return [harness.Task(name, lambda smoke: None, work, warm_up=False) for name in ("one", "two")]

    harness.main("toy", timed(1.0), ["--in-process", "--out", str(tmp_path), "--repeats", "1"])
    harness.main("toy", timed(5.0), ["--in-process", "--out", str(tmp_path), "--repeats", "1", "--only", "two"])
    content = json.loads((tmp_path / "toy.json").read_text())
    assert {task: row["mercer"]["median"] for task, row in content["results"].items()} == {"one": 1.0, "two": 5.0}
    text = (tmp_path / "toy.md").read_text()
    assert "| one | mercer | 1 |" in text
    assert f"- one: measured {content['measured']['one']}" in text


def test_the_peak_is_that_of_the_work_and_not_of_the_loading() -> None:
    def load(smoke: bool) -> int:
        return len(bytearray(200 << 20))

    toy = harness.Task("toy", load, {"mercer": lambda data: {"made": len(bytearray(64 << 20))}}, warm_up=False)
    assert 60 < harness.measure_apart(toy, "mercer", False, 60)["peak_mib"] < 80
