"""The ticks: newest first, and one in full."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from starlette.responses import Response

from app.db import Connection
from app.errors import NotFound
from app.summary import SKIPS
from app.web.admin.visit import Visit
from app.web.problems import Refused

PAGE = 50
OUTCOMES = ("done", "retried", "dead", "snoozed", "expired", "lost", "released")
REMINDER_OUTCOMES = ("planned", "sent", "retried", "failed", "uncertain", "lost", "released")


@dataclass(frozen=True, slots=True)
class TickRow:
    """One row of `ticks`; what an older build did not count is missing in *summary*."""

    id: UUID
    started_at: datetime
    finished_at: datetime
    source: str
    summary: Mapping[str, Any]

    def tally(self, *way: str) -> int:
        """Return the number at *way* in the summary, 0 when there is none."""
        value = self.value(*way)
        return value if isinstance(value, int) else 0

    def value(self, *way: str) -> Any:
        """Return what stands at *way* in the summary, None when nothing does."""
        found: Any = self.summary
        for name in way:
            found = found.get(name) if isinstance(found, Mapping) else None
        return found

    @property
    def tone(self) -> str:
        """How it went: good, warn or bad."""
        if self.value("errors") or self.value("attention"):
            return "bad"
        return "warn" if self.value("warnings") else "good"

    @property
    def failed(self) -> int:
        """Jobs and reminders that a person must look at."""
        return self.tally("jobs", "dead") + self.tally("reminders", "failed") + self.tally("reminders", "uncertain")

    @property
    def retried(self) -> int:
        """Jobs and reminders that will be tried again."""
        return self.tally("jobs", "retried") + self.tally("reminders", "retried")


READ_TICKS = """
    SELECT id, started_at, finished_at, source, summary::text
    FROM ticks
    WHERE started_at < coalesce($1::timestamptz, 'infinity')
    ORDER BY started_at DESC
    LIMIT $2
"""


async def read_ticks(connection: Connection, *, before: datetime | None = None, limit: int = PAGE) -> list[TickRow]:
    """Return up to *limit* ticks, newest first, that started before *before*."""
    return [_tick(row) for row in await connection.fetch(READ_TICKS, before, limit)]


READ_TICK = """
    SELECT id, started_at, finished_at, source, summary::text
    FROM ticks
    WHERE id = $1
"""


def _tick(row: Any) -> TickRow:
    return TickRow(row["id"], row["started_at"], row["finished_at"], row["source"], json.loads(row["summary"]))


async def show_ticks(visit: Visit) -> Response:
    """List the ticks."""
    rows = await read_ticks(visit.connection, before=_moment(visit.query("before")), limit=PAGE + 1)
    more = rows[PAGE - 1].started_at.isoformat() if len(rows) > PAGE else None
    return visit.render("ticks.html", ticks=rows[:PAGE], more=more)


def _moment(text: str) -> datetime | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Refused(422, "The time in the address is none.") from None
    if moment.tzinfo is None:
        raise Refused(422, "The time in the address has no zone.")
    return moment


async def show_tick(visit: Visit) -> Response:
    """Show one tick in full."""
    row = await visit.connection.fetchrow(READ_TICK, _uuid(visit.place["tick_id"]))
    if row is None:
        raise NotFound("there is no tick with this id")
    return visit.render(
        "tick.html", tick=_tick(row), outcomes=OUTCOMES, reminder_outcomes=REMINDER_OUTCOMES, skips=SKIPS
    )


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise NotFound("there is no tick with this id") from None
