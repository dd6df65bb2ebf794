"""`dormouse enqueue`: one job from the shell, in a transaction of its own."""

import json
import sys
from datetime import datetime, timedelta
from typing import Annotated, Any

import typer

from app.cli.output import print_json, print_line
from app.cli.session import on_connection
from app.cli.times import read_delay, read_instant
from app.db import Connection
from app.errors import BadInput
from app.jobs import Enqueued
from app.jobs import enqueue as insert

commands = typer.Typer()

DATABASE_TIME = """
    SELECT now()
"""


@commands.command()
def enqueue(
    kind: Annotated[str, typer.Argument(help="The sort of job, such as avatar.resize.")],
    *,
    payload: Annotated[str, typer.Option(help="A JSON object; `-` reads it from standard input.")] = "{}",
    dedupe_key: Annotated[str | None, typer.Option(help="One job per key, for as long as its row exists.")] = None,
    run_at: Annotated[str | None, typer.Option(help="Not before this time: 2030-01-31T09:00+07:00.")] = None,
    delay: Annotated[str | None, typer.Option(help="Not before this long from now: 90s, 15m, 24h, 7d.")] = None,
    queue: Annotated[str, typer.Option(help="The queue it waits in.")] = "default",
    priority: Annotated[int, typer.Option(help="-1 low, 0, 1 high.", min=-1, max=1)] = 0,
    max_attempts: Annotated[int, typer.Option(help="Attempts before it is dead.", min=1)] = 8,
    as_json: Annotated[bool, typer.Option("--json", help='Print {"id": …, "is_new": …}.')] = False,
) -> None:
    """Insert a job. When its --dedupe-key is taken, print the id of the job that holds it instead.

    Exit codes: 0 inserted, or there already · 2 the kind, the payload or a time is wrong · 3 database
    unreachable · 4 the schema is behind.
    """
    body, due = read_payload(payload), _due(run_at, delay)

    async def work(connection: Connection) -> Enqueued:
        when = await connection.fetchval(DATABASE_TIME) + due if isinstance(due, timedelta) else due
        return await insert(
            connection,
            kind,
            body,
            dedupe_key=dedupe_key,
            queue=queue,
            priority=priority,
            run_at=when,
            max_attempts=max_attempts,
        )

    found = on_connection(work)
    if as_json:
        print_json({"id": found.id, "is_new": found.is_new})
    else:
        print_line(f"job {found.id} enqueued" if found.is_new else f"job {found.id} holds this key already")


def read_payload(text: str) -> dict[str, Any]:
    """Read a JSON object from *text*, or from standard input when it is `-`; raise BadInput otherwise."""
    try:
        value = json.loads(sys.stdin.read() if text == "-" else text)
    except (ValueError, RecursionError):
        raise BadInput("--payload is not JSON.") from None
    if not isinstance(value, dict):
        raise BadInput('--payload is a JSON object, such as {"user_id": 7}.')
    return value


def _due(run_at: str | None, delay: str | None) -> datetime | timedelta | None:
    if run_at is not None and delay is not None:
        raise BadInput("give --run-at or --delay, not both.")
    if run_at is not None:
        return read_instant(run_at)
    return None if delay is None else read_delay(delay)
