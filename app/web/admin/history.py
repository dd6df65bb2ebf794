"""What the ticks of the last seven days tell: what was done in each three hours, and how regularly they came."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.db import Connection

DAYS = 7
BUCKET = timedelta(hours=3)
BUCKETS = DAYS * 24 // 3
COLUMNS = 840
TICKS_READ = 12_000
GAP_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Bucket:
    """Three hours: runs by outcome, and how late the latest began."""

    since: datetime
    ticks: int
    done: int
    sent: int
    retried: int
    failed: int
    late_seconds: float | None


@dataclass(frozen=True, slots=True)
class Gap:
    """A time without a tick; *until* is None while it lasts."""

    since: datetime
    until: datetime | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Rhythm:
    """How regularly ticks came: *columns* are those of the chart in which one did."""

    ticks: int
    ticks_today: int
    usual_seconds: float | None
    p95_seconds: float | None
    last_at: datetime | None
    columns: list[int]
    gaps: list[Gap]


# The sums are taken where the rows are: ten thousand summaries never leave the database.
BUCKETS_OF = """
    WITH recent AS MATERIALIZED (
        SELECT started_at, summary
        FROM ticks
        WHERE started_at > now() - make_interval(days => $1) AND started_at <= now()
        ORDER BY started_at DESC
        LIMIT $2
    )
    SELECT floor(extract(epoch FROM now() - started_at) / $3::float8)::int AS back, count(*) AS ticks,
        coalesce(sum(jobs.done), 0) AS done,
        coalesce(sum(reminders.sent), 0) AS sent,
        coalesce(sum(coalesce(jobs.retried, 0) + coalesce(reminders.retried, 0)), 0) AS retried,
        coalesce(sum(
            coalesce(jobs.dead, 0) + coalesce(reminders.failed, 0) + coalesce(reminders.uncertain, 0)
        ), 0) AS failed,
        max(lateness.max) AS late_seconds
    FROM recent
    LEFT JOIN LATERAL jsonb_to_record(summary -> 'jobs') AS jobs (done int, retried int, dead int) ON TRUE
    LEFT JOIN LATERAL jsonb_to_record(summary -> 'reminders')
        AS reminders (sent int, retried int, failed int, uncertain int) ON TRUE
    LEFT JOIN LATERAL jsonb_to_record(summary -> 'lateness_seconds') AS lateness (max float8) ON TRUE
    GROUP BY back
"""


async def read_buckets(connection: Connection, now: datetime) -> list[Bucket]:
    """Return the 56 buckets of the last seven days up to *now*, oldest first, empty ones too."""
    rows = await connection.fetch(BUCKETS_OF, DAYS, TICKS_READ, BUCKET.total_seconds())
    found = {row["back"]: row for row in rows}
    return [_bucket(now - BUCKET * (back + 1), found.get(back)) for back in reversed(range(BUCKETS))]


def _bucket(since: datetime, row: object) -> Bucket:
    if row is None:
        return Bucket(since, 0, 0, 0, 0, 0, None)
    values = dict(row)  # type: ignore[call-overload]  # a Record is a mapping that asyncpg's stubs do not call one
    del values["back"]
    return Bucket(since, **values)


RHYTHM = """
    WITH recent AS MATERIALIZED (
        SELECT started_at, lead(started_at) OVER (ORDER BY started_at) AS next_at
        FROM (
            SELECT started_at
            FROM ticks
            WHERE started_at > now() - make_interval(days => $1) AND started_at <= now()
            ORDER BY started_at DESC
            LIMIT $2
        ) AS ticks
    ),
    gap AS (
        SELECT started_at AS since, next_at AS until,
            extract(epoch FROM coalesce(next_at, now()) - started_at)::float8 AS seconds
        FROM recent
    )
    SELECT count(*) AS ticks,
        count(*) FILTER (WHERE since > now() - interval '24 hours') AS ticks_today,
        percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) FILTER (WHERE until IS NOT NULL) AS usual_seconds,
        percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds) FILTER (WHERE until IS NOT NULL) AS p95_seconds,
        max(since) AS last_at,
        ARRAY(
            SELECT DISTINCT least(
                floor((1 - extract(epoch FROM now() - started_at) / ($1 * 86400.0)) * $3), $3 - 1
            )::int::text
            FROM recent
        ) AS columns,
        ARRAY(
            SELECT to_jsonb(longest)::text
            FROM (
                SELECT since, until, seconds
                FROM gap
                WHERE seconds > $4
                ORDER BY seconds DESC
                LIMIT 50
            ) AS longest
        ) AS gaps
    FROM gap
"""


async def read_rhythm(connection: Connection) -> Rhythm:
    """Return how regularly ticks came in the last seven days, with the longest gaps of over an hour."""
    row = await connection.fetchrow(RHYTHM, DAYS, TICKS_READ, COLUMNS, GAP_SECONDS)
    assert row is not None  # noqa: S101 - an aggregate without GROUP BY returns one row
    values = dict(row.items())
    values["columns"] = sorted(int(column) for column in row["columns"])
    values["gaps"] = [_gap(text) for text in row["gaps"]]
    return Rhythm(**values)


def _gap(text: str) -> Gap:
    found = json.loads(text)
    until = None if found["until"] is None else datetime.fromisoformat(found["until"])
    return Gap(datetime.fromisoformat(found["since"]), until, found["seconds"])
