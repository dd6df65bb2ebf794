"""The jobs: a list that is filtered and paged, and what is done to all that fit.

GET  /admin/jobs?status=dead&kind=…      names only: nothing personal stands in an address
POST /admin/jobs                         the same with a piece of an error's text, which may be personal
POST /admin/bulk/requeue | cancel        dry run: how many, which; with `sure=yes` it is done, a step at a time
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol

from starlette.responses import Response

from app.db import Connection
from app.errors import NotFound
from app.jobs import operate
from app.jobs.lists import Filter, list_jobs
from app.log import get_logger
from app.web.admin.visit import Visit
from app.web.problems import Refused

PAGE = 50
SAMPLE = 10
STEP = operate.BULK
STATUSES = ("ready", "running", "dead", "done", "cancelled", "expired")
NAME_CHARS = 200
HIGHEST_ID = 2**63 - 1
FIELDS = ("status", "kind", "queue", "error")


class Change(Protocol):
    """Requeue or cancel all that fits, one bounded step."""

    def __call__(
        self, connection: Connection, wanted: Filter, *, before_id: int | None, limit: int, is_dry_run: bool
    ) -> Awaitable[operate.Bulk]:
        """Return what was done, or would be."""


@dataclass(frozen=True, slots=True)
class Verb:
    """What can be done to many: the *status* that it takes."""

    name: str
    status: str
    change: Change


VERBS = {
    "requeue": Verb("requeue", "dead", operate.requeue_many),
    "cancel": Verb("cancel", "ready", operate.cancel_many),
}


def read_filter(get: Callable[[str], str]) -> Filter:
    """Return the filter that the fields behind *get* name; raise Refused for a status or a name that none has."""
    values: dict[str, str | None] = {name: get(name).strip() or None for name in FIELDS}
    if values["status"] not in (None, *STATUSES):
        raise Refused(422, "There is no such status.")
    if any(value is not None and len(value) > NAME_CHARS for value in values.values()):
        raise Refused(422, f"A filter has over {NAME_CHARS} characters.")
    return Filter(**values)  # type: ignore[arg-type]  # the fields are texts by the lines above


def read_id(text: str) -> int | None:
    """Return the id that *text* names, None for none; raise Refused for what no row can have."""
    if not text:
        return None
    if not (text.isascii() and text.isdigit()) or not 0 < int(text[:20]) <= HIGHEST_ID:
        raise Refused(422, "The address names no job.")
    return int(text)


async def show_jobs(visit: Visit) -> Response:
    """List the jobs that the address names."""
    return await _show_list(visit, read_filter(lambda name: "" if name == "error" else visit.query(name)), visit.query)


async def search_jobs(visit: Visit) -> Response:
    """List the jobs that the form names; without an error's text, lead to their own address."""
    wanted = read_filter(_field(visit))
    if wanted.error is None:
        named = {name: value for name in FIELDS if (value := getattr(wanted, name))}
        return visit.send_to("/admin/jobs", **named)
    return await _show_list(visit, wanted, _field(visit))


def _field(visit: Visit) -> Callable[[str], str]:
    return lambda name: visit.form.get(name, "")


async def _show_list(visit: Visit, wanted: Filter, get: Callable[[str], str]) -> Response:
    before_id = read_id(get("before"))
    page = await list_jobs(visit.connection, wanted, before_id=before_id, limit=PAGE)
    return visit.render(
        "jobs.html",
        wanted=wanted,
        filters=_filters(wanted),
        jobs=page.rows,
        next_id=page.next_id,
        is_first=before_id is None,
        statuses=STATUSES,
        verb=next((verb for verb in VERBS.values() if verb.status == wanted.status), None),
        done=get("done"),
        number_done=read_id(get("n")),
    )


def _filters(wanted: Filter) -> dict[str, str]:
    return {name: getattr(wanted, name) or "" for name in FIELDS}


async def change_jobs(visit: Visit) -> Response:
    """Show what would be requeued or cancelled; do it when the form says that the person is sure."""
    verb = VERBS.get(visit.place["verb"])
    if verb is None:
        raise NotFound("there is no such way to change jobs")
    wanted, before_id = read_filter(_field(visit)), read_id(visit.form.get("before", ""))
    if visit.form.get("sure") != "yes":
        return await _ask(visit, verb, wanted, before_id)
    async with visit.connection.transaction():
        bulk = await verb.change(visit.connection, wanted, before_id=before_id, limit=STEP, is_dry_run=False)
    get_logger().info("admin.jobs_changed", verb=verb.name, jobs=len(bulk.ids), kind=wanted.kind, queue=wanted.queue)
    if bulk.next_id is not None:
        return await _ask(visit, verb, wanted, bulk.next_id, done=len(bulk.ids))
    named = {name: value for name in ("kind", "queue") if (value := getattr(wanted, name))}
    return visit.send_to("/admin/jobs", status=verb.status, done=verb.name, n=str(len(bulk.ids) or ""), **named)


async def _ask(visit: Visit, verb: Verb, wanted: Filter, before_id: int | None, done: int | None = None) -> Response:
    bulk = await verb.change(visit.connection, wanted, before_id=before_id, limit=STEP, is_dry_run=True)
    sample = await list_jobs(visit.connection, replace(wanted, status=verb.status), before_id=before_id, limit=SAMPLE)
    return visit.render(
        "bulk.html",
        verb=verb,
        wanted=wanted,
        filters=_filters(wanted),
        number=len(bulk.ids),
        is_more=bulk.next_id is not None,
        sample=sample.rows,
        before_id=before_id,
        done=done,
    )
