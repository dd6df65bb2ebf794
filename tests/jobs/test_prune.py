"""What is finished goes after its time, a bounded piece at a tick; what is dead, or not finished, stays."""

import pytest

from app.jobs.sweep import expire, prune
from tests.jobs.rows import put, row_of, statuses, tick_once

WEEK = 7 * 86_400.0

AGE = """
    UPDATE jobs
    SET status = $1,
        finished_at = CASE WHEN $1 NOT IN ('ready', 'running') THEN now() - make_interval(secs => $2) END,
        locked_until = CASE WHEN $1 = 'running' THEN now() - make_interval(secs => $2) END,
        created_at = now() - make_interval(secs => $2),
        run_at = now() - make_interval(secs => $2)
"""


@pytest.mark.parametrize(
    ("status", "goes"),
    [("done", True), ("cancelled", True), ("expired", True), ("dead", False), ("ready", False), ("running", False)],
)
async def test_only_what_ended_without_harm_goes(conn, status, goes):
    await put(conn, 3)
    await conn.execute(AGE, status, 10 * WEEK)

    gone = await prune(conn, WEEK, 100)

    assert gone == (3 if goes else 0)
    assert await statuses(conn) == ({} if goes else {status: 3})


async def test_what_is_not_old_enough_stays(conn):
    await put(conn, 3)
    await conn.execute(AGE, "done", WEEK - 60)

    assert await prune(conn, WEEK, 100) == 0


async def test_pruning_is_bounded_and_begins_with_the_oldest(conn):
    ids = await put(conn, 10)
    await conn.execute(AGE, "done", 2 * WEEK)
    await conn.execute("UPDATE jobs SET finished_at = finished_at - make_interval(secs => id)")

    gone = await prune(conn, WEEK, 4)

    assert gone == 4
    assert await conn.fetchval("SELECT max(id) FROM jobs") == ids[5]


async def test_a_tick_prunes_by_the_setting(conn, services):
    await put(conn, 3)
    await conn.execute(AGE, "done", 2 * 86_400)
    made = services(done_retention_days=3)

    first = await tick_once(made)
    second = await tick_once(services(done_retention_days=1))

    assert (first["pruned"], second["pruned"]) == (0, 3)


async def test_a_ready_job_that_is_useless_by_now_expires(conn, services):
    late, soon = await put(conn, 2, kind="nobody.knows")
    await conn.execute(
        "UPDATE jobs SET expires_at = now() + make_interval(secs => CASE WHEN id = $1 THEN -1 ELSE 60 END)", late
    )

    summary = await tick_once(services())

    assert (await row_of(conn, late))["status"] == "expired"
    assert (await row_of(conn, late))["finished_at"] is not None
    assert (await row_of(conn, soon))["status"] == "ready"
    assert summary["jobs"]["expired"] == 1


async def test_a_running_job_does_not_expire(conn):
    await put(conn)
    await conn.execute(AGE, "running", 60)
    await conn.execute("UPDATE jobs SET expires_at = now() - interval '1 hour'")

    assert await expire(conn, 100) == []


async def test_expiring_is_bounded_and_begins_with_the_latest(conn):
    ids = await put(conn, 10)
    await conn.execute("UPDATE jobs SET expires_at = now() - make_interval(secs => id)")

    moved = await expire(conn, 4)

    assert {row.id for row in moved} == set(ids[-4:])
