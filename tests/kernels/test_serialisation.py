"""Kernels in files: names and numbers, and nothing that could run."""

import json

import pytest

from mercer.errors import InvalidInput, NotPositiveDefinite
from mercer.kernels import Gaussian, Restricted, kernel_from_dict
from mercer.kernels.dot_product import Linear


def test_the_form_in_the_file() -> None:
    kernel = 2.0 * Restricted(Gaussian(sigma=(1.0, 2.0)), columns=(3, 1))
    text = json.dumps(kernel.to_dict(), allow_nan=False)
    assert json.loads(text) == {
        "name": "Scaled",
        "arguments": {
            "factor": 2.0,
            "kernel": {
                "name": "Restricted",
                "arguments": {
                    "kernel": {"name": "Gaussian", "arguments": {"sigma": [1.0, 2.0]}},
                    "columns": [3, 1],
                },
            },
        },
    }
    assert kernel_from_dict(json.loads(text)) == kernel


def test_placeholders_survive() -> None:
    assert kernel_from_dict(Gaussian(sigma="loo").to_dict()) == Gaussian(sigma="loo")


@pytest.mark.parametrize("description, message", [
    ({}, "described by 'name' and 'arguments'"),
    (None, "described by"),
    ({"name": "Gaussian"}, "described by"),
    ({"name": "Gaussian", "arguments": {}, "more": 1}, "described by"),
    ({"name": "os.system", "arguments": {}}, "is not known"),
    ({"name": "Custom", "arguments": {"function": "print"}}, "is not known"),
    ({"name": "Kernel", "arguments": {}}, "is not known"),
    ({"name": ["Gaussian"], "arguments": {}}, "is not known"),
    ({"name": "Gaussian", "arguments": {"__class__": 1}}, "takes the arguments"),
    ({"name": "Gaussian", "arguments": [1.0]}, "takes the arguments"),
    ({"name": "Gaussian", "arguments": {"sigma": {"name": "Linear", "arguments": {}}}}, "sigma must be a number"),
    ({"name": "Sum", "arguments": {"left": 1.0, "right": 2.0}}, "left must be a kernel"),
    ({"name": "Sum", "arguments": {}}, "cannot be built"),
])  # fmt: skip
def test_anything_else_is_refused(description: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        kernel_from_dict(description)  # type: ignore[arg-type]


def test_parameters_are_checked_on_the_way_in() -> None:
    with pytest.raises(NotPositiveDefinite):
        kernel_from_dict({"name": "Scaled", "arguments": {"factor": -1.0, "kernel": Linear().to_dict()}})


def test_nesting_without_end_is_refused() -> None:
    description = Linear().to_dict()
    for _ in range(200):
        description = {"name": "Exp", "arguments": {"kernel": description}}
    with pytest.raises(InvalidInput, match="nested more than"):
        kernel_from_dict(description)
