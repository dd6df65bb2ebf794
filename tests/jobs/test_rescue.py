"""A lease that ran out brings its job back, later than that never; deaths of the process are counted apart."""

import asyncio

import pytest

from app.jobs import Job, Kind
from app.jobs.queue import claim
from app.jobs.sweep import rescue
from tests.jobs.rows import LEASE, claim_one, end_leases, make_due, put, row_of, statuses, tick_once, whole_row
from tests.jobs.runs import kind_of


async def test_a_job_whose_lease_is_not_over_stays_where_it_is(conn):
    await put(conn)
    held = await claim_one(conn)
    before = await whole_row(conn, held.id)

    moved = await rescue(conn, 10, 3)

    assert moved == []
    assert await whole_row(conn, held.id) == before


async def test_a_job_whose_lease_ran_out_is_ready_again_and_has_crashed_once(conn):
    await put(conn)
    held = await claim_one(conn)
    await end_leases(conn)

    (moved,) = await rescue(conn, 10, 3)

    row = await row_of(conn, held.id)
    assert (moved.id, moved.status) == (held.id, "ready")
    assert (row["status"], row["crashes"], row["attempts"], row["locked_until"]) == ("ready", 1, 1, None)
    assert row["fence"] == held.fence
    assert row["errors"][0]["error"] == "crashed: its lease ran out"
    assert row["wait"] <= 0


@pytest.mark.parametrize("max_crashes", [1, 3, 5])
async def test_after_that_many_crashes_the_job_is_dead_and_says_so(conn, max_crashes):
    (job_id,) = await put(conn, max_attempts=1)
    await conn.execute("UPDATE jobs SET crashes = $1", max_crashes - 1)
    await conn.execute("UPDATE jobs SET status = 'running', locked_until = now()")

    (moved,) = await rescue(conn, 10, max_crashes)

    row = await row_of(conn, job_id)
    assert moved.status == "dead"
    assert (row["status"], row["last_error"], row["crashes"]) == ("dead", "crashed", max_crashes)
    assert row["finished_at"] is not None


async def test_a_rescue_is_bounded_and_begins_with_the_oldest_lease(conn):
    ids = await put(conn, 20)
    await claim(conn, ["default"], ["toy"], 20, LEASE)
    await conn.execute("UPDATE jobs SET locked_until = now() - make_interval(secs => id)")

    moved = await rescue(conn, 5, 3)

    assert {row.id for row in moved} == set(ids[-5:])


async def test_two_rescues_at_once_move_each_job_once(conn, connect):
    await put(conn, 100)
    await claim(conn, ["default"], ["toy"], 100, LEASE)
    await end_leases(conn)
    other = await connect()

    async with other.transaction():
        theirs = await rescue(other, 60, 3)
        ours = await rescue(conn, 100, 3)

    assert (len(theirs), len(ours)) == (60, 40)
    assert await conn.fetchval("SELECT max(crashes) FROM jobs") == 1


async def test_crashes_do_not_spend_the_attempts_of_the_job(conn, services):
    failures = []

    async def fail(job: Job) -> None:
        failures.append(job.attempts - job.crashes)
        raise RuntimeError

    (job_id,) = await put(conn, max_attempts=3)
    for _ in range(2):
        assert await claim(conn, ["default"], ["toy"], 1, LEASE) or await conn.execute(
            "UPDATE jobs SET status = 'running', locked_until = now(), attempts = attempts + 1, fence = fence + 1"
        )
        await end_leases(conn)
        await rescue(conn, 10, 3)
    made = services({"toy": Kind(fail)})

    for _ in range(5):
        await tick_once(made)
        await make_due(conn)

    row = await row_of(conn, job_id)
    assert failures == [1, 2, 3]
    assert (row["status"], row["crashes"], row["attempts"]) == ("dead", 2, 5)


async def test_a_hundred_expired_leases_and_ten_fresh_jobs_are_done_by_one_tick(conn, services):
    await put(conn, 100)
    await claim(conn, ["default"], ["toy"], 100, LEASE)
    await end_leases(conn)
    await put(conn, 10)

    summary = await tick_once(services({"toy": kind_of()}), jobs=200)

    assert summary["rescued"] == 100
    assert summary["jobs"]["done"] == 110
    assert await statuses(conn) == {"done": 110}


async def test_fresh_jobs_run_before_those_that_have_crashed(conn, services):
    ran = []

    async def toy(job: Job) -> None:
        ran.append(job.id)

    crashed = await put(conn, 3, due_since=900)
    await conn.execute("UPDATE jobs SET crashes = 1")
    fresh = await put(conn, 5)

    await tick_once(services({"toy": Kind(toy)}))

    assert set(ran[:5]) == set(fresh)
    assert ran[5:] == crashed


async def test_a_job_that_has_crashed_runs_with_no_neighbour(conn, services):
    running, most = set(), []

    async def toy(job: Job) -> None:
        running.add(job.id)
        most.append(len(running))
        await asyncio.sleep(0)
        running.remove(job.id)

    await put(conn, 10)
    await conn.execute("UPDATE jobs SET crashes = 1")

    summary = await tick_once(services({"toy": Kind(toy)}))

    assert most == [1] * 10
    assert summary["jobs"]["done"] == 10
