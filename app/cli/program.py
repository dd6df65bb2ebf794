"""The command line: which module holds which command. Only the module that is asked for is loaded."""

import sys
from importlib import import_module
from typing import Annotated

import typer

from app.cli.exits import exit_with
from app.version import VERSION

MODULES = {
    "serve": "app.cli.serve",
    "dev": "app.cli.dev",
    "demo": "app.cli.demo",
    "migrate": "app.cli.migrate",
    "tick": "app.cli.tick",
    "worker": "app.cli.worker",
    "enqueue": "app.cli.enqueue",
    "jobs": "app.cli.jobs",
    "bookings": "app.cli.bookings",
    "channels": "app.cli.channels",
    "doctor": "app.cli.doctor",
}
CODES = (
    "Exit codes: 0 done · 1 something needs a person · 2 wrong input or settings · 3 database unreachable · "
    "4 schema behind · 5 no such row, or not in a state for it · 130 interrupted. "
    "Settings come from the environment (DATABASE_URL, CRON_SECRET, …); README lists them."
)


def run() -> int:
    """Run the command that the arguments name and return its exit code."""
    program = build(sys.argv[1] if len(sys.argv) > 1 else "")
    return exit_with(lambda: program(prog_name="dormouse"))


def build(name: str) -> typer.Typer:
    """Return the program with the command *name*, or with all when there is none of that name."""
    program = typer.Typer(
        help="Background jobs and booking reminders for apps on hosts that scale to zero.",
        epilog=CODES,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    program.callback()(_options)
    for path in [MODULES[name]] if name in MODULES else MODULES.values():
        program.add_typer(import_module(path).commands)
    return program


def _show_version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"dormouse {VERSION}\n")
        raise typer.Exit


def _options(
    *,
    _version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and end.", is_eager=True, callback=_show_version),
    ] = False,
) -> None:
    """Take the options that stand before a command."""
