"""By hand, one job at a time: cancel what waits, send round again what is dead, and be told when that cannot be."""

import asyncio

import pytest

from app.errors import Conflict, NotFound
from app.jobs import enqueue
from app.jobs.operate import cancel, requeue
from tests.jobs.rows import claim_one, put, row_of, statuses, tick_once, whole_row
from tests.jobs.runs import kind_of

SET_STATUS = """
    UPDATE jobs
    SET status = $1,
        locked_until = CASE WHEN $1 = 'running' THEN now() + interval '1 minute' END,
        finished_at = CASE WHEN $1 NOT IN ('ready', 'running') THEN now() END
"""


async def test_a_cancelled_job_never_runs(conn, services):
    (job_id,) = await put(conn)

    await cancel(conn, job_id)
    summary = await tick_once(services({"toy": kind_of()}))

    row = await row_of(conn, job_id)
    assert (row["status"], row["attempts"]) == ("cancelled", 0)
    assert row["finished_at"] is not None
    assert summary["jobs"]["claimed"] == 0


async def test_a_requeued_job_runs_again_with_all_its_attempts(conn, services):
    (job_id,) = await put(conn, due_since=9000)
    await conn.execute(
        "UPDATE jobs SET status = 'dead', finished_at = now(), attempts = 8, crashes = 2, fence = 9, last_error = 'x'"
    )

    await requeue(conn, job_id)
    row = await row_of(conn, job_id)
    summary = await tick_once(services({"toy": kind_of()}))

    assert (row["status"], row["attempts"], row["crashes"], row["fence"]) == ("ready", 0, 0, 9)
    assert -5 < row["wait"] <= 0
    assert row["finished_at"] is None
    assert summary["jobs"]["done"] == 1


@pytest.mark.parametrize(("act", "allowed"), [(cancel, "ready"), (requeue, "dead")])
async def test_a_job_in_any_other_state_is_a_conflict_that_names_it(conn, act, allowed):
    (job_id,) = await put(conn)
    for status in ("ready", "running", "done", "dead", "cancelled", "expired"):
        if status == allowed:
            continue
        await conn.execute(SET_STATUS, status)
        before = await whole_row(conn, job_id)

        with pytest.raises(Conflict, match=status):
            await act(conn, job_id)

        assert await whole_row(conn, job_id) == before


@pytest.mark.parametrize("act", [cancel, requeue])
@pytest.mark.parametrize("job_id", [0, -1, 12345, 2**63 - 1])
async def test_a_job_that_is_not_there_is_not_found(conn, act, job_id):
    with pytest.raises(NotFound, match=str(job_id)):
        await act(conn, job_id)


async def test_fifty_requeues_at_once_are_one_success(conn, database):
    (job_id,) = await put(conn)
    await conn.execute(SET_STATUS, "dead")

    async def one() -> bool:
        async with database.acquire() as connection:
            try:
                await requeue(connection, job_id)
            except Conflict:
                return False
        return True

    results = await asyncio.gather(*(one() for _ in range(50)))

    assert results.count(True) == 1
    assert (await row_of(conn, job_id))["status"] == "ready"


async def test_a_cancel_and_a_claim_at_once_have_one_winner(conn, connect):
    (job_id,) = await put(conn)
    other = await connect()
    transaction = other.transaction()
    await transaction.start()
    await claim_one(other)

    cancelling = asyncio.create_task(cancel(conn, job_id))
    await asyncio.sleep(0)
    await transaction.commit()

    with pytest.raises(Conflict):
        await cancelling
    assert (await row_of(conn, job_id))["status"] == "running"


async def test_a_dead_job_keeps_its_key_so_that_no_live_twin_can_be(conn):
    job = await enqueue(conn, "toy", dedupe_key="k")
    await conn.execute(SET_STATUS, "dead")

    twin = await enqueue(conn, "toy", dedupe_key="k")
    await requeue(conn, job.id)

    assert (twin.id, twin.is_new) == (job.id, False)
    assert await statuses(conn) == {"ready": 1}
