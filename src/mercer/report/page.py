"""The page of a report: its sections, how their parts stand beside one another, and the file.

A section has words, tables and pictures.  They fill a grid of two columns, so that nothing stands alone in half a row:
a wide table takes a whole row, and so do the words where the number of the other parts is even.  All text from
outside is escaped by Jinja2; the page forbids itself scripts and foreign resources.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

from jinja2 import Environment, StrictUndefined

import mercer
from mercer import writing
from mercer.report.pictures import Picture


@dataclass
class Table:
    """Rows of texts; without headings, names and values.

    `colours` are CSS colours, "" for none, of dots before the first cell of each row; `wide` tables take a whole row.
    """

    caption: str
    rows: Sequence[Sequence[str]]
    headings: Sequence[str] = ()
    colours: Sequence[str] = ()
    wide: bool = False


@dataclass
class Section:
    """A part of the page; one of `half` the width stands beside the next."""

    id: str
    title: str
    texts: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Picture] = field(default_factory=list)
    command: str = ""
    half: bool = False

    @property
    def narrow_tables(self) -> list[Table]:
        """Tables of one column of the grid."""
        return [table for table in self.tables if not table.wide]

    @property
    def wide_tables(self) -> list[Table]:
        """Tables of a whole row."""
        return [table for table in self.tables if table.wide]

    @property
    def texts_fill_a_row(self) -> bool:
        """Whether the words take a whole row, so that the other parts pair up."""
        return (len(self.narrow_tables) + len(self.figures)) % 2 == 0

    @property
    def figures_first(self) -> bool:
        """Whether a picture must fill the row that words and tables have begun, before a wide table."""
        begun = len(self.narrow_tables) + (bool(self.texts) and not self.texts_fill_a_row)
        return begun % 2 == 1


@dataclass
class Key:
    """One of the numbers at the top."""

    name: str
    value: str
    note: str = ""
    mood: str = ""


@dataclass
class Page:
    """What is known so far, and how long it took to find out."""

    sections: list[Section] = field(default_factory=list)
    key: list[Key] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Take note of the time a part takes."""
        began = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began

    def add(self, section: Section, *figures: Picture) -> None:
        """Append a section that has something to say, with its pictures."""
        section.figures += figures
        if section.texts or section.tables or section.figures or section.command:
            self.sections.append(section)


# The file --------------------------------------------------------------------------------------------------------


def render(page: Page, title: str) -> str:
    """The page as HTML."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False)
    template = environment.from_string(resources.files("mercer.report").joinpath("template.html").read_text("utf-8"))
    return template.render(
        title=title,
        version=mercer.__version__,
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        sections=page.sections,
        key=page.key,
    )


def write_atomically(path: str | os.PathLike[str], text: str) -> Path:
    """Write beside the target and rename, so that nobody ever sees half a file."""
    with writing.replacing(path) as stream:
        stream.write(text.encode("utf-8", errors="replace"))
    return Path(path)
