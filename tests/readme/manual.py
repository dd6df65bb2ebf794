"""The manual as data: its tables, its code blocks, its commands, so that a test can hold each against the program.

README.md --read--> tables(heading) | blocks(language) | shell lines | names in code
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "docs/deploy.md", "CHANGELOG.md")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CELL = re.compile(r"(?<!\\)\|")


def page(name: str = "README.md") -> str:
    """Return the text of one page."""
    return (ROOT / name).read_text(encoding="utf-8")


def table(first_column: str) -> list[list[str]]:
    """Return the rows of the README's table whose first column is called *first_column*."""
    lines = page().splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {first_column} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in CELL.split(line.strip().strip("|"))])
    return rows


def blocks(language: str) -> list[str]:
    """Return the README's code blocks of *language*."""
    return [body for name, body in FENCE.findall(page()) if name == language]


def module(path: str) -> str:
    """Return the Python block whose first line names *path*."""
    return next(body for body in blocks("python") if body.startswith(f"# {path}\n"))


def shell_lines() -> list[str]:
    """Return the README's indented lines: what a reader pastes into a shell."""
    text = FENCE.sub("", page())
    return [line.strip() for line in re.findall(r"^ {4}(\S.*)$", text, re.MULTILINE)]


def in_code(name: str = "README.md") -> list[str]:
    """Return what stands between single backticks on one page."""
    return re.findall(r"`([^`\n]+)`", FENCE.sub("", page(name)))


def dormouse_calls() -> Iterator[list[str]]:
    """Give the words of each `dormouse …` that the README shows, in a line of its own or in a sentence."""
    for text in [*shell_lines(), *in_code(), *in_code("docs/deploy.md")]:
        match = re.search(r"(?:^|[ /=])dormouse (.+)", text)
        if match and not text.startswith(("FROM", "gcloud", "koyeb")):
            yield shlex.split(match[1].replace("…", ""))


def plain(cell: str) -> str:
    """Return a cell without its backticks."""
    return cell.replace("`", "")
