"""Who plays: ticks as they are, and those whom a tick meets: the app, the operator, a worker by hand, time itself.

Each takes its connections from a process of its own, so that every one of its statements waits for its turn.
"""

import asyncio
from typing import Any

from app import tick
from app.bookings.book import cancel_booking
from app.errors import Conflict, NotFound
from app.jobs import enqueue, operate, queue, sweep
from app.jobs.queue import Verdict
from app.tick import Budget
from tests.evidence.explorer.world import World

LEASE_SECONDS = 60.0
QUEUES, KINDS = ["default"], ["note", "later"]
OUTCOMES = ("done", "retried", "dead", "snoozed", "released")


async def tick_once(world: World, *, jobs: int = 100, reminders: int = 100, **settings: Any) -> None:
    """Run one tick as a process of its own and keep its summary."""
    services = world.services(**settings)
    world.summaries.append(await tick.run(services, Budget(jobs, reminders, 25.0), "explorer"))


LEASES_PASS = """
    WITH held AS MATERIALIZED (
        SELECT id FROM jobs WHERE status = 'running' ORDER BY id FOR NO KEY UPDATE
    )
    UPDATE jobs
    SET locked_until = now() - interval '1 second'
    FROM held
    WHERE jobs.id = held.id
    RETURNING jobs.id
"""


async def let_leases_pass(world: World, times: int = 1) -> None:
    """Stand for a process that stood still for longer than its lease, and then goes on."""
    database = world.services().database
    for _ in range(times):
        async with database.acquire() as connection:
            for row in await connection.fetch(LEASES_PASS):
                world.overruns[row["id"]] += 1
        await world.outside("stand still")


async def change_booking(world: World, booking_id: str, changes: list[tuple[str, float]]) -> None:
    """Cancel a booking, or put it at so many hours from now, one change after the other."""
    database = world.services().database
    for verb, hours in changes:
        async with database.acquire() as connection:
            if verb == "cancel":
                booking = await cancel_booking(connection, booking_id)
                world.stands(booking_id, "cancelled", booking.starts_at)
            else:
                await world.book(connection, booking_id, hours)


async def operate_on(world: World, verb: str, ids: list[int]) -> None:
    """Cancel or requeue jobs by hand, one after the other; what is refused is left."""
    database = world.services().database
    world.by_hand = True
    for job_id in ids:
        async with database.acquire() as connection:
            try:
                await (operate.cancel if verb == "cancel" else operate.requeue)(connection, job_id)
            except (Conflict, NotFound):
                continue


async def sign_up(world: World, key: str, booking_id: str, *, commits: bool) -> None:
    """Book and enqueue in one transaction under a key that others use too; *commits* says how it ends."""
    database = world.services().database
    try:
        async with database.acquire() as connection, connection.transaction():
            starts_at = await world.put(connection, booking_id, 5)
            row = await enqueue(connection, "note", {"of": booking_id}, dedupe_key=key)
            _undo_unless(commits)
    except _Undone:
        return
    world.stands(booking_id, "confirmed", starts_at)
    world.keyed.append((key, row.id))


class _Undone(Exception):
    pass


def _undo_unless(commits: bool) -> None:
    if not commits:
        raise _Undone


async def work_by_hand(world: World, rounds: int) -> None:
    """Claim, renew and settle step by step, with every outcome."""
    database = world.services().database
    for _ in range(rounds):
        async with database.acquire() as connection:
            claimed = await queue.claim(connection, QUEUES, KINDS, 2, LEASE_SECONDS)
            claimed = claimed or await queue.claim_suspect(connection, QUEUES, KINDS, LEASE_SECONDS)
        held = [(row.id, row.fence) for row in claimed]
        world.starts += held
        world.claims += [(world.scheduler.index, *lease) for lease in held]
        if held and world.rng.random() < 0.7:
            await _renew(world, database, held)
        await world.outside("work")
        verdicts = [Verdict(row.id, row.fence, _outcome(world, row), 0.0, "by hand") for row in claimed]
        async with database.acquire() as connection:
            won = await queue.settle(connection, verdicts)
        world.wins += [lease for lease in held if lease[0] in won]


def _outcome(world: World, row: queue.Claimed) -> str:
    outcome = world.rng.choice(OUTCOMES)
    is_last = row.attempts - row.crashes >= row.max_attempts
    return "dead" if outcome == "retried" and is_last else outcome


async def _renew(world: World, database: Any, held: list[tuple[int, int]]) -> None:
    await world.outside("work")
    async with database.acquire() as connection:
        ours = await queue.heartbeat(connection, held, LEASE_SECONDS)
    asked_at = world.scheduler.last[asyncio.current_task(), "HEARTBEAT"]
    world.heard += [(asked_at, *lease) for lease in held if lease[0] in ours]


async def sweep_by_hand(world: World, verbs: list[str]) -> None:
    """Rescue, expire and prune as a tick does, in any order."""
    database = world.services().database
    for verb in verbs:
        async with database.acquire() as connection:
            if verb == "rescue":
                await sweep.rescue(connection, 1000, 3)
            elif verb == "expire":
                await sweep.expire(connection, 1000)
            else:
                await sweep.prune(connection, 0.0, 1000)
