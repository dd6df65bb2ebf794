"""`dormouse demo`: the whole service in one command, on nothing but what pip installed.

    database -> service -> signup -> bookings -> tick -> what came of it -> tick -> (stay up)

Every step is the real thing: PostgreSQL, `dormouse serve` in a process of its own, HTTP with the bearer,
.eml files.
"""

import secrets
from typing import Annotated

import typer

from app.cli import demo_story, serving
from app.cli.home import HOME

commands = typer.Typer()


@commands.command()
def demo(
    port: Annotated[int, typer.Option(help="Port of the service; 0 picks a free one.", min=0, max=65535)] = 0,
    *,
    once: Annotated[bool, typer.Option("--once", help="End after the second tick instead of at Ctrl-C.")] = False,
) -> None:
    """Watch a signup, bookings and two ticks on a real PostgreSQL. All it keeps is in .dormouse/.

    No setting of the environment is used, so nobody is mailed. Exit codes: 0 all went as told · 1 it did
    not · 2 the extra `embedded` is missing, the port is taken, or another demo runs in this folder.
    """
    serving.end_on_signals()
    raise typer.Exit(demo_story.tell(HOME, secrets.token_hex(3), port, once=once))
