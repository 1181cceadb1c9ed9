"""A damaged, foreign or hostile model file is one clear error."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mercer import LSSVC, SVC, Gaussian, Standardise
from mercer.errors import ModelFileError
from mercer.models import load, load_model, save

from .machines import points, quietly
from .parts import Parts


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    X, y = points()
    save(quietly(SVC(probability=True, random_state=0), X, y), tmp_path / "m", standardise=Standardise.learn(X))
    return tmp_path / "m"


def refused(path: Path, complaint: str = "") -> None:
    with pytest.raises(ModelFileError, match=complaint) as caught:
        load(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_file_put_together_again_is_read(saved: Path) -> None:
    load(Parts(saved).write(saved))


def test_a_truncated_file(saved: Path) -> None:
    content = saved.read_bytes()
    for length in [*range(0, 20), 1000, len(content) // 2, len(content) - 1]:
        saved.write_bytes(content[:length])
        refused(saved, "cut off|not a model file")


def test_trailing_bytes(saved: Path) -> None:
    saved.write_bytes(saved.read_bytes() + b"\0")
    refused(saved, "belong to nothing")


def test_a_flipped_bit_is_noticed(saved: Path) -> None:
    content = bytearray(saved.read_bytes())
    for place in (len(content) - 1, len(content) // 2, len(content) - 4000):
        content[place] ^= 1
        saved.write_bytes(content)
        refused(saved, "digest|JSON|tensor|known|missing")
        content[place] ^= 1


def test_foreign_files(tmp_path: Path, saved: Path) -> None:
    file = tmp_path / "foreign"
    for content in (b"", b"MZ", b"\x93NUMPY" + bytes(100), b"svm_type c_svc\n" * 10, os.urandom(5000), b"{}" * 40):
        file.write_bytes(content)
        refused(file, "not a model file")
    header = b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    refused(file, "not a model of mercer")
    refused(tmp_path / "absent", "no such file")
    refused(tmp_path, "not a regular file")
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "not a regular file")


def test_another_version(saved: Path) -> None:
    parts = Parts(saved)
    for other in ("1", "3", "2.0", 2, None):
        parts.metadata["version"] = other
        refused(parts.write(saved), f"version is {other!r} and this mercer reads version 2")


def test_a_file_above_the_limit_is_not_read(saved: Path) -> None:
    with pytest.raises(ModelFileError, match="more than the 1 KiB allowed"):
        load(saved, limit="1 KiB")


def test_a_huge_file_with_nothing_in_it_is_not_allocated(saved: Path) -> None:
    parts = Parts(saved)
    size = 1 << 43
    parts.header = {"points": {"dtype": "F64", "shape": [size >> 3], "data_offsets": [0, size]}}
    parts.data = bytearray()
    parts.write(saved)
    refused(saved, "cut off")
    os.truncate(saved, size)  # a file with a hole takes no space
    refused(saved, "more than")


HEADERS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "an unknown type": (lambda h: h["intercept"].update(dtype="F128"), "unknown type"),
    "a shape that is too large": (lambda h: h["intercept"].update(shape=[1 << 60]), "another size"),
    "a shape that is negative": (lambda h: h["intercept"].update(shape=[-3]), "impossible shape"),
    "a shape of truth values": (lambda h: h["intercept"].update(shape=[True, 3]), "impossible shape"),
    "three dimensions": (lambda h: h["intercept"].update(shape=[1, 1, 3]), "impossible shape"),
    "places that overlap": (lambda h: h["intercept"].update(data_offsets=[0, 24]), "does not begin"),
    "places out of the file": (lambda h: h["intercept"].update(data_offsets=[1 << 50, (1 << 50) + 24]), "begin|cut"),
    "a field too many": (lambda h: h["intercept"].update(other=1), "not described"),
    "a tensor that is missing": (lambda h: h.pop("intercept"), "does not begin|belong"),
    "a tensor of another name": (lambda h: h.update(extra=h.pop("probA")), "probA|extra"),
}


@pytest.mark.parametrize("change", HEADERS)
def test_a_hostile_header(change: str, saved: Path) -> None:
    edit, complaint = HEADERS[change]
    parts = Parts(saved)
    edit(parts.header)
    refused(parts.write(saved), complaint)


def kernel(name: str, **arguments: Any) -> dict[str, Any]:
    return {"kernel": {"name": name, "arguments": arguments}}


DOCUMENTS: dict[str, tuple[dict[str, Any], str]] = {
    "a class that is not known": ({"machine": "os.system"}, "'machine' is"),
    "a kernel that is not known": (kernel("Custom", function="os.system"), "not known"),
    "a kernel with other arguments": (kernel("Gaussian", sigma=1.0, code="1"), "takes the arguments"),
    "a kernel with a negative width": (kernel("Gaussian", sigma=-1.0), "above zero"),
    "a kernel for other points": (kernel("Gaussian", sigma=[1.0, 2.0]), "does not fit its points"),
    "a kernel for objects": (kernel("Spectrum", p=2), "does not fit its points"),
    "a kernel that would take forever": (kernel("BSpline", n=10**9), "more than 1024"),
    "a kernel without a width": (kernel("Gaussian", sigma="loo"), "never chosen"),
    "a kernel that is none": ({"kernel": 5}, "described by"),
    "a kernel for a given matrix": ({"kernel": None}, "contradict"),
    "a parameter that is not known": ({"parameters": {"code": "1"}}, "code"),
    "a parameter out of range": ({"parameters": {"C": -1.0}}, "'C' parameter"),
    "a parameter of the wrong type": ({"parameters": {"C": [1]}}, "'C' parameter"),
    "a parameter with code": ({"parameters": {"C": {"call": "f"}}}, "not a value"),
    "one machine per class": ({"parameters": {"multiclass": "ovr"}}, "shape"),
    "a kind that is not known": ({"kind": "function"}, "'kind' is"),
    "another number of features": ({"n_features_in_": 10**15}, "features"),
    "no number of features": ({"n_features_in_": None}, "features"),
    "fewer training points": ({"shape_fit_": [3, 4]}, "positions outside"),
    "labels of another kind": ({"classes": "texts"}, "missing"),
    "points of another kind": ({"points": "csr_matrix"}, "points shape"),
    "a gap that is a text": ({"gap_": "small"}, "'gap_' is"),
    "an end that is not known": ({"stopped_": "never"}, "'stopped_' is"),
    "solutions that are not there": ({"solutions": [{"one bias": True, "multipliers": {}}]}, "missing"),
    "notes that are a text": ({"notes": "text"}, "not a JSON object"),
    "columns of another tensor": ({"column order": ["points", "nothing"]}, "column order"),
    "points turned around": ({"column order": ["points"]}, "features"),
    "standardisation by another name": ({"standardise": "whiten"}, "standardise"),
    "no standardisation": ({"standardise": None}, "do not belong"),
}


@pytest.mark.parametrize("change", DOCUMENTS)
def test_a_hostile_description(change: str, saved: Path) -> None:
    edit, complaint = DOCUMENTS[change]
    parts = Parts(saved)
    parts.document |= edit
    refused(parts.write(saved), complaint)


def test_every_part_of_the_description_is_needed(saved: Path) -> None:
    for name in Parts(saved).document:
        parts = Parts(saved)
        del parts.document[name]
        refused(parts.write(saved.with_name("other")), "missing")


TENSORS: dict[str, tuple[str, Any, Any, str]] = {
    "a coefficient that is not a number": ("dual_coef", "<f8", np.nan, "not finite"),
    "an infinite support vector": ("points", "<f8", np.inf, "not finite"),
    "an index out of range": ("support", "<i8", 1 << 40, "positions outside"),
    "a negative index": ("support", "<i8", -1, "positions outside"),
    "counts that do not add up": ("n_support", "<i8", 0, "support vectors together"),
    "counts that wrap around": ("n_support", "<i8", 1 << 62, "positions outside"),
    "a label twice": ("classes", "<i8", 1, "occurs twice"),
    "a scale of zero": ("standardise.scale", "<f8", 0.0, "above zero"),
    "histories that overlap": ("history.ends", "<i8", -5, "histories"),
}


@pytest.mark.parametrize("change", TENSORS)
def test_hostile_tensors(change: str, saved: Path) -> None:
    name, dtype, value, complaint = TENSORS[change]
    parts = Parts(saved)
    parts.tensor(name, dtype)[0] = value
    refused(parts.write(saved), complaint)


def test_hostile_json(saved: Path) -> None:
    parts = Parts(saved)
    good = json.dumps(parts.document)
    deep = "[" * 100_000 + "]" * 100_000
    for text, complaint in {
        good.replace('"gap_"', '"machine": "SVC", "gap_"', 1): "occurs twice",
        good.replace('"gamma": ', '"gamma": NaN, "was": ', 1): "NaN is not a number",
        good.replace('"gamma": ', '"gamma": ' + "9" * 5000 + ', "was": ', 1): "JSON",
        good.replace('"notes": {}', f'"notes": {{"a": {deep}}}', 1): "nested too deeply",
        good.replace('"notes": {}', '"notes": {"a": 1', 1): "not JSON",
        "[]": "not a JSON object",
    }.items():
        assert text != good
        refused(parts.write(saved.with_name("other"), text), complaint)


def nested(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = Gaussian(1.0).to_dict()
    for _ in range(depth):
        inner = {"name": "Normalised", "arguments": {"kernel": inner}}
    return inner


def test_a_kernel_nested_too_deeply(saved: Path) -> None:
    parts = Parts(saved)
    parts.document["kernel"] = nested(60)
    load_model(parts.write(saved.with_name("other")))
    parts.document["kernel"] = nested(70)
    refused(parts.write(saved.with_name("other")), "64 deep")


def test_a_long_label_does_not_make_all_of_them_long(tmp_path: Path) -> None:
    X, y = points()
    save(quietly(LSSVC(), X, np.array(["a", "b", "c"])[y]), tmp_path / "m")
    parts = Parts(tmp_path / "m")
    many = 30_000
    letters = np.zeros(many * 2, dtype=np.uint8) + 65
    ends = np.arange(many, dtype=np.int64) + many + 1
    for name, array, dtype in (("classes.utf8", letters, "U8"), ("classes.ends", ends, "I64")):
        parts.header[name] = {
            "dtype": dtype,
            "shape": list(array.shape),
            "data_offsets": [len(parts.data), len(parts.data) + array.nbytes],
        }
        parts.data += array.tobytes()
    # The old tensors of these names leave a gap, which a tensor of no use fills.
    begin = {name: Parts(tmp_path / "m").header[name]["data_offsets"] for name in ("classes.utf8", "classes.ends")}
    for name, (a, b) in begin.items():
        parts.header[f"old.{name}"] = {"dtype": "U8", "shape": [b - a], "data_offsets": [a, b]}
    refused(parts.write(tmp_path / "m"), "labels are too long")
