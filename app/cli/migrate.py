"""`dormouse migrate`."""

import asyncio
from typing import Annotated

import typer

from app.cli.output import print_json, print_line
from app.config import load_settings
from app.errors import DatabaseUnavailable
from app.migrate import HEAD
from app.migrate import migrate as apply

commands = typer.Typer()


@commands.command()
def migrate(*, as_json: Annotated[bool, typer.Option("--json", help="Answer in JSON.")] = False) -> None:
    """Bring the database's schema to this build's revision. Safe to run twice, and twice at once.

    Exit codes: 0 the schema is current · 2 DATABASE_URL is missing or wrong · 3 the database cannot be
    reached, or its tables are locked for too long.
    """
    settings = load_settings("DATABASE_URL")
    applied = asyncio.run(_reaching(settings.dsn))
    if as_json:
        print_json({"applied": applied, "revision": HEAD})
        return
    for revision in applied:
        print_line(f"applied {revision}")
    print_line(f"The schema is at revision {HEAD}." if applied else f"The schema was at revision {HEAD} already.")


async def _reaching(dsn: str) -> list[str]:
    try:
        return await apply(dsn)
    except OSError as error:
        raise DatabaseUnavailable(f"the database cannot be reached ({type(error).__name__}).") from None
