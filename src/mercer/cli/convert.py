"""`mercer convert`: a model from one format into another."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mercer.cli.files import incoming, kind_of, refuse_unwritable
from mercer.cli.output import clean
from mercer.data.files import stem_and_format
from mercer.errors import InvalidInput

ENDINGS = {"mercer": "mercer", "model": "libsvm", "libsvm": "libsvm", "onnx": "onnx"}


def convert(
    source: Annotated[Path, typer.Argument(help="A model file of mercer or of LIBSVM; - is standard input.")],
    destination: Annotated[
        Path, typer.Argument(help="The file to write: .mercer, .onnx, or .model and .libsvm for LIBSVM.")
    ],
    features: Annotated[
        int | None, typer.Option(help="Number of features of a LIBSVM model; by default its largest index.")
    ] = None,
) -> None:
    """Write a model in another format: LIBSVM's model files both ways, ONNX out.

    ONNX takes the standardisation along. LIBSVM's format has no place for it: train what goes there with --no-scale.
    """
    refuse_unwritable(destination, inputs=(source,))
    wanted = ENDINGS.get(stem_and_format(destination)[1])
    if wanted is None:
        raise InvalidInput(f"{destination}: the ending must be one of {', '.join('.' + name for name in ENDINGS)}")
    with incoming(source) as file:
        model = read_model(file, features)
    write_model(model, destination, wanted)
    typer.echo(f"{clean(str(destination))}: {type(model.machine).__name__} in the format of {wanted}")


def read_model(source: Path, features: int | None = None) -> Any:
    """The model in a file of mercer or of LIBSVM."""
    from mercer.models import Model, load_model, read_libsvm

    kind = kind_of(source)
    if kind == "data":
        raise InvalidInput(f"{source}: is neither a model of mercer nor one of LIBSVM")
    return load_model(source) if kind == "model" else Model(read_libsvm(source, n_features=features))


def write_model(model: Any, destination: Path, wanted: str) -> None:
    """Write in the format wanted."""
    from mercer.models import save, write_libsvm, write_onnx

    if wanted != "libsvm":
        (save if wanted == "mercer" else write_onnx)(model, destination)
        return
    if model.standardise is not None:
        raise InvalidInput("LIBSVM's format has no place for the standardisation of this model: train with --no-scale")
    write_libsvm(model, destination)
