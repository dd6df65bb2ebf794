"""Moving rows: the one place where a job changes state.

    ready --claim--> running --settle--> done | ready | dead      each statement decides and writes at once,
                     heartbeat                                    and returns the rows it won

The clock is the database's. A claim commits before anything runs. Every settle names id, fence and status = 'running':
no row matched means that the lease was lost, and then nothing is written.
"""

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from app.db import Connection

ERRORS_KEPT = 20


class Claimed(NamedTuple):
    """A row that a claim has leased; *payload* is still text: it is decoded inside the job's own try.

    *created_at* is in seconds since 1970, which no session's time zone changes: the job's keys are made from it.
    """

    id: int
    fence: int
    kind: str
    queue: str
    payload: str
    attempts: int
    max_attempts: int
    crashes: int
    created_at: float
    late_seconds: float


class Verdict(NamedTuple):
    """How one run ended: *outcome* is done, retried, dead, snoozed or released; *delay* is in seconds from now."""

    id: int
    fence: int
    outcome: str
    delay: float = 0.0
    error: str | None = None


# Ids are locked in a MATERIALIZED CTE and updated by primary key: re-planned, the locking part could otherwise run
# twice and hand out more than the limit. Queue and priority are equalities, so that each level is one short walk of
# jobs_claim_idx and rows that are not due are never read; the outer LIMIT stops before the next level is opened. Levels
# are sorted before they are probed, and rows after they are updated: neither a join nor an UPDATE keeps an order.
# An expiry is asked for with OR: the planner takes IS NOT FALSE for rare, and would sort the whole backlog each time.
# `= ANY (ARRAY(SELECT ...))` is for the planner too: told how many keys there are, it would read a table of middling
# size from end to end instead of looking them up. `(SELECT $1)` in the statements below hides the number as well.
CLAIM = """
    WITH picked AS MATERIALIZED (
        SELECT due.id
        FROM (
            SELECT level.priority, served.queue
            FROM unnest('{1,0,-1}'::smallint[]) AS level (priority)
            CROSS JOIN unnest($1::text[]) WITH ORDINALITY AS served (queue, turn)
            ORDER BY level.priority DESC, served.turn
        ) AS level
        CROSS JOIN LATERAL (
            SELECT jobs.id
            FROM jobs
            WHERE jobs.status = 'ready' AND jobs.crashes = 0 AND jobs.queue = level.queue
                AND jobs.priority = level.priority AND jobs.run_at <= now()
                AND jobs.kind = ANY ($2::text[])
                AND (jobs.expires_at IS NULL OR jobs.expires_at > now())
            ORDER BY jobs.run_at, jobs.id
            LIMIT $3
            FOR NO KEY UPDATE SKIP LOCKED
        ) AS due
        LIMIT $3
    ),
    leased AS (
        UPDATE jobs
        SET status = 'running', attempts = attempts + 1, fence = fence + 1, started_at = now(),
            locked_until = now() + make_interval(secs => $4)
        WHERE jobs.id = ANY (ARRAY(SELECT id FROM picked))
        RETURNING jobs.id, jobs.fence, jobs.kind, jobs.queue, jobs.payload, jobs.attempts, jobs.max_attempts,
            jobs.crashes, jobs.created_at, jobs.run_at, jobs.priority
    )
    SELECT id, fence, kind, queue, payload::text, attempts, max_attempts, crashes,
        date_part('epoch', created_at) AS created_at, date_part('epoch', now() - run_at) AS late_seconds
    FROM leased
    ORDER BY priority DESC, run_at, id
"""


async def claim(
    connection: Connection, queues: Sequence[str], kinds: Sequence[str], limit: int, lease: float
) -> list[Claimed]:
    """Lease up to *limit* due jobs of *queues* and *kinds* for *lease* seconds, high priority first, oldest due first.

    The attempt is counted and the fence raised. Jobs that have crashed before are left to `claim_suspect`.
    """
    return _claimed(await connection.fetch(CLAIM, queues, kinds, limit, lease))


