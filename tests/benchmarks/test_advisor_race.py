"""The race of the solvers runs on its first problem and says how its choice did."""

from benchmarks import advisor


def test_the_smoke_run_writes_a_table(tmp_path):
    place = tmp_path / "advisor.md"
    assert advisor.main(["--smoke", "--out", str(place)]) == 0
    text = place.read_text()
    assert "| Gaussian, n = 800, C = 10 |" in text
    assert "of 1 problems" in text


def test_no_problem_serves_both_tuning_and_the_race():
    assert len(advisor.fresh()) >= 10
    assert not {task.name for task in advisor.tuning()} & {task.name for task in advisor.fresh()}
