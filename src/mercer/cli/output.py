"""Results for people and for programs.

What comes from files (labels, names of columns and files) goes to a terminal as text alone: control characters, which
could rewrite the screen, are shown as escapes, and nothing is read as markup.
"""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

FORMULA = ("=", "+", "-", "@")  # how a cell begins that a spreadsheet would compute


def clean(text: str) -> str:
    """The text on one line, every character that does not print as a backslash escape."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def harmless(text: str) -> str:
    """The text as a cell that no spreadsheet computes: an apostrophe before all that begins a formula but numbers."""
    if not text.startswith(FORMULA):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def cell(text: str) -> str:
    """The text as a cell of a CSV line: without line ends, harmless, quoted where it holds a comma or a quote."""
    text = harmless(clean(text))
    return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in ',"') else text


def plain(value: Any) -> Any:
    """The same facts as JSON can hold them: numbers it has no word for become None."""
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def print_json(facts: dict[str, Any]) -> None:
    """The facts as JSON on the output."""
    typer.echo(json.dumps(plain(facts), indent=2))


def tell(facts: dict[str, Any], as_json: bool, show: Callable[[dict[str, Any]], Any]) -> None:
    """The facts for programs, or for people: by a function that prints them, or gives what is to be printed."""
    if as_json:
        print_json(facts)
    elif (shown := show(facts)) is not None:
        Console().print(shown)


def say(text: str) -> None:
    """One line on the error stream."""
    typer.echo(f"mercer: {clean(text)}", err=True)


def shown(text: str) -> Text:
    """The text for a rich table or console, not read as markup."""
    return Text(clean(text))


def table(rows: dict[str, Any], title: str | None = None) -> Table:
    """Two columns of names and texts."""
    heading = None if title is None else shown(title)
    grid = Table(title=heading, title_justify="left", show_header=False, box=None, pad_edge=False)
    for name, value in rows.items():
        grid.add_row(shown(name), shown(str(value)))
    return grid
