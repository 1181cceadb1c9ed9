"""`mercer doctor`: what was found on this machine."""

from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mercer import versions
from mercer.cli.output import print_json


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print the facts as JSON.")] = False) -> None:
    """Print versions, cores, BLAS, devices and caches: what a bug report needs."""
    facts = versions.facts()
    if as_json:
        print_json(facts)
        return
    console = Console()
    for section, entries in facts.items():
        table = Table(title=section, title_justify="left", show_header=False, box=None, pad_edge=False)
        for name, value in entries.items():
            table.add_row(f"  {escape(name)}", escape(value))
        console.print(table)
