"""What a tick costs the database, in round trips: a sleeping host pays for each."""

import asyncio

import pytest

from app.jobs import Job, Kind, NewJob, enqueue_many
from tests.tick.ticking import CUT, beside_any_pooler, tick_once


async def note(job: Job) -> None:
    """Take note."""


async def test_an_empty_tick_costs_three_round_trips(services):
    made = services()

    first, second = await tick_once(made), await tick_once(made)

    assert (first["round_trips"], second["round_trips"]) == (3, 3)
    assert first["stopped_by"] == "empty"


async def test_an_empty_tick_over_a_connection_that_lay_idle_costs_no_more(services):
    made = services()
    await tick_once(made)
    await asyncio.sleep(1.1)  # the connection's idleness is what is tested

    summary = await tick_once(made)

    assert summary["round_trips"] == 3


async def test_a_tick_with_nothing_due_for_now_costs_three_as_well(services, conn):
    made = services({"note.taken": Kind(note)})
    await enqueue_many(conn, [NewJob("note.taken") for _ in range(50)])
    await conn.execute("UPDATE jobs SET run_at = now() + interval '1 hour'")

    summary = await tick_once(made)

    assert summary["round_trips"] == 3
    assert summary["next_due_at"] is not None


async def test_a_hundred_small_jobs_cost_twelve_round_trips(services, conn):
    made = services({"note.taken": Kind(note)})
    await enqueue_many(conn, [NewJob("note.taken") for _ in range(100)])

    summary = await tick_once(made)

    assert summary["jobs"]["done"] == 100
    assert summary["round_trips"] <= 12


@pytest.mark.parametrize("times", [1, 3])
async def test_a_connection_that_died_in_the_pool_is_replaced(services, dsn, server, times):
    made = services()
    async with beside_any_pooler(server, dsn) as direct:
        for _ in range(times):
            await tick_once(made)
            await direct.execute(CUT)

            summary = await tick_once(made)

            assert (summary["ok"], summary["errors"]) == (True, [])
