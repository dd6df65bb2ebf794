"""Bulk enqueue by COPY, for large batches in which no key is taken: two thirds of the time that an INSERT needs.

    draw ids, unless one of some keys is there -> COPY -> ids in the order of the batch
    anything against it                        -> nothing of it is left, and None: the caller inserts row by row

COPY knows no ON CONFLICT, and says less of a refused row than INSERT does. It is tried under a savepoint; what it does
not take is left to the INSERT, whose answer counts.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import asyncpg

from app.db import Connection

LEAST = 2500  # below, three more round trips cost more than the COPY saves
SAMPLE = 50

# A batch that was enqueued before is found out by a few of its keys, before anything is written. Ids that follow one
# another, as they do unless others enqueue in the same moment, are told by the first of them.
DRAW = """
    WITH drawn AS MATERIALIZED (
        SELECT nextval((SELECT pg_get_serial_sequence('jobs', 'id')::regclass)) AS id
        FROM generate_series(1, $1::int)
        WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE dedupe_key = ANY ($2::text[]))
    )
    SELECT min(id) AS first, CASE WHEN max(id) - min(id) >= $1::int THEN array_agg(id ORDER BY id) END AS each
    FROM drawn
"""

NOW = """
    SELECT now()
"""

# What the server refuses, and what the driver cannot write in the form that COPY takes.
REFUSED = (
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.DataError,
    asyncpg.FeatureNotSupportedError,
    asyncpg.InsufficientPrivilegeError,
    asyncpg.InternalClientError,
    OverflowError,
    TypeError,
    ValueError,
)

# A column that may stay away, the value that it has then, and the types of others that COPY takes as they are.
COLUMNS: tuple[tuple[str, Any, set[type]], ...] = (
    ("kind", None, {str}),
    ("dedupe_key", None, {str, type(None)}),
    ("queue", "default", {str}),
    ("priority", 0, {int}),
    ("run_at", None, {datetime, type(None)}),
    ("expires_at", None, {datetime, type(None)}),
    ("max_attempts", 8, {int}),
)


async def copy_in(connection: Connection, columns: dict[str, list[Any]]) -> Sequence[int] | None:
    """Insert new jobs and return their ids in the order given, or None when COPY would not do: nothing is left then.

    *columns* are those of `columns_of`. It is a transaction of its own, or a savepoint in the caller's.
    """
    count, keys = len(columns["payload"]), columns.get("dedupe_key", [])
    try:
        async with connection.transaction():
            drawn = await connection.fetchrow(DRAW, count, keys[:: max(1, len(keys) // SAMPLE)])
            if drawn is None or drawn["first"] is None:
                return None
            if "run_at" in columns:
                columns["run_at"] = await _with_now(connection, columns["run_at"])
            ids: Sequence[int] = drawn["each"] or range(drawn["first"], drawn["first"] + count)
            records = zip(ids, *columns.values(), strict=True)
            await connection.copy_records_to_table("jobs", records=records, columns=["id", *columns])
    except REFUSED:
        return None
    return ids


def columns_of(jobs: Sequence[Any]) -> dict[str, list[Any]] | None:
    """Return what has to be written of *jobs*, NewJobs, column by column.

    None when COPY would not do: there are too few of them, a key comes twice, or a value is odd.
    """
    if len(jobs) < LEAST:
        return None
    columns = {"payload": [job.text for job in jobs]}
    for name, usual, types in COLUMNS:
        values = [getattr(job, name) for job in jobs]
        if values.count(usual) == len(values):
            continue
        if not types >= set(map(type, values)):
            return None
        columns[name] = values
    keys = [key for key in columns.get("dedupe_key", []) if key is not None]
    return columns if len(set(keys)) == len(keys) else None


async def _with_now(connection: Connection, moments: Sequence[datetime | None]) -> list[datetime]:
    now: datetime = await connection.fetchval(NOW)
    return [moment or now for moment in moments]
