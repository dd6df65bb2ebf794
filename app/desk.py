"""The operator's desk: what can be asked and done by hand, as JSON objects, in one transaction of the caller's.

    API (web/operator.py) --+
                            +--> desk --> jobs/lists, jobs/operate, jobs/why, bookings/why, channels/suspension
    command line -----------+

Both speak to the same functions, so that `dormouse jobs …` says the same with --url and without.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from app.bookings import why as booking_why
from app.bookings.book import get_booking
from app.channels import suspension
from app.config import Settings
from app.db import Connection
from app.errors import NotFound
from app.jobs import operate
from app.jobs import why as job_why
from app.jobs.browse import JobRow, get_job
from app.jobs.job import Kind
from app.jobs.lists import Filter, list_jobs
from app.jobs.why import Rule

BULK = {"requeue": (operate.requeue_many, "requeued"), "cancel": (operate.cancel_many, "cancelled")}


async def jobs_page(connection: Connection, wanted: Filter, *, before_id: int | None, limit: int) -> dict[str, Any]:
    """Return `{"jobs": […], "next": id or null}`, newest first."""
    page = await list_jobs(connection, wanted, before_id=before_id, limit=limit)
    return {"jobs": [row.as_json() for row in page.rows], "next": page.next_id}


async def job(connection: Connection, job_id: int) -> dict[str, Any]:
    """Return the job whole; raise NotFound."""
    return (await _job(connection, job_id)).as_json()


async def _job(connection: Connection, job_id: int) -> JobRow:
    row = await get_job(connection, job_id)
    if row is None:
        raise NotFound(f"there is no job {job_id}.")
    return row


async def why_job(connection: Connection, job_id: int, settings: Settings, kinds: Mapping[str, Kind]) -> dict[str, Any]:
    """Return `{"id": …, "status": …, "rules": […]}` for the job; raise NotFound."""
    row = await _job(connection, job_id)
    scene = await job_why.look(connection, row, settings, kinds)
    return {"id": row.id, "status": row.status, "rules": _rules(job_why.explain(row, scene))}


async def why_booking(connection: Connection, booking_id: str, settings: Settings) -> dict[str, Any]:
    """Return `{"id": …, "status": …, "rules": […]}` for the booking; raise NotFound."""
    booking = await get_booking(connection, booking_id)
    if booking is None:
        raise NotFound("there is no booking with this id")
    scene = await booking_why.look(connection, booking)
    rules = booking_why.explain(booking, scene, settings.reminder_offsets)
    return {"id": booking.id, "status": booking.status, "rules": _rules(rules)}


def _rules(rules: Sequence[Rule]) -> list[dict[str, Any]]:
    return [rule.as_json() for rule in rules]


async def requeue_job(connection: Connection, job_id: int) -> dict[str, Any]:
    """Requeue a dead job; raise NotFound or Conflict."""
    await operate.requeue(connection, job_id)
    return {"id": job_id, "result": "requeued"}


async def cancel_job(connection: Connection, job_id: int) -> dict[str, Any]:
    """Cancel a ready job; raise NotFound or Conflict."""
    await operate.cancel(connection, job_id)
    return {"id": job_id, "result": "cancelled"}


async def change_many(
    connection: Connection, verb: str, wanted: Filter, *, before_id: int | None, limit: int, is_dry_run: bool
) -> dict[str, Any]:
    """Requeue or cancel (*verb*) what fits *wanted*, one bounded step; `next` is the *before_id* of the next step."""
    change, word = BULK[verb]
    bulk = await change(connection, wanted, before_id=before_id, limit=limit, is_dry_run=is_dry_run)
    return {"result": word, "dry_run": is_dry_run, "count": len(bulk.ids), "ids": bulk.ids, "next": bulk.next_id}


async def channels(connection: Connection) -> dict[str, Any]:
    """Return `{"channels": […]}`: each that was ever suspended, and until when it still is."""
    return {"channels": await suspension.list_channels(connection)}


async def resume_channel(connection: Connection, name: str) -> dict[str, Any]:
    """Open a suspended channel at once; raise NotFound when it is not suspended."""
    if not await suspension.resume(connection, name):
        raise NotFound("there is no suspended channel of this name")
    return {"channel": name, "result": "resumed"}
