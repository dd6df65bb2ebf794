"""The command table is the program's commands, with the exit codes that each one's own help tells."""

import re
from collections.abc import Iterator
from typing import Any

import click
import pytest
import typer

from app.cli import exits
from app.cli.program import build
from tests.readme.manual import dormouse_calls, plain, table

CODES = re.compile(r"\b(?:130|143|[0-5])\b")


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Give every command of the program by the words that call it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


PROGRAM: Any = typer.main.get_command(build(""))
COMMANDS = dict(commands(PROGRAM))


def rows() -> dict[str, tuple[str, set[int]]]:
    """Return the table: a command's words without its arguments, what it does, its exit codes."""
    return {
        " ".join(word for word in plain(call).split()[1:] if not word.isupper()): (does, numbers(codes))
        for call, does, codes in table("command")
    }


def numbers(text: str) -> set[int]:
    return {int(code) for code in CODES.findall(text)}


def test_every_command_has_its_row_and_no_row_is_of_something_else() -> None:
    assert sorted(rows()) == sorted(COMMANDS)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_each_row_tells_the_exit_codes_that_the_help_tells(name: str) -> None:
    told = re.split(r"[Ee]xit codes?", COMMANDS[name].help or "", maxsplit=1)
    in_help = numbers(told[1]) if len(told) > 1 else set()

    assert in_help <= rows()[name][1]


def test_the_exit_codes_are_those_of_the_program() -> None:
    told = {int(plain(code)): meaning for code, meaning in table("code")}
    written = dict(re.findall(r"^ *(\d+) +(.+)$", exits.__doc__ or "", re.MULTILINE))

    assert told == {int(code): meaning for code, meaning in written.items()}


def test_every_option_that_a_row_names_exists() -> None:
    for name, (does, _) in rows().items():
        missing = set(re.findall(r"--[a-z-]+", does)) - options_of(COMMANDS[name])
        assert missing == set(), name


def test_every_call_that_the_manual_shows_is_one_that_the_program_takes() -> None:
    calls = list(dormouse_calls())

    assert len(calls) >= 20
    for words in calls:
        name = next((known for known in COMMANDS if words[: len(known.split())] == known.split()), None)
        assert name is not None or words == ["jobs"], words
        given = {word for word in words if word.startswith("--")}
        assert given <= options_of(COMMANDS[name or "jobs list"]), words


def options_of(command: click.Command) -> set[str]:
    return {option for parameter in command.params for option in parameter.opts} | {"--help"}
