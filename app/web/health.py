"""Is it alive, is it ready: two addresses that anyone may ask.

    /livez    the process answers; the database is not asked, so that a sleeping one stays asleep
    /readyz   the database answers and has our schema; tells the age of the last tick

Whoever asks /readyz, and however often, one question at a time goes to the database, at most one a second.
"""

import asyncio
import time
from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse

from app.db import Database, Link
from app.errors import DatabaseUnavailable, SchemaBehind
from app.migrate import is_behind, schema_version
from app.web.problems import RESPONSES

LOOK_SECONDS = 3.0
FRESH_SECONDS = 1.0

router = APIRouter(responses=RESPONSES)


@dataclass(frozen=True, slots=True)
class Seen:
    """What one look at the database found; *tick_age* in seconds, None before the first tick."""

    schema: str
    tick_age: float | None


LAST_TICK_AGE = """
    SELECT extract(epoch FROM now() - started_at)::float8
    FROM ticks
    ORDER BY started_at DESC
    LIMIT 1
"""


async def look(link: Link) -> Seen:
    """Ask the database for its schema and the last tick; raise SchemaBehind when it is too old."""
    async with link.acquire() as connection:
        version = await schema_version(connection)
        if version is None or is_behind(version):
            raise SchemaBehind
        return Seen(version, await connection.fetchval(LAST_TICK_AGE))


class Readiness:
    """The last look at the database, shared by all who ask within a second."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._look: asyncio.Task[Seen] | None = None
        self._link = database.link()
        self._started = 0.0

    async def see(self) -> Seen:
        """Return a look at most a second old; raise what it ran into, DatabaseUnavailable after 3 s."""
        look_under_way = self._current()
        await asyncio.wait({look_under_way}, timeout=LOOK_SECONDS)
        if not look_under_way.done():
            self._link.terminate()
            raise DatabaseUnavailable(f"the database did not answer within {LOOK_SECONDS:g} s")
        return look_under_way.result()

    def _current(self) -> asyncio.Task[Seen]:
        now = time.monotonic()
        if self._look is None or (self._look.done() and now - self._started > FRESH_SECONDS):
            self._started = now
            self._link = self._database.link(now + LOOK_SECONDS)
            self._look = asyncio.create_task(look(self._link))
            self._look.add_done_callback(_take_note)
        return self._look


def _take_note(task: asyncio.Task[Seen]) -> None:
    """Mark an exception as seen: those who waited may have left."""
    if not task.cancelled():
        task.exception()


@router.get("/livez", response_model=None)
@router.head("/livez", response_model=None, include_in_schema=False)
async def livez() -> JSONResponse:
    """Say that the process answers."""
    return JSONResponse({"status": "alive"})


@router.get("/readyz", response_model=None)
@router.head("/readyz", response_model=None, include_in_schema=False)
async def readyz(request: Request) -> JSONResponse:
    """Say whether a tick could work now; 503 with the reason when not."""
    readiness: Readiness = request.app.state.readiness
    seen = await readiness.see()
    age = None if seen.tick_age is None else round(seen.tick_age, 1)
    return JSONResponse({"status": "ready", "schema": seen.schema, "last_tick_age_seconds": age})