CLAIM_REMINDERS = """
    WITH picked AS MATERIALIZED (
        SELECT jobs.id
        FROM jobs
        WHERE jobs.status = 'ready' AND jobs.crashes = 0 AND jobs.queue = 'reminders'
            AND jobs.run_at <= now()
            AND jobs.kind = ANY ($1::text[])
            AND (jobs.expires_at IS NULL OR jobs.expires_at > now())
        ORDER BY jobs.expires_at, jobs.id
        LIMIT $2
        FOR NO KEY UPDATE SKIP LOCKED
    ),
    leased AS (
        UPDATE jobs
        SET status = 'running', attempts = attempts + 1, fence = fence + 1, started_at = now(),
            locked_until = now() + make_interval(secs => $3)
        WHERE jobs.id = ANY (ARRAY(SELECT id FROM picked))
        RETURNING jobs.id, jobs.fence, jobs.kind, jobs.queue, jobs.payload, jobs.attempts, jobs.max_attempts,
            jobs.crashes, jobs.created_at, jobs.run_at, jobs.expires_at
    )
    SELECT id, fence, kind, queue, payload::text, attempts, max_attempts, crashes,
        date_part('epoch', created_at) AS created_at, date_part('epoch', now() - run_at) AS late_seconds
    FROM leased
    ORDER BY expires_at, id
"""


async def claim_reminders(connection: Connection, kinds: Sequence[str], limit: int, lease: float) -> list[Claimed]:
    """Lease up to *limit* due jobs of the queue `reminders`, nearest start first: a reminder expires as it starts."""
    return _claimed(await connection.fetch(CLAIM_REMINDERS, kinds, limit, lease))


CLAIM_SUSPECT = """
    WITH picked AS MATERIALIZED (
        SELECT jobs.id
        FROM jobs
        WHERE jobs.status = 'ready' AND jobs.crashes > 0 AND jobs.queue = ANY ($1::text[])
            AND jobs.run_at <= now()
            AND jobs.kind = ANY ($2::text[])
            AND (jobs.expires_at IS NULL OR jobs.expires_at > now())
        ORDER BY jobs.run_at, jobs.id
        LIMIT 1
        FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE jobs
    SET status = 'running', attempts = attempts + 1, fence = fence + 1, started_at = now(),
        locked_until = now() + make_interval(secs => $3)
    FROM picked
    WHERE jobs.id = picked.id
    RETURNING jobs.id, jobs.fence, jobs.kind, jobs.queue, jobs.payload::text, jobs.attempts, jobs.max_attempts,
        jobs.crashes, date_part('epoch', jobs.created_at) AS created_at,
        date_part('epoch', now() - jobs.run_at) AS late_seconds
"""


async def claim_suspect(
    connection: Connection, queues: Sequence[str], kinds: Sequence[str], lease: float
) -> list[Claimed]:
    """Lease at most one due job that has crashed before, from any of *queues*: it runs with no neighbour."""
    return _claimed(await connection.fetch(CLAIM_SUSPECT, queues, kinds, lease))


def _claimed(rows: Iterable[Any]) -> list[Claimed]:
    return list(map(Claimed._make, rows))


# `|| ''` keeps jobs_lease_idx out of it, here and in SETTLE: while an old snapshot is open somewhere, that index has an
# entry for every job that ever ran, and the planner would rather walk them all than look up some hundred keys.
HEARTBEAT = """
    WITH held AS MATERIALIZED (
        SELECT jobs.id
        FROM unnest((SELECT $1::text::bigint[]), (SELECT $2::text::bigint[])) AS lease (id, fence)
        JOIN jobs ON jobs.id = lease.id AND jobs.fence = lease.fence AND jobs.status || '' = 'running'
        ORDER BY jobs.id
        FOR NO KEY UPDATE OF jobs
    )
    UPDATE jobs
    SET locked_until = now() + make_interval(secs => $3)
    FROM held
    WHERE jobs.id = held.id
    RETURNING jobs.id
"""


