"""What the rules draw from, and the statements by which they move rows instead of time."""

from typing import Any

from hypothesis import strategies as st

LEASE = 60.0
STARTS_MOST = 3
KINDS = ["note", "booking.reminder"]
ANY, LIMITS = st.integers(0, 1_000), st.integers(1, 3)
LANES = st.sampled_from(["jobs", "jobs", "reminders", "reminders", "crashed", "crashed reminders"])
OUTCOMES = st.sampled_from(["done", "snoozed", "released", "failed", "failed", "dead"])
STARTS = st.sampled_from([0.5, 5.0, 23.0, 30.0, 90.0])
OWN = st.sampled_from([None, None, (2.0,), (48.0, 6.0), ()])
NAMES = st.sampled_from(["b1", "b2"])
TROUBLES = st.sampled_from(["", "", "", "not sent", "refused", "maybe", "suspended"])
BY_HAND = st.sampled_from([True, False, False])
JOBS = "SELECT id, queue, status, attempts, crashes, fence, dedupe_key, priority FROM jobs"
REMINDERS = "SELECT booking_id, starts_at, remind_before, status, reason, job_id FROM reminders"
BOOKINGS = "SELECT id, status FROM bookings"
LATE = "UPDATE jobs SET expires_at = now() - interval '1 second' WHERE id = $1"
DUE = "UPDATE jobs SET run_at = now() WHERE id = $1"
OVER = "UPDATE jobs SET locked_until = now() - interval '1 second' WHERE id = $1"
RESUME = "DELETE FROM channels"
LET_START = """
    WITH moved AS (
        UPDATE bookings SET starts_at = starts_at - $2::interval WHERE id = $1
    ),
    reminded AS (
        UPDATE reminders SET starts_at = starts_at - $2::interval WHERE booking_id = $1
    )
    UPDATE jobs
    SET expires_at = expires_at - $2::interval,
        payload = payload || jsonb_build_object('starts_at', (payload ->> 'starts_at')::timestamptz - $2::interval)
    WHERE queue = 'reminders' AND payload ->> 'booking_id' = $1
"""


def is_ready(machine: Any) -> bool:
    """Whether anything waits to be claimed."""
    return any(job.status == "ready" for job in machine.model.jobs.values())


def is_leased(machine: Any) -> bool:
    """Whether anything was ever claimed."""
    return bool(machine.leases)
