"""POST /api/jobs: work from producers that do not share the database.

One job, or a batch in one transaction. A dedupe_key that the producer makes is what lets it repeat a call
whose answer was lost: the second one finds the row of the first.
"""

from datetime import datetime, timedelta
from typing import Annotated, Any, Self

from fastapi import APIRouter
from pydantic import Discriminator, Field, Tag, model_validator
from starlette.responses import JSONResponse

from app.db import Connection
from app.jobs import Enqueued, NewJob, enqueue_many
from app.web.deps import Here
from app.web.fields import Body, Instant, Name
from app.web.guard import GuardedRoute
from app.web.problems import RESPONSES

BATCH = 1_000
DELAY_SECONDS = 10 * 366 * 86_400

router = APIRouter(route_class=GuardedRoute, responses=RESPONSES)


class JobRequest(Body):
    """One job: due at once, at *run_at*, or *delay_seconds* from now by the database's clock."""

    kind: Name
    payload: dict[str, Any] = Field(default_factory=dict)
    dedupe_key: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    queue: Name = "default"
    priority: int = Field(default=0, ge=-1, le=1)
    run_at: Instant | None = None
    delay_seconds: float | None = Field(default=None, ge=0, le=DELAY_SECONDS, allow_inf_nan=False)
    expires_at: Instant | None = None
    max_attempts: int = Field(default=8, ge=1, le=1000)

    @model_validator(mode="after")
    def _one_time(self) -> Self:
        if self.run_at is not None and self.delay_seconds is not None:
            raise ValueError("give run_at or delay_seconds, not both")
        return self


class Batch(Body):
    """Up to 1,000 jobs that are enqueued together, or not at all."""

    jobs: list[JobRequest] = Field(min_length=1, max_length=BATCH)


def _sort(body: Any) -> str:
    return "batch" if isinstance(body, dict) and "jobs" in body else "job"


OneOrMany = Annotated[
    Annotated[JobRequest, Tag("job")] | Annotated[Batch, Tag("batch")],
    Discriminator(_sort),
]


@router.post("/api/jobs", response_model=None)
async def post_jobs(services: Here, asked: OneOrMany) -> JSONResponse:
    """Enqueue one job or a batch: 201 when a row is new, 200 when all were there, in the order sent."""
    requests = asked.jobs if isinstance(asked, Batch) else [asked]
    async with services.database.acquire() as connection, connection.transaction():
        results = await _enqueue(connection, requests)
    answers = [{"id": result.id, "is_new": result.is_new} for result in results]
    status = 201 if any(result.is_new for result in results) else 200
    return JSONResponse({"jobs": answers} if isinstance(asked, Batch) else answers[0], status)


NOW = """
    SELECT now()
"""


async def _enqueue(connection: Connection, requests: list[JobRequest]) -> list[Enqueued]:
    is_delayed = any(request.delay_seconds is not None for request in requests)
    now = await connection.fetchval(NOW) if is_delayed else None
    return await enqueue_many(connection, [_new_job(request, now) for request in requests])


def _new_job(request: JobRequest, now: datetime | None) -> NewJob:
    run_at = request.run_at
    if now is not None and request.delay_seconds is not None:
        run_at = now + timedelta(seconds=request.delay_seconds)
    return NewJob(
        kind=request.kind,
        payload=request.payload,
        dedupe_key=request.dedupe_key,
        queue=request.queue,
        priority=request.priority,
        run_at=run_at,
        expires_at=request.expires_at,
        max_attempts=request.max_attempts,
    )