async def heartbeat(connection: Connection, leases: Iterable[tuple[int, int]], lease: float) -> set[int]:
    """Extend all *leases* (id and fence) to *lease* seconds from now; return the ids that are still ours."""
    held = list(leases)
    ids, fences = _array(pair[0] for pair in held), _array(pair[1] for pair in held)
    return {row["id"] for row in await connection.fetch(HEARTBEAT, ids, fences, lease)}


# The one guard through which every way of finishing passes. Rows are locked in the order of their ids, as the
# heartbeat does: two statements of one process can then never wait for each other in a circle.
SETTLE = """
    WITH verdict AS MATERIALIZED (
        SELECT jobs.id, item.outcome, item.delay, item.error
        FROM unnest(
            (SELECT $1::text::bigint[]), (SELECT $2::text::bigint[]), (SELECT $3::text::text[]),
            (SELECT $4::text::float8[]), (SELECT $5::text[])
        ) AS item (id, fence, outcome, delay, error)
        JOIN jobs ON jobs.id = item.id AND jobs.fence = item.fence AND jobs.status || '' = 'running'
        ORDER BY jobs.id
        FOR NO KEY UPDATE OF jobs
    )
    UPDATE jobs
    SET status = CASE WHEN outcome IN ('done', 'dead') THEN outcome ELSE 'ready' END,
        locked_until = NULL,
        finished_at = CASE WHEN outcome IN ('done', 'dead') THEN now() END,
        attempts = attempts - CASE WHEN outcome IN ('snoozed', 'released') THEN 1 ELSE 0 END,
        run_at = CASE WHEN outcome IN ('retried', 'snoozed') THEN now() + make_interval(secs => delay) ELSE run_at END,
        last_error = CASE WHEN outcome IN ('retried', 'dead') THEN error ELSE last_error END,
        errors = CASE WHEN outcome IN ('retried', 'dead') THEN
            CASE WHEN jsonb_array_length(errors) >= $6 THEN errors - 0 ELSE errors END
                || jsonb_build_object('attempt', attempts, 'at', now(), 'error', error)
            ELSE errors END
    FROM verdict
    WHERE jobs.id = verdict.id
    RETURNING jobs.id
"""


# The same guard for the good ends, which most are: a fifth cheaper. They come in the order of their ids, and what is
# looked up row by row is written in the order in which it comes; were it planned otherwise, a deadlock is tried again.
SETTLE_DONE = """
    UPDATE jobs
    SET status = 'done', locked_until = NULL, finished_at = now()
    FROM unnest((SELECT $1::text::bigint[]), (SELECT $2::text::bigint[])) AS item (id, fence)
    WHERE jobs.id = item.id AND jobs.fence = item.fence AND jobs.status || '' = 'running'
    RETURNING jobs.id
"""


async def settle(connection: Connection, verdicts: Sequence[Verdict]) -> set[int]:
    """Write how runs ended and return the ids that were still ours; for the others nothing is written.

    done, dead: finished. retried: ready again after *delay*. snoozed: the same, and the attempt is given back.
    released: ready at once, and the attempt is given back.
    """
    if not verdicts:
        return set()
    ids, fences, outcomes, delays, errors = zip(*sorted(verdicts, key=itemgetter(0)), strict=True)
    if outcomes.count("done") == len(outcomes):
        rows = await connection.fetch(SETTLE_DONE, _array(ids), _array(fences))
    else:
        columns = (_array(ids), _array(fences), _array(outcomes), _array(delays))
        # unnest fills a shorter column with NULL
        rows = await connection.fetch(SETTLE, *columns, errors if any(errors) else [], ERRORS_KEPT)
    return {row[0] for row in rows}


def _array(values: Iterable[int | float | str]) -> str:
    """Write numbers, or words of ours, as an array in text: asyncpg would look up bigint[] on every new connection."""
    return f"{{{','.join(map(str, values))}}}"
