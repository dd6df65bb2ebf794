"""What a claim, a settlement and a survey read does not grow with what is done, or not due yet."""

import json
from datetime import timedelta

import pytest

from app.bookings import reminders
from app.jobs import queue
from app.jobs.browse import survey
from app.jobs.queue import Verdict

HISTORY = """
    INSERT INTO jobs (kind, payload, status, attempts, fence, run_at, finished_at)
    SELECT 'noop', '{}', 'done', 1, 1, now() - interval '1 hour', now() - interval '1 hour'
    FROM generate_series(1, $1::int)
"""
FUTURE = """
    INSERT INTO jobs (kind, payload, run_at, expires_at)
    SELECT 'noop', '{}', now() + make_interval(days => 1, secs => n), now() + make_interval(days => 2, secs => n)
    FROM generate_series(1, $1::int) AS n
"""
DUE = "INSERT INTO jobs (kind, payload) SELECT 'noop', '{}' FROM generate_series(1, $1::int)"
PAGES = "SELECT blks_hit + blks_read FROM pg_stat_database WHERE datname = current_database()"
SHORT = 20_000
LONG = 400_000


async def grow(conn, rows: int, due: int) -> None:
    """Put *rows* done rows and as many that are not due beside *due* due ones, as a queue of some age holds them."""
    for statement in (HISTORY, FUTURE):
        await conn.execute(statement, rows)
    await conn.execute(DUE, due)
    await conn.execute("VACUUM ANALYZE jobs")


async def plan_of(conn, statement: str, *values: object) -> str:
    """Return the plan of *statement* with *values*, as it is planned for them."""
    prepared = await conn.prepare(f"EXPLAIN (FORMAT JSON) {statement}")
    return json.dumps(json.loads(await prepared.fetchval(*values)))


@pytest.fixture(params=[SHORT, pytest.param(LONG, marks=pytest.mark.nightly)])
async def old_queue(request, conn):
    """A connection to a queue that has run for a while, with a hundred thousandth part of it due."""
    await grow(conn, request.param, 3000)
    return conn


async def test_a_claim_walks_its_index_and_neither_reads_the_table_nor_sorts_it(old_queue):
    plan = await plan_of(old_queue, queue.CLAIM, ["default"], ["noop"], 1000, 60.0)

    assert "jobs_claim_idx" in plan
    assert not reads_the_whole_table(plan)


async def test_reminders_are_claimed_along_their_index(old_queue):
    await old_queue.execute("UPDATE jobs SET queue = 'reminders' WHERE id % 10 = 0 AND status = 'ready'")
    await old_queue.execute("VACUUM ANALYZE jobs")

    plan = await plan_of(old_queue, queue.CLAIM_REMINDERS, ["noop"], 100, 60.0)

    assert "jobs_claim_reminders_idx" in plan
    assert not reads_the_whole_table(plan)


async def test_settling_looks_its_rows_up_by_primary_key_whatever_the_index_of_leases_holds(old_queue):
    rows = await queue.claim(old_queue, ["default"], ["noop"], 100, 60.0)
    ids = "{" + ",".join(str(row.id) for row in rows) + "}"
    ones = "{" + ",".join("1" for _ in rows) + "}"
    done = ones.replace("1", "done")

    plan = await plan_of(old_queue, queue.SETTLE, ids, ones, done, ones.replace("1", "0"), [], 20)

    assert "jobs_pkey" in plan
    assert "jobs_lease_idx" not in plan
    assert not reads_the_whole_table(plan)


async def test_a_heartbeat_looks_its_rows_up_by_primary_key(old_queue):
    plan = await plan_of(old_queue, queue.HEARTBEAT, "{1,2,3}", "{1,1,1}", 60.0)

    assert "jobs_pkey" in plan
    assert not reads_the_whole_table(plan)


def reads_the_whole_table(plan: str) -> bool:
    """Say whether *plan* scans jobs from end to end."""
    return any(
        node.get("Node Type") == "Seq Scan" and node.get("Relation Name") == "jobs" for node in nodes(json.loads(plan))
    )


def nodes(tree: object) -> list[dict[str, object]]:
    """Return every node of a plan."""
    if isinstance(tree, list):
        return [node for branch in tree for node in nodes(branch)]
    if isinstance(tree, dict):
        return [tree, *(node for branch in tree.values() for node in nodes(branch))]
    return []


async def pages_read(conn) -> int:
    """Return the pages that this database's sessions have looked at."""
    await conn.fetchval("SELECT pg_stat_force_next_flush()")
    found: int = await conn.fetchval(PAGES)
    return found


async def test_a_survey_reads_about_as_much_of_a_long_history_as_of_none(conn):
    async def pages_of_a_survey() -> int:
        before = await pages_read(conn)
        for _ in range(5):
            await survey(conn, ["default", "reminders"], ["noop"], 86_400.0)
        return await pages_read(conn) - before

    await conn.execute(DUE, 100)
    await conn.execute("VACUUM ANALYZE jobs")
    of_none = await pages_of_a_survey()

    await grow(conn, SHORT, 0)
    of_many = await pages_of_a_survey()

    assert of_many < of_none + 2000


async def test_claiming_and_settling_a_thousand_costs_two_round_trips(conn):
    await conn.execute(DUE, 1000)

    rows = await queue.claim(conn, ["default"], ["noop"], 1000, 60.0)
    won = await queue.settle(conn, [Verdict(row.id, row.fence, "done") for row in rows])

    assert len(won) == 1000
    assert await conn.fetchval("SELECT count(*) FROM jobs WHERE status = 'done'") == 1000


async def test_reminders_are_loaded_together_each_in_its_place(conn):
    keys = [reminders.ReminderKey("nobody", (await conn.fetchval("SELECT now()")), timedelta(hours=1), "email")] * 2

    assert await reminders.load(conn, keys, [timedelta(hours=24)]) == [None, None]
