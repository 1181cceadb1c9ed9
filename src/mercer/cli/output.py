"""Results for people and for programs."""

import json
from typing import Any

import numpy as np
import typer
from rich.markup import escape
from rich.table import Table


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


def table(rows: dict[str, Any]) -> Table:
    """Two columns of names and texts."""
    grid = Table(show_header=False, box=None, pad_edge=False)
    for name, value in rows.items():
        grid.add_row(name, escape(str(value)))
    return grid
