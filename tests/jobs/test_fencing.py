"""A write with an old fence, or with no lease left, changes nothing."""

import asyncio

import pytest

from app.jobs.operate import requeue
from app.jobs.queue import Verdict, heartbeat, settle
from app.jobs.sweep import rescue
from tests.jobs.rows import LEASE, claim_one, end_leases, put, row_of, until_waiting, whole_row

OUTCOMES = ["done", "retried", "dead", "snoozed", "released"]


def verdict(job_id: int, fence: int, outcome: str) -> Verdict:
    return Verdict(job_id, fence, outcome, 5.0, "RuntimeError: no")


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("step", [-1, 1])
async def test_a_stale_fence_settles_nothing(conn, outcome, step):
    await put(conn)
    held = await claim_one(conn)
    before = await whole_row(conn, held.id)

    won = await settle(conn, [verdict(held.id, held.fence + step, outcome)])

    assert won == set()
    assert await whole_row(conn, held.id) == before


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("status", ["ready", "done", "dead", "cancelled", "expired"])
async def test_a_job_that_is_not_running_is_not_settled(conn, outcome, status):
    await put(conn)
    held = await claim_one(conn)
    await conn.execute(
        "UPDATE jobs SET status = $2, locked_until = NULL, finished_at = CASE WHEN $2 <> 'ready' THEN now() END"
        " WHERE id = $1",
        held.id,
        status,
    )
    before = await whole_row(conn, held.id)

    won = await settle(conn, [verdict(held.id, held.fence, outcome)])

    assert won == set()
    assert await whole_row(conn, held.id) == before


@pytest.mark.parametrize("outcome", OUTCOMES)
async def test_a_zombie_that_wakes_after_its_successor_is_done_changes_nothing(conn, outcome):
    await put(conn)
    first = await claim_one(conn)
    await end_leases(conn)
    await rescue(conn, 10, 3)
    await conn.execute("UPDATE jobs SET crashes = 0")
    second = await claim_one(conn)
    assert await settle(conn, [Verdict(second.id, second.fence, "done")]) == {second.id}
    before = await whole_row(conn, first.id)

    late = await settle(conn, [verdict(first.id, first.fence, outcome)])

    assert late == set()
    assert await whole_row(conn, first.id) == before
    assert (await row_of(conn, first.id))["status"] == "done"


async def test_a_zombie_cannot_hurt_a_successor_that_still_runs(conn):
    await put(conn)
    first = await claim_one(conn)
    await end_leases(conn)
    await rescue(conn, 10, 3)
    await conn.execute("UPDATE jobs SET crashes = 0")
    second = await claim_one(conn)

    late = await settle(conn, [verdict(first.id, first.fence, "dead")])
    renewed = await heartbeat(conn, [(first.id, first.fence)], 9999)

    assert late == renewed == set()
    assert await settle(conn, [Verdict(second.id, second.fence, "done")]) == {second.id}


async def test_a_heartbeat_renews_only_what_is_still_ours(conn):
    await put(conn, 2)
    ours = await claim_one(conn)
    lost = await claim_one(conn)
    await conn.execute("UPDATE jobs SET locked_until = now() + interval '1 second'")

    renewed = await heartbeat(conn, [(ours.id, ours.fence), (lost.id, lost.fence - 1)], LEASE)

    assert renewed == {ours.id}
    assert (await row_of(conn, ours.id))["lease"] > 50
    assert (await row_of(conn, lost.id))["lease"] < 2


async def test_a_lease_that_ran_out_is_still_ours_until_someone_else_has_it(conn):
    await put(conn)
    held = await claim_one(conn)
    await end_leases(conn)

    renewed = await heartbeat(conn, [(held.id, held.fence)], LEASE)
    moved = await rescue(conn, 10, 3)

    assert renewed == {held.id}
    assert moved == []


async def test_a_requeued_job_refuses_the_write_of_its_old_run(conn):
    await put(conn)
    old = await claim_one(conn)
    await settle(conn, [Verdict(old.id, old.fence, "dead", error="no")])
    await requeue(conn, old.id)
    new = await claim_one(conn)

    late = await settle(conn, [Verdict(old.id, old.fence, "dead", error="no")])

    assert new.fence > old.fence
    assert late == set()
    assert (await row_of(conn, old.id))["status"] == "running"


async def test_a_batch_settles_what_is_ours_and_leaves_the_rest(conn):
    await put(conn, 3)
    held = [await claim_one(conn) for _ in range(3)]

    won = await settle(conn, [Verdict(row.id, row.fence - (row is held[1]), "done") for row in held])

    assert won == {held[0].id, held[2].id}
    assert (await row_of(conn, held[1].id))["status"] == "running"


async def test_a_settle_that_waits_for_a_rescue_sees_that_it_has_lost(conn, connect):
    await put(conn)
    held = await claim_one(conn)
    await end_leases(conn)
    rescuer, watcher = await connect(), await connect()
    transaction = rescuer.transaction()
    await transaction.start()
    assert len(await rescue(rescuer, 10, 3)) == 1

    late = asyncio.create_task(settle(conn, [Verdict(held.id, held.fence, "done")]))
    await until_waiting(watcher)
    await transaction.commit()

    assert await late == set()
    assert (await row_of(conn, held.id))["status"] == "ready"


async def test_a_rescue_passes_over_a_row_that_is_being_settled(conn, connect):
    await put(conn)
    held = await claim_one(conn)
    await end_leases(conn)
    settler = await connect()

    async with settler.transaction():
        assert await settle(settler, [Verdict(held.id, held.fence, "done")]) == {held.id}
        moved = await rescue(conn, 10, 3)

    assert moved == []
    assert (await row_of(conn, held.id))["status"] == "done"
