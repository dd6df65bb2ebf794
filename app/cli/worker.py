"""`dormouse worker`: the pump in a loop, for hosts that never sleep."""

from typing import Annotated

import typer
import uvloop

from app.cli.session import open_services
from app.config import load_settings
from app.heap import freeze_start_up
from app.worker import work

commands = typer.Typer()


@commands.command()
def worker(
    poll_seconds: Annotated[
        float, typer.Option(help="How long to wait when nothing is due.", min=0.05, max=3600)
    ] = 1.0,
) -> None:
    """Run jobs and reminders until SIGTERM or Ctrl-C, which finish what runs and claim nothing more.

    A database that is away is waited for. Exit codes: 0 stopped and drained · 2 wrong settings · 4 the schema is
    behind.
    """
    uvloop.run(_work(poll_seconds))


async def _work(poll_seconds: float) -> None:
    async with open_services(load_settings("DATABASE_URL"), is_bounded=False) as services:
        freeze_start_up()
        await work(services, poll_seconds=poll_seconds)
