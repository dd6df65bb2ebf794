"""What an outside monitor asks: is it ticking, is it late, is anything stuck. One statement, capped counts.

Vitals --judge--> problems: no_tick, tick_late, due_late, channel_suspended        none = ok
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.db import Connection

TICKS_READ = 5000
COUNT_CAP = 1000
SOON_SECONDS = 7200.0
LATE_SECONDS = 3600.0
LOOK_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Vitals:
    """How it stands; ages and gaps in seconds, counts up to 1,000, None where there is nothing to measure."""

    now: datetime
    last_tick_age_seconds: float | None
    last_success_at: datetime | None
    tick_gap_p95_seconds: float | None
    ticks_7_days: int
    oldest_due_age_seconds: float | None
    reminders_due_soon: int
    jobs_dead: int
    alerts_untold: int
    channels_suspended: list[str]

    def as_json(self) -> dict[str, Any]:
        """Return it with short numbers and without what only metrics need."""
        return {
            "last_tick_age_seconds": _short(self.last_tick_age_seconds),
            "tick_gap_p95_seconds": _short(self.tick_gap_p95_seconds),
            "ticks_7_days": self.ticks_7_days,
            "oldest_due_age_seconds": _short(self.oldest_due_age_seconds),
            "reminders_due_soon": self.reminders_due_soon,
            "jobs_dead": self.jobs_dead,
            "channels_suspended": self.channels_suspended,
        }


# Of the ticks, the newest 5,000 of a week are read: a worker leaves 40,000. soon: confirmed bookings of the next two
# hours without a reminder that went out, is uncertain or was refused for good.
VITALS = """
    WITH recent AS MATERIALIZED (
        SELECT started_at, summary -> 'errors' = '[]' AS is_success
        FROM ticks
        WHERE started_at > now() - interval '7 days'
        ORDER BY started_at DESC
        LIMIT $1
    ),
    gaps AS (
        SELECT extract(epoch FROM started_at - lag(started_at) OVER (ORDER BY started_at))::float8 AS seconds
        FROM recent
    ),
    level AS (
        SELECT served.queue, level.priority
        FROM unnest($2::text[]) AS served (queue) CROSS JOIN unnest('{1,0,-1}'::smallint[]) AS level (priority)
    ),
    soon AS (
        SELECT 1
        FROM bookings
        WHERE status = 'confirmed' AND remind_before IS DISTINCT FROM '{}'
            AND starts_at > now() AND starts_at <= now() + make_interval(secs => $3)
            AND NOT EXISTS (
                SELECT 1 FROM reminders
                WHERE reminders.booking_id = bookings.id AND reminders.starts_at = bookings.starts_at
                    AND reminders.status IN ('sent', 'failed', 'uncertain')
            )
        LIMIT $4
    )
    SELECT now() AS now,
        extract(epoch FROM now() - (SELECT max(started_at) FROM ticks))::float8 AS last_tick_age_seconds,
        (SELECT max(started_at) FROM recent WHERE is_success) AS last_success_at,
        (SELECT percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds) FROM gaps) AS tick_gap_p95_seconds,
        (SELECT count(*) FROM recent) AS ticks_7_days,
        (
            SELECT extract(epoch FROM now() - min(oldest.run_at))::float8
            FROM level CROSS JOIN LATERAL (
                SELECT run_at FROM jobs
                WHERE status = 'ready' AND crashes = 0 AND queue = level.queue AND priority = level.priority
                    AND run_at <= now()
                ORDER BY run_at
                LIMIT 1
            ) AS oldest
        ) AS oldest_due_age_seconds,
        (SELECT count(*) FROM soon) AS reminders_due_soon,
        (SELECT count(*) FROM (SELECT 1 FROM jobs WHERE status = 'dead' LIMIT $4) AS dead) AS jobs_dead,
        (SELECT count(*) FROM (SELECT 1 FROM alerts WHERE told_at IS NULL LIMIT $4) AS untold) AS alerts_untold,
        ARRAY(SELECT name FROM channels WHERE suspended_until > now() ORDER BY name) AS channels_suspended
"""


async def look(connection: Connection, queues: Sequence[str]) -> Vitals:
    """Read the vitals; *queues* are those that this instance serves, `reminders` among them."""
    row = await connection.fetchrow(VITALS, TICKS_READ, list(queues), SOON_SECONDS, COUNT_CAP, timeout=LOOK_SECONDS)
    assert row is not None  # noqa: S101 - a SELECT of scalars returns one row
    return Vitals(**dict(row.items()))


def judge(vitals: Vitals, max_age_seconds: float = LATE_SECONDS) -> list[str]:
    """Name what is wrong: ticks or due work older than *max_age_seconds*, or a channel that is suspended.

    Dead jobs are told by alerts: a letter that lies there for a week is not an outage.
    """
    age, due = vitals.last_tick_age_seconds, vitals.oldest_due_age_seconds
    found = {
        "no_tick": age is None,
        "tick_late": age is not None and age > max_age_seconds,
        "due_late": due is not None and due > max_age_seconds,
        "channel_suspended": bool(vitals.channels_suspended),
    }
    return [name for name, is_so in found.items() if is_so]


def _short(number: float | None) -> float | None:
    return None if number is None else round(max(number, 0.0), 1)
