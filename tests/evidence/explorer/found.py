"""All that an order has left behind: rows, and the notes of how they came to be so."""

from dataclasses import dataclass
from typing import Any

from tests.evidence.explorer.world import World

REMINDERS = "reminders"

JOBS = "SELECT id, queue, kind, status, attempts, max_attempts, crashes, fence, dedupe_key FROM jobs ORDER BY id"
JOB_NOTES = """
    SELECT id, queue, max_attempts, old_status, status, old_fence, fence, old_attempts, attempts, old_crashes, crashes
    FROM evidence.jobs
    ORDER BY n
"""
REMINDER_ROWS = """
    SELECT booking_id, starts_at, remind_before, channel, status, reason, job_id, idempotency_key
    FROM reminders
"""
REMINDER_NOTES = """
    SELECT booking_id, starts_at, remind_before, old_status, status, reason, idempotency_key, job_id
    FROM evidence.reminders
    ORDER BY n
"""
EFFECTS = "SELECT job_id, count(*) AS effects FROM evidence.effects GROUP BY job_id"
BOOKINGS = "SELECT id, status, starts_at FROM bookings"


@dataclass(eq=False)
class Found:
    """All rows and notes after an order."""

    world: World
    jobs: list[Any]
    job_notes: list[Any]
    reminders: list[Any]
    reminder_notes: list[Any]
    effects: dict[int, int]
    bookings: list[Any]
    was_killed: bool


async def look(world: World) -> Found:
    """Read all of it."""
    admin = world.stage.admin
    return Found(
        world,
        await admin.fetch(JOBS),
        await admin.fetch(JOB_NOTES),
        await admin.fetch(REMINDER_ROWS),
        await admin.fetch(REMINDER_NOTES),
        {row["job_id"]: row["effects"] for row in await admin.fetch(EFFECTS)},
        await admin.fetch(BOOKINGS),
        any(line.endswith("KILLED") for line in world.scheduler.trace),
    )
