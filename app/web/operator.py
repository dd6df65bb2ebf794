"""/api/admin: the operator's desk over HTTP, for a script or `dormouse … --url`; ADMIN_TOKEN opens it and nothing else.

GET  /api/admin/jobs                   a page, newest first; filters: status, kind, queue, error, since, until
GET  /api/admin/jobs/{id}              one, whole        GET  …/why       every rule and what to do
POST /api/admin/jobs/{id}/requeue      a dead one        POST …/cancel    a ready one
POST /api/admin/jobs/requeue           all that fit a filter, a step at a time; dry_run changes nothing
POST /api/admin/jobs/cancel            the same
GET  /api/admin/bookings/{id}/why      why it was reminded of, or not
GET  /api/admin/channels               POST /api/admin/channels/{id}/resume
"""

from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Path, Query
from pydantic import Field, model_validator
from starlette.responses import JSONResponse

from app import desk
from app.jobs.lists import Filter
from app.jobs.operate import BULK
from app.web.deps import Here
from app.web.fields import Body, Instant, Name
from app.web.guard import GuardedRoute
from app.web.problems import RESPONSES

PAGE = 100
ID_MAX = 2**63 - 1
ERROR_CHARS = 500

router = APIRouter(prefix="/api/admin", route_class=GuardedRoute, responses=RESPONSES)

JobId = Annotated[int, Path(ge=1, le=ID_MAX)]
BookingId = Annotated[str, Path(min_length=1, max_length=200)]
ChannelId = Annotated[str, Path(min_length=1, max_length=100)]
Status = Literal["ready", "running", "done", "dead", "cancelled", "expired"]
BeforeId = Annotated[int | None, Query(ge=1, le=ID_MAX)]
Text = Annotated[str | None, Query(min_length=1, max_length=ERROR_CHARS)]
Moment = Annotated[Instant | None, Query()]


class FilterRequest(Body):
    """Which jobs are meant: all that is named must fit."""

    kind: Name | None = None
    queue: Name | None = None
    error: Annotated[str, Field(min_length=1, max_length=ERROR_CHARS)] | None = None
    since: Instant | None = None
    until: Instant | None = None

    def as_filter(self) -> Filter:
        """Return it for the lists."""
        return Filter(kind=self.kind, queue=self.queue, error=self.error, since=self.since, until=self.until)


class BulkRequest(Body):
    """One step over the jobs that fit *filter*: an empty one is taken with *all* alone, *dry_run* must be said."""

    filter: FilterRequest = Field(default_factory=FilterRequest)
    all: bool = False
    dry_run: bool
    before_id: int | None = Field(default=None, ge=1, le=ID_MAX)
    limit: int = Field(default=BULK, ge=1, le=BULK)

    @model_validator(mode="after")
    def _says_which(self) -> Self:
        if self.filter.as_filter().is_empty != self.all:
            raise ValueError("name a filter, or say all: true, and not both")
        return self


@router.get("/jobs", response_model=None)
async def list_jobs(
    services: Here,
    *,
    status: Annotated[Status | None, Query()] = None,
    kind: Text = None,
    queue: Text = None,
    error: Text = None,
    since: Moment = None,
    until: Moment = None,
    before_id: BeforeId = None,
    limit: Annotated[int, Query(ge=1, le=PAGE)] = 50,
) -> JSONResponse:
    """Return a page of jobs and the *before_id* of the next."""
    wanted = Filter(status=status, kind=kind, queue=queue, error=error, since=since, until=until)
    async with services.database.acquire() as connection:
        return JSONResponse(await desk.jobs_page(connection, wanted, before_id=before_id, limit=limit))


@router.post("/jobs/requeue", response_model=None)
async def requeue_many(services: Here, asked: BulkRequest) -> JSONResponse:
    """Requeue dead jobs that fit."""
    return await _change_many(services, "requeue", asked)


@router.post("/jobs/cancel", response_model=None)
async def cancel_many(services: Here, asked: BulkRequest) -> JSONResponse:
    """Cancel ready jobs that fit."""
    return await _change_many(services, "cancel", asked)


async def _change_many(services: Any, verb: str, asked: BulkRequest) -> JSONResponse:
    async with services.database.acquire() as connection, connection.transaction():
        result = await desk.change_many(
            connection,
            verb,
            asked.filter.as_filter(),
            before_id=asked.before_id,
            limit=asked.limit,
            is_dry_run=asked.dry_run,
        )
    return JSONResponse(result)


@router.get("/jobs/{job_id}", response_model=None)
async def show_job(services: Here, job_id: JobId) -> JSONResponse:
    """Return one job whole."""
    async with services.database.acquire() as connection:
        return JSONResponse(await desk.job(connection, job_id))


@router.get("/jobs/{job_id}/why", response_model=None)
async def why_job(services: Here, job_id: JobId) -> JSONResponse:
    """Return every rule that decides over the job."""
    async with services.database.acquire() as connection:
        return JSONResponse(await desk.why_job(connection, job_id, services.settings, services.kinds))


@router.post("/jobs/{job_id}/requeue", response_model=None)
async def requeue_job(services: Here, job_id: JobId) -> JSONResponse:
    """Send a dead job round again."""
    async with services.database.acquire() as connection:
        return JSONResponse(await desk.requeue_job(connection, job_id))


@router.post("/jobs/{job_id}/cancel", response_model=None)
async def cancel_job(services: Here, job_id: JobId) -> JSONResponse:
    """Stop a ready job for good."""
    async with services.database.acquire() as connection:
        return JSONResponse(await desk.cancel_job(connection, job_id))


@router.get("/bookings/{booking_id:path}/why", response_model=None)
async def why_booking(services: Here, booking_id: BookingId) -> JSONResponse:
    """Return every rule that decides over the booking's reminders."""
    async with services.database.acquire() as connection:
        return JSONResponse(await desk.why_booking(connection, booking_id, services.settings))


@router.get("/channels", response_model=None)
async def list_channels(services: Here) -> JSONResponse:
    """Return the channels that were ever suspended."""
    async with services.database.acquire() as connection:
        return JSONResponse(await desk.channels(connection))


@router.post("/channels/{channel_id}/resume", response_model=None)
async def resume_channel(services: Here, channel_id: ChannelId) -> JSONResponse:
    """Open a suspended channel at once."""
    async with services.database.acquire() as connection:
        return JSONResponse(await desk.resume_channel(connection, channel_id))
