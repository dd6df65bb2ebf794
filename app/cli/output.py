"""What a command shows: a table to a person, JSON to a script.

Rows hold text that others wrote. Control and direction characters in it are made visible, so that no job
can redraw the terminal of the one who looks at it.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

PIPE_WIDTH = 160
SUBSTITUTE = "\N{REPLACEMENT CHARACTER}"
STATUS_STYLES = {
    **dict.fromkeys(("done", "confirmed", "ok"), "green"),
    **dict.fromkeys(("ready", "running", "note"), "cyan"),
    **dict.fromkeys(("dead", "fail"), "bold red"),
    **dict.fromkeys(("cancelled", "expired", "warn"), "yellow"),
}


def print_json(value: Any) -> None:
    """Write *value* to standard output as JSON in ASCII; times become ISO 8601."""
    sys.stdout.write(json.dumps(value, indent=2, default=_as_text) + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], empty: str) -> None:
    """Write *rows* below *columns*, or the sentence *empty* when there are none."""
    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*(as_cell(value) for value in row))
    console().print(table if table.row_count else Text(empty))


def print_fields(fields: Iterable[tuple[str, Any]]) -> None:
    """Write one thing as a list of its names and values."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in fields:
        table.add_row(name, as_cell(value))
    console().print(table)


def print_line(text: str) -> None:
    """Write one line of plain words."""
    console().print(Text(visible(text)), soft_wrap=True)


def console() -> Console:
    """Return the way to standard output; into a pipe it is wide, so that tables are not cut."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)


def as_cell(value: Any) -> Text:
    """Return *value* as plain text that rich does not interpret; a status has its colour."""
    text = visible(_as_text(value))
    return Text(text, style=STATUS_STYLES.get(text, ""))


def visible(text: str) -> str:
    """Return *text* with each character that prints nothing of its own replaced; lines and tabs stay."""
    return "".join(char if char.isprintable() or char in "\n\t" else SUBSTITUTE for char in text)


def _as_text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="seconds")
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)
