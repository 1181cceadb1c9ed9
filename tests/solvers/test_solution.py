"""Solutions: written whole or not at all, read back as they were, and never through pickle."""

import numpy as np
import pytest

from mercer.errors import ModelFileError
from mercer.problems import Certificate
from mercer.solvers import Record, Solution


def example(**changes):
    facts = {
        "coefficients": np.array([0.0, 1.5, -2.0]),
        "bias": 0.25,
        "variables": np.array([0.0, 1.5, 0.0, 0.0, 0.0, -2.0]),
        "primal": 2.0,
        "dual": 1.0,
        "gap": 1.0,
        "iterations": 7,
        "stopped": "converged",
        "seconds": 0.5,
        "solver": "a solver",
        "multipliers": {"rho": 0.5, "basis": np.array([1.0, 2.0])},
        "history": (Record(0, 0.1, 3.0, 0.0, 3.0, {"mu": 1.0, "free": 3}), Record(1, 0.2, 2.0, 1.0, 1.0)),
        "details": {"cache": {"hits": 3}, "sizes": [1, 2], "array": np.arange(3), "none": None},
    }
    return Solution(**(facts | changes))


def test_saved_solution_reads_back_as_it_was(tmp_path):
    one = example()
    one.save(tmp_path / "s.npz")
    two = Solution.load(tmp_path / "s.npz")
    np.testing.assert_array_equal(one.coefficients, two.coefficients)
    np.testing.assert_array_equal(one.variables, two.variables)
    np.testing.assert_array_equal(one.multipliers["basis"], two.multipliers["basis"])
    np.testing.assert_array_equal(one.details["array"], two.details["array"])
    assert two.details["cache"] == {"hits": 3}
    assert two.details["none"] is None
    assert two.history == one.history
    for name in ("bias", "primal", "dual", "gap", "iterations", "stopped", "seconds", "solver", "relative_gap"):
        assert getattr(one, name) == getattr(two, name)


def test_several_outputs_keep_their_shapes(tmp_path):
    one = example(coefficients=np.ones((3, 2)), bias=np.array([1.0, 2.0]))
    one.save(tmp_path / "s.npz")
    two = Solution.load(tmp_path / "s.npz")
    assert two.coefficients.shape == (3, 2)
    np.testing.assert_array_equal(two.bias, [1.0, 2.0])


def test_file_keeps_the_name_it_was_given_and_nothing_is_left_beside_it(tmp_path):
    example().save(tmp_path / "checkpoint")
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint"]


def test_failed_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    example().save(tmp_path / "s.npz")
    before = (tmp_path / "s.npz").read_bytes()

    def broken(*arguments, **options):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", broken)
    with pytest.raises(OSError, match="disk full"):
        example(primal=9.0).save(tmp_path / "s.npz")
    assert (tmp_path / "s.npz").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 broken"])
def test_damaged_files_are_refused(tmp_path, content):
    (tmp_path / "s.npz").write_bytes(content)
    with pytest.raises(ModelFileError, match=r"s\.npz"):
        Solution.load(tmp_path / "s.npz")


def test_truncated_and_foreign_files_are_refused(tmp_path):
    example().save(tmp_path / "s.npz")
    whole = (tmp_path / "s.npz").read_bytes()
    (tmp_path / "s.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelFileError):
        Solution.load(tmp_path / "s.npz")
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    with pytest.raises(ModelFileError):
        Solution.load(tmp_path / "other.npz")
    with pytest.raises(FileNotFoundError):
        Solution.load(tmp_path / "absent.npz")


def test_pickled_content_is_never_run(tmp_path):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("a solution file ran code",))

    np.savez(tmp_path / "trap.npz", text=np.array([Trap()], dtype=object))
    with pytest.raises(ModelFileError):
        Solution.load(tmp_path / "trap.npz")


def test_repr_says_what_stopped_it_and_how_far_it_is():
    text = repr(example())
    for part in ("converged", "a solver", "7 iterations", "relative gap 0.5", "2 of 3"):
        assert part in text
    assert example().converged
    assert not example(stopped="time").converged


def test_certified_solution_takes_its_values_from_the_certificate():
    certificate = Certificate(2.0, 1.5, 0.5, 0.3, {"rho": 1.0})
    solution = Solution.certified(
        certificate, np.ones(2), np.ones(2), solver="x", iterations=1, stopped="time", seconds=0.0
    )
    assert (solution.primal, solution.dual, solution.gap, solution.bias) == (2.0, 1.5, 0.5, 0.3)
    assert solution.multipliers == {"rho": 1.0}
    assert solution.relative_gap == certificate.relative_gap == 0.25
