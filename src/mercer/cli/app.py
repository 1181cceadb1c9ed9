"""The frame of the command: its subcommands, one-line errors and exit codes."""

import sys
from typing import Annotated, NoReturn

import typer

import mercer
from mercer.cli import exits
from mercer.cli.demo import demo
from mercer.cli.doctor import doctor
from mercer.cli.inspect import inspect

app = typer.Typer(
    name="mercer",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 unexpected error, 2 wrong command line, 3 unusable input, 4 missing resource, "
    "130 interrupted.",
)
app.command(epilog="Example: mercer doctor")(doctor)
app.command(epilog="Example: mercer demo --quick")(demo)
app.command(epilog="Example: mercer inspect train.svm")(inspect)


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


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command; errors end in one line on the error stream and an exit code, a traceback only with --debug."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    try:
        app(args=[word for word in words if word != "--debug"])
    except KeyboardInterrupt:
        typer.echo("mercer: interrupted", err=True)
        sys.exit(exits.INTERRUPTED)
    except Exception as error:
        if debug:
            raise
        typer.echo(f"mercer: {exits.line_of(error)}", err=True)
        sys.exit(exits.code_of(error))
    sys.exit(0)
