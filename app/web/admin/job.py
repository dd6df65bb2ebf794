"""One job: what it is, what became of each attempt, why it stands where it stands, and what can be done."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from app.bookings.accept import accept, is_uncertain
from app.bookings.reminders import KIND, ReminderKey
from app.errors import Conflict, NotFound
from app.handlers.booking_reminder import Reminder
from app.jobs import operate, why
from app.jobs.browse import JobRow, get_job
from app.log import get_logger
from app.web.admin.jobs import read_id
from app.web.admin.visit import Visit


@dataclass(frozen=True, slots=True)
class Attempt:
    """One failed attempt, as the row remembers it."""

    number: Any
    at: str
    error: str


async def _find(visit: Visit) -> JobRow:
    job_id = read_id(visit.place["job_id"])
    row = None if job_id is None else await get_job(visit.connection, job_id)
    if row is None:
        raise NotFound("there is no job with this id")
    return row


async def show_job(visit: Visit) -> Response:
    """Show the job in full."""
    row = await _find(visit)
    services = visit.services
    scene = await why.look(visit.connection, row, services.settings, services.kinds)
    *rules, advice = why.explain(row, scene)
    key = _reminder_key(row)
    return visit.render(
        "job.html",
        job=row,
        rules=rules,
        advice=advice,
        attempts=_attempts(row.errors),
        booking_id=key.booking_id if key else None,
        is_uncertain=row.status == "dead" and key is not None and await is_uncertain(visit.connection, key),
        done=visit.query("done"),
    )


def _attempts(errors: Any) -> Sequence[Attempt]:
    """Return the failed attempts, newest first; what another program wrote there is shown as it is."""
    found = [entry if isinstance(entry, dict) else {"error": str(entry)} for entry in errors]
    return [
        Attempt(entry.get("attempt"), str(entry.get("at", ""))[:19].replace("T", " "), str(entry.get("error", "")))
        for entry in reversed(found)
    ]


def _reminder_key(row: JobRow) -> ReminderKey | None:
    if row.kind != KIND:
        return None
    try:
        return Reminder.model_validate(row.payload).key()
    except ValueError:
        return None


async def requeue_job(visit: Visit) -> Response:
    """Send a dead job round again."""
    row = await _find(visit)
    await operate.requeue(visit.connection, row.id)
    get_logger().info("admin.job_requeued", job_id=row.id, kind=row.kind)
    return visit.send_to(f"/admin/jobs/{row.id}", done="requeue")


async def cancel_job(visit: Visit) -> Response:
    """Stop a ready job for good."""
    row = await _find(visit)
    await operate.cancel(visit.connection, row.id)
    get_logger().info("admin.job_cancelled", job_id=row.id, kind=row.kind)
    return visit.send_to(f"/admin/jobs/{row.id}", done="cancel")


async def accept_reminder(visit: Visit) -> Response:
    """Take an uncertain reminder for sent: its job goes round once more, finds it sent, and is done."""
    row = await _find(visit)
    key = _reminder_key(row)
    async with visit.connection.transaction():
        if key is None or not await accept(visit.connection, key):
            raise Conflict(f"job {row.id} has no uncertain reminder")
        await operate.requeue(visit.connection, row.id)
    get_logger().info("admin.reminder_accepted", job_id=row.id)
    return visit.send_to(f"/admin/jobs/{row.id}", done="accept")
