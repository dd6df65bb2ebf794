"""`dormouse serve` with options; without any, `main` goes to `serving` directly."""

from typing import Annotated

import typer

from app.cli import serving

commands = typer.Typer()


@commands.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on; `::` is IPv6 and IPv4.")] = serving.ALL_ADDRESSES,
    port: Annotated[int | None, typer.Option(help="Port; without it PORT, or 8080.", min=1, max=65535)] = None,
) -> None:
    """Serve the HTTP API: POST /api/cron/tick and the rest. Needs DATABASE_URL and CRON_SECRET.

    SIGTERM ends it within 8 seconds, with exit code 0. The schema is migrated by `dormouse migrate`, never
    here.
    """
    raise typer.Exit(serving.serve(host, port))
