"""A handler whose effects are in this database can commit them together with `done`: exactly once, or not at all."""

import asyncio

import pytest

from app.errors import LeaseLost
from app.jobs import Job, Kind, enqueue
from app.jobs.sweep import rescue
from tests.jobs.rows import end_leases, put, row_of, statuses, tick_once
from tests.jobs.runs import claimed_row


@pytest.fixture(autouse=True)
async def account(conn):
    """A table of the user's own."""
    await conn.execute("CREATE TABLE paid (job_id bigint)")


async def paid(conn) -> int:
    count: int = await conn.fetchval("SELECT count(*) FROM paid")
    return count


async def test_effects_and_done_commit_together(conn, connect, services):
    other = await connect()
    seen = []

    async def pay(job: Job) -> None:
        async with job.completing() as mine:
            await mine.execute("INSERT INTO paid VALUES ($1)", job.id)
            seen.append((await paid(other), (await row_of(other, job.id))["status"]))
        seen.append((await paid(other), (await row_of(other, job.id))["status"]))

    await put(conn)

    summary = await tick_once(services({"toy": Kind(pay)}))

    assert seen == [(0, "running"), (1, "done")]
    assert summary["jobs"]["done"] == 1


async def test_an_error_inside_takes_the_effects_back_and_the_job_is_retried(conn, services):
    async def pay(job: Job) -> None:
        async with job.completing() as mine:
            await mine.execute("INSERT INTO paid VALUES ($1)", job.id)
            raise RuntimeError("half way")

    (job_id,) = await put(conn)

    await tick_once(services({"toy": Kind(pay)}))

    assert await paid(conn) == 0
    assert (await row_of(conn, job_id))["last_error"] == "RuntimeError: half way"


async def test_a_lost_lease_takes_the_effects_back(conn, services):
    raised = []

    async def pay(job: Job) -> None:
        await end_leases(conn)
        await rescue(conn, 10, 3)
        try:
            async with job.completing() as mine:
                await mine.execute("INSERT INTO paid VALUES ($1)", job.id)
        except LeaseLost as error:
            raised.append(error)
            raise

    (job_id,) = await put(conn)

    summary = await tick_once(services({"toy": Kind(pay)}))

    row = await row_of(conn, job_id)
    assert len(raised) == 1
    assert await paid(conn) == 0
    assert summary["jobs"]["lost"] == 1
    assert (row["status"], row["crashes"], len(row["errors"])) == ("ready", 1, 1)


async def test_a_connection_cut_between_effect_and_commit_takes_the_effects_back(conn, services):
    async def pay(job: Job) -> None:
        async with job.completing() as mine:
            await mine.execute("INSERT INTO paid VALUES ($1)", job.id)
            pid = await mine.fetchval("SELECT pg_backend_pid()")
            await conn.fetchval("SELECT pg_terminate_backend($1, 5000)", pid)

    (job_id,) = await put(conn)

    summary = await tick_once(services({"toy": Kind(pay)}))

    assert await paid(conn) == 0
    assert summary["jobs"]["retried"] == 1
    assert (await row_of(conn, job_id))["attempts"] == 1


async def test_what_happens_after_completing_cannot_undo_it(conn, services):
    async def pay(job: Job) -> None:
        async with job.completing() as mine:
            await mine.execute("INSERT INTO paid VALUES ($1)", job.id)
        raise RuntimeError("too late")

    await put(conn)

    summary = await tick_once(services({"toy": Kind(pay)}))

    assert summary["jobs"]["done"] == 1
    assert await statuses(conn) == {"done": 1}


async def test_completing_twice_is_refused_and_changes_nothing(conn, services):
    async def pay(job: Job) -> None:
        for _ in range(2):
            async with job.completing() as mine:
                await mine.execute("INSERT INTO paid VALUES ($1)", job.id)

    await put(conn)

    await tick_once(services({"toy": Kind(pay)}))

    assert await paid(conn) == 1
    assert await statuses(conn) == {"done": 1}


async def test_the_next_job_can_be_enqueued_in_the_same_transaction(conn, services):
    async def first(job: Job) -> None:
        async with job.completing() as mine:
            await enqueue(mine, "second")

    async def second(job: Job) -> None:
        async with job.completing():
            pass

    await put(conn, kind="first")

    await tick_once(services({"first": Kind(first), "second": Kind(second)}))

    assert await statuses(conn) == {"done": 2}


async def test_more_jobs_complete_at_once_than_there_are_connections(conn, services):
    async def pay(job: Job) -> None:
        async with job.completing() as mine:
            await mine.execute("INSERT INTO paid VALUES ($1)", job.id)

    await put(conn, 60)

    summary = await tick_once(services({"toy": Kind(pay)}, job_concurrency=30))

    assert summary["jobs"]["done"] == 60
    assert await paid(conn) == 60


async def test_a_job_that_is_cut_while_it_completes_is_not_half_done(conn, connect, services):
    blocker = await connect()
    transaction = blocker.transaction()
    await transaction.start()
    await blocker.execute("LOCK TABLE paid IN ACCESS EXCLUSIVE MODE")

    async def pay(job: Job) -> None:
        async with job.completing() as mine:
            await mine.execute("INSERT INTO paid VALUES ($1)", job.id)

    (job_id,) = await put(conn)

    await tick_once(services({"toy": Kind(pay, timeout=0.3)}), seconds=5)
    await transaction.rollback()

    assert await paid(conn) == 0
    assert (await row_of(conn, job_id))["status"] in {"ready", "running"}


async def test_only_a_running_job_can_complete(services):
    row = claimed_row()
    job = Job(row.id, row.kind, row.queue, {}, 1, 8, 0, 1, row.created_at, services())

    with pytest.raises(RuntimeError, match="running"):
        async with job.completing():
            await asyncio.sleep(0)
