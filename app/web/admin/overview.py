"""The first page: is it well, what waits, when did it last wake, and the last seven days as a chart."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from starlette.responses import Response

from app.db import Connection
from app.jobs.browse import Survey, survey
from app.web.admin.chart import draw_week
from app.web.admin.history import Rhythm, read_buckets, read_rhythm
from app.web.admin.ticks import TickRow, read_ticks
from app.web.admin.verdict import Troubles, judge
from app.web.admin.visit import Visit

RECENT = 6
COUNTED = 1001


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at the database found."""

    survey: Survey
    rhythm: Rhythm
    ticks: list[TickRow]
    troubles: Troubles

    @property
    def last(self) -> TickRow | None:
        """The last tick."""
        return self.ticks[0] if self.ticks else None

    @property
    def next_due_at(self) -> datetime | None:
        """When the next job or reminder is due, as far as the last tick knew."""
        told = self.last.value("next_due_at") if self.last else None
        times = [self.survey.next_due_at, datetime.fromisoformat(told) if told else None]
        return min((time for time in times if time is not None and time > self.survey.now), default=None)


TROUBLES = """
    SELECT
        (
            SELECT count(*) FROM (
                SELECT 1 FROM reminders WHERE status = 'uncertain' AND starts_at > now() LIMIT $1
            ) AS found
        ) AS uncertain,
        (
            SELECT count(*) FROM (
                SELECT 1 FROM reminders
                WHERE status = 'failed' AND starts_at > now() - interval '24 hours' LIMIT $1
            ) AS found
        ) AS failed,
        (
            SELECT count(*) FROM (
                SELECT 1 FROM reminders
                WHERE status = 'skipped' AND reason = 'started'
                    AND starts_at > now() - interval '24 hours' AND starts_at <= now() LIMIT $1
            ) AS found
        ) AS missed,
        ARRAY(SELECT name FROM channels WHERE suspended_until > now() ORDER BY name LIMIT 20) AS suspended
"""


async def read_troubles(connection: Connection) -> Troubles:
    """Return what reminders and channels need a person for."""
    row = await connection.fetchrow(TROUBLES, COUNTED)
    assert row is not None  # noqa: S101 - a SELECT of scalars returns one row
    return Troubles(**dict(row.items()))


async def _look(visit: Visit) -> Look:
    settings, connection = visit.services.settings, visit.connection
    queues, keep = [*settings.queues, "reminders"], settings.done_retention_days * 86_400
    return Look(
        await survey(connection, queues, list(visit.services.kinds), keep),
        await read_rhythm(connection),
        await read_ticks(connection, limit=RECENT),
        await read_troubles(connection),
    )


async def show_overview(visit: Visit) -> Response:
    """Show the whole page."""
    look = await _look(visit)
    buckets = await read_buckets(visit.connection, visit.now)
    week = draw_week(buckets, look.rhythm, visit.now, visit.speech)
    return visit.render("overview.html", week=week, **_facts(visit, look))


async def show_pulse(visit: Visit) -> Response:
    """Send the part of the page that the script fetches anew."""
    return visit.render("pulse.html", **_facts(visit, await _look(visit)))


def _facts(visit: Visit, look: Look) -> dict[str, Any]:
    last = look.last.summary if look.last else None
    return {"look": look, "verdict": judge(look.survey, look.rhythm, last, look.troubles, visit.speech)}
