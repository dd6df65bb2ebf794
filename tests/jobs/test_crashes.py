"""A job that kills its process kills itself: it is dead after three crashes, and its neighbours are done."""

import signal

import pytest

from tests.jobs.processes import ended, start, tick_in_process
from tests.jobs.rows import end_leases, make_due, put, row_of, statuses, until
from tests.jobs.toys import TABLE


@pytest.fixture(autouse=True)
async def ran(conn):
    """The table in which the toys leave their rows."""
    await conn.execute(TABLE)


async def test_a_job_that_kills_its_process_is_dead_after_three_while_its_neighbours_are_done(conn, direct_dsn):
    neighbours = await put(conn, 5, kind="note", due_since=900)
    (killer,) = await put(conn, kind="kill")
    neighbours += await put(conn, 5, kind="note", due_since=-0.1)
    codes = []

    for _ in range(4):
        await end_leases(conn)
        codes.append((await tick_in_process(direct_dsn)).code)

    row = await row_of(conn, killer)
    assert codes == [-signal.SIGKILL] * 3 + [0]
    assert (row["status"], row["last_error"], row["crashes"]) == ("dead", "crashed", 3)
    assert await statuses(conn) == {"done": 10, "dead": 1}
    assert await conn.fetchval("SELECT count(*) FROM ran WHERE job_id = $1", killer) == 3


async def test_the_crash_limit_is_a_setting(conn, direct_dsn):
    (killer,) = await put(conn, kind="kill", max_attempts=1)

    first = await tick_in_process(direct_dsn, MAX_CRASHES="1")
    await end_leases(conn)
    second = await tick_in_process(direct_dsn, MAX_CRASHES="1")

    row = await row_of(conn, killer)
    assert (first.code, second.code) == (-signal.SIGKILL, 0)
    assert (row["status"], row["last_error"]) == ("dead", "crashed")
    assert second.summaries[0]["crashed"] == 1
    assert second.summaries[0]["attention"] == ["jobs_dead"]


async def test_after_a_kill_in_the_middle_everything_is_done_once_its_lease_is_over(conn, direct_dsn):
    await put(conn, 30, kind="note")
    hanging = await put(conn, 3, kind="hang", due_since=900)
    process = await start(direct_dsn)

    async def all_hang() -> bool:
        count: int = await conn.fetchval("SELECT count(*) FROM ran WHERE job_id = ANY ($1)", hanging)
        return count == 3

    await until(all_hang)
    process.kill()
    await ended(process)
    await conn.execute("UPDATE jobs SET kind = 'note'")

    during = await tick_in_process(direct_dsn)
    still_leased = await statuses(conn)
    await end_leases(conn)
    after = await tick_in_process(direct_dsn)

    assert during.code == after.code == 0
    assert still_leased["running"] >= 3
    assert await statuses(conn) == {"done": 33}
    assert after.summaries[0]["rescued"] == still_leased["running"]
    assert await conn.fetchval("SELECT max(crashes) FROM jobs WHERE id = ANY ($1)", hanging) == 1


async def test_a_killed_claim_leaves_no_lock_that_the_next_tick_waits_for(conn, direct_dsn):
    await put(conn, 3, kind="kill", due_since=900)
    await tick_in_process(direct_dsn, JOB_CONCURRENCY="1")
    await put(conn, 10, kind="note")
    await make_due(conn)
    await conn.execute("UPDATE jobs SET kind = 'note' WHERE status = 'ready'")

    after = await tick_in_process(direct_dsn)

    assert after.code == 0
    assert after.summaries[0]["jobs"]["done"] == (await statuses(conn))["done"] >= 10
    assert after.summaries[0]["duration_ms"] < 10_000
