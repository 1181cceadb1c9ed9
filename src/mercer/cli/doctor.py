"""`mercer doctor`: what was found on this machine, and the compiling of all loops at once."""

import time
import warnings
from typing import Annotated

import typer
from rich.console import Console, Group
from rich.markup import escape

from mercer import versions
from mercer.cli.output import table, tell


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the facts as JSON.")] = False,
    compile_all: Annotated[
        bool, typer.Option("--compile", help="Compile beforehand what fits and predictions run, so that none waits.")
    ] = False,
) -> None:
    """Print versions, cores, BLAS, devices and caches: what a bug report needs."""
    if compile_all:
        _compile(Console(stderr=as_json))
    tell(versions.facts(), as_json, _sections)


def _sections(facts: dict[str, dict[str, str]]) -> Group:
    """One table under another."""
    rows = {title: {f"  {name}": value for name, value in entries.items()} for title, entries in facts.items()}
    return Group(*(table(entries, title) for title, entries in rows.items()))


def _compile(console: Console) -> None:
    """Run everything once, with a line for each thing done, and say how long it took and where the code lies."""
    from mercer.cli.compiling import works

    started = before = time.perf_counter()
    for name, work in works():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the points are random, and no answer is kept
            work()
        now = time.perf_counter()
        console.print(f"{now - before:6.1f} s  {name}", highlight=False)
        before = now
    folder = versions.facts()["caches"]["compiled loops"]
    console.print(f"compiled in {before - started:.1f} s, kept in {escape(folder)}", highlight=False)
