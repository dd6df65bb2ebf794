"""`dormouse dev`: the real server on an embedded PostgreSQL, for trying and for developing against it."""

import asyncio
import os
import sys
from typing import Annotated

import typer

from app.cli import serving
from app.cli.embedded import embedded_postgres
from app.cli.home import HOME, kept_secret
from app.config import load_settings
from app.migrate import migrate

commands = typer.Typer()

LOOPBACK = "127.0.0.1"
TOKENS = {"CRON_SECRET": "cron_secret", "API_TOKEN": "api_token"}


@commands.command()
def dev(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = LOOPBACK,
    port: Annotated[int | None, typer.Option(help="Port; without it PORT, or 8080.", min=1, max=65535)] = None,
) -> None:
    """Serve on an embedded PostgreSQL in .dormouse/, migrated and with tokens made. Ctrl-C ends both.

    Needs the extra `embedded`. Exit codes: 0 stopped · 1 the database did not start · 2 the extra is
    missing, the port is taken, or another `dormouse dev` runs in this folder.
    """
    serving.end_on_signals()
    with embedded_postgres(HOME, "dormouse") as dsn:
        applied = asyncio.run(migrate(dsn))
        _set_environment(dsn)
        settings = load_settings("DATABASE_URL", "CRON_SECRET")
        with serving.listen(host, port or settings.port) as listener:
            _greet(dsn, host, listener.getsockname()[1], applied)
            raise typer.Exit(serving.run_server(listener))


def _set_environment(dsn: str) -> None:
    os.environ["DATABASE_URL"] = dsn
    os.environ.setdefault("LOG_FORMAT", "console")
    for name, file in TOKENS.items():
        if not os.environ.get(name):
            os.environ[name] = kept_secret(HOME, file)


def _greet(dsn: str, host: str, port: int, applied: list[str]) -> None:
    token = f"$(cat {HOME}/{TOKENS['CRON_SECRET']})" if _is_kept("CRON_SECRET") else "$CRON_SECRET"
    lines = (
        f"PostgreSQL runs, its data in {HOME}/postgres. Ctrl-C ends all.",
        *(f"Migrated to {revision}." for revision in applied),
        "",
        "Tick:",
        f'  curl -X POST -H "Authorization: Bearer {token}" http://{host}:{port}/api/cron/tick',
        "Look into the database from another terminal:",
        f"  export DATABASE_URL='{dsn}' CRON_SECRET=\"{token}\"",
        "  dormouse jobs list",
        "",
    )
    sys.stderr.write("\n".join(lines) + "\n")


def _is_kept(name: str) -> bool:
    return os.environ[name] == kept_secret(HOME, TOKENS[name])
