"""The frame of the command: its subcommands, one-line errors and exit codes."""

import sys
import warnings
from collections.abc import Callable
from typing import Annotated, Any, NoReturn

import typer

import mercer
from mercer.cli import exits
from mercer.cli.advise import advise
from mercer.cli.compare import compare
from mercer.cli.convert import convert
from mercer.cli.demo import demo
from mercer.cli.doctor import doctor
from mercer.cli.evaluate import evaluate
from mercer.cli.fit import fit
from mercer.cli.inspect import inspect
from mercer.cli.interruption import leave
from mercer.cli.output import say as say_line
from mercer.cli.predict import predict
from mercer.cli.tune import tune
from mercer.errors import MercerWarning

app = typer.Typer(
    name="mercer",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 unexpected error, 2 wrong command line, 3 unusable input, 4 missing resource, "
    "5 written elsewhere, 130 interrupted.",
)
EXAMPLES: dict[Callable[..., None], tuple[str, ...]] = {
    fit: ("mercer fit train.svm --model model.mercer --report report.html", "mercer fit queries.svm --task rank"),
    predict: ("mercer predict model.mercer test.svm",),
    evaluate: ("mercer evaluate model.mercer test.svm --json",),
    tune: ("mercer tune train.svm --machine svc", "mercer tune grades.csv --task ordinal"),
    compare: ("mercer compare train.svm --machine lssvc,svc --folds 3",),
    advise: ("mercer advise --n 50000 --d 100",),
    inspect: ("mercer inspect train.svm",),
    convert: ("mercer convert model.mercer model.onnx",),
    demo: ("mercer demo --quick",),
    doctor: ("mercer doctor",),
}
for command, examples in EXAMPLES.items():
    app.command(epilog="\n\n".join(f"Example: {example}" for example in examples))(command)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mercer {mercer.__version__}")
        raise typer.Exit


@app.callback()
def frame(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error (anywhere in the line).")
    ] = False,
) -> None:
    """Kernel machines, each answer with a certificate of how far from optimal it is."""


def _say_warnings(debug: bool) -> None:
    """Warnings of mercer as one line each on the error stream; those of other packages only with --debug."""

    def say(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
    ) -> None:
        if debug or issubclass(category, MercerWarning):
            say_line(f"note: {' '.join(str(message).split())}")

    warnings.simplefilter("default")
    warnings.showwarning = say


def _by_keyboard(error: BaseException | None) -> bool:
    """Whether an exit goes back to Ctrl-C that no command has dealt with."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command; errors end in one line on the error stream and an exit code, a traceback only with --debug.

    Without arguments it is the command of this process, and one that was interrupted waits for no thread.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    try:
        with warnings.catch_warnings():
            _say_warnings(debug)
            app(args=[word for word in words if word != "--debug"])
    except SystemExit as end:
        if end.code == exits.INTERRUPTED and _by_keyboard(end):
            say_line("interrupted; nothing was written")
        if end.code == exits.INTERRUPTED and arguments is None:
            leave(exits.INTERRUPTED)
        raise
    except KeyboardInterrupt:
        say_line("interrupted; nothing was written")
        if arguments is None:
            leave(exits.INTERRUPTED)
        sys.exit(exits.INTERRUPTED)
    except Exception as error:
        if debug:
            raise
        say_line(exits.line_of(error))
        sys.exit(exits.code_of(error))
    sys.exit(0)
