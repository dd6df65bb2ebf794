"""How regularly the outside scheduler calls: the usual gap, the longest ones, and who called."""

from dataclasses import dataclass
from datetime import datetime

from starlette.responses import Response

from app.db import Connection
from app.web.admin.chart import draw_week
from app.web.admin.history import DAYS, read_buckets, read_rhythm
from app.web.admin.visit import Visit

GAPS_SHOWN = 15


@dataclass(frozen=True, slots=True)
class Source:
    """One caller of ticks in the last seven days."""

    name: str
    ticks: int
    last_at: datetime


SOURCES = """
    SELECT source AS name, count(*) AS ticks, max(started_at) AS last_at
    FROM (
        SELECT source, started_at
        FROM ticks
        WHERE started_at > now() - make_interval(days => $1)
        ORDER BY started_at DESC
        LIMIT 12000
    ) AS recent
    GROUP BY source
    ORDER BY ticks DESC, source
    LIMIT 20
"""


async def read_sources(connection: Connection) -> list[Source]:
    """Return who called in the last seven days, most first."""
    return [Source(*row.values()) for row in await connection.fetch(SOURCES, DAYS)]


async def show_schedule(visit: Visit) -> Response:
    """Show the page."""
    rhythm = await read_rhythm(visit.connection)
    buckets = await read_buckets(visit.connection, visit.now)
    return visit.render(
        "schedule.html",
        rhythm=rhythm,
        gaps=rhythm.gaps[:GAPS_SHOWN],
        sources=await read_sources(visit.connection),
        week=draw_week(buckets, rhythm, visit.now, visit.speech),
    )
