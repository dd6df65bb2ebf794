"""Putting work in: one row or many, always on the caller's connection and so inside the caller's transaction.

order committed = job exists; rolled back = job gone
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import datetime
from itertools import islice
from typing import Any

import asyncpg
from pydantic_core import from_json

from app.db import Connection
from app.errors import BadInput
from app.jobs.copying import columns_of, copy_in

PAYLOAD_BYTES = 262_144
CHUNK = 10_000
FEW = 250
SHALLOW = 150
ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"))
NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


@dataclass(frozen=True, slots=True)
class NewJob:
    """One job to enqueue; times are aware datetimes, None for *run_at* is now."""

    kind: str
    payload: Any = None
    dedupe_key: str | None = None
    queue: str = "default"
    priority: int = 0
    run_at: datetime | None = None
    expires_at: datetime | None = None
    max_attempts: int = 8
    text: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", payload_text(self.payload))
        if self.run_at is not None:
            _check_moment("run_at", self.run_at)
        if self.expires_at is not None:
            _check_moment("expires_at", self.expires_at)


def _check_moment(name: str, moment: Any) -> None:
    if not isinstance(moment, datetime):
        raise BadInput(f"{name} must be a datetime")
    if moment.utcoffset() is None:
        raise BadInput(f"{name} needs a time zone: a time without one is nobody's time")


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The row that now holds the work: *is_new* is False when its dedupe_key was there before."""

    id: int
    is_new: bool


ENQUEUE = """
    SELECT id, is_new
    FROM enqueue_job(
        $1, $2, dedupe_key => $3, run_at => $4, queue => $5, priority => $6, expires_at => $7, max_attempts => $8
    )
"""


async def enqueue(
    connection: Connection,
    kind: str,
    payload: Any = None,
    *,
    dedupe_key: str | None = None,
    queue: str = "default",
    priority: int = 0,
    run_at: datetime | None = None,
    expires_at: datetime | None = None,
    max_attempts: int = 8,
) -> Enqueued:
    """Insert one job in the transaction of *connection* and return its row, or the row that holds its *dedupe_key*.

    *payload* is a JSON object: a mapping, a dataclass or a pydantic model. Raise BadInput for what no row may hold.
    """
    job = NewJob(kind, payload, dedupe_key, queue, priority, run_at, expires_at, max_attempts)
    return await _insert(connection, job)


async def _insert(connection: Connection, job: NewJob) -> Enqueued:
    try:
        row = await connection.fetchrow(
            ENQUEUE,
            job.kind,
            job.text,
            job.dedupe_key,
            job.run_at,
            job.queue,
            job.priority,
            job.expires_at,
            job.max_attempts,
        )
    except REFUSALS as error:
        raise BadInput(_why(error)) from error
    assert row is not None  # noqa: S101 - a function with OUT columns returns one row
    return Enqueued(row["id"], row["is_new"])


# Ids are drawn before the insert, so that each input row finds its own again; the sequence is looked up once, not once
# for each row. A key that was there before, or comes twice in a batch, gives no id: HOLDERS then says which row has it.
# A column in which nobody says anything comes empty: unnest fills it with NULL, and a sixth of the time is spared.
ENQUEUE_MANY = """
    WITH input AS MATERIALIZED (
        SELECT ord, nextval((SELECT pg_get_serial_sequence('jobs', 'id')::regclass)) AS id, kind, payload, dedupe_key,
            queue, priority, run_at, expires_at, max_attempts
        FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[])
            WITH ORDINALITY
            AS item (kind, payload, dedupe_key, queue, priority, run_at, expires_at, max_attempts, ord)
    ),
    added AS (
        INSERT INTO jobs (id, kind, payload, dedupe_key, queue, priority, run_at, expires_at, max_attempts)
        SELECT id, kind, payload::jsonb, dedupe_key, coalesce(queue, 'default'), coalesce(priority::smallint, 0),
            coalesce(run_at::timestamptz, now()), expires_at::timestamptz, coalesce(max_attempts::int, 8)
        FROM input
        ORDER BY ord
        ON CONFLICT (dedupe_key) DO NOTHING
        RETURNING id
    )
    SELECT added.id
    FROM input LEFT JOIN added ON added.id = input.id
    ORDER BY input.ord
"""


async def enqueue_many(connection: Connection, jobs: Iterable[NewJob]) -> list[Enqueued]:
    """Insert *jobs* in the transaction of *connection* and return one result for each, in the order given.

    All or nothing, in a transaction of its own when the caller has none. A generator of jobs is run beside the
    database, some thousands ahead of it: many are then enqueued in less time, and are never in memory as a whole.
    Raise BadInput when any job is refused, and what the generator raises.
    """
    source = iter(jobs)
    chunk = await _next_chunk(source)
    if len(chunk.jobs) < CHUNK:
        return await _insert_chunk(connection, chunk)
    results: list[Enqueued] = []
    async with connection.transaction():
        while chunk.jobs:
            inserting = asyncio.create_task(_insert_chunk(connection, chunk))
            try:
                chunk = await _next_chunk(source)
            except asyncio.CancelledError:
                inserting.cancel()
                raise
            finally:  # whatever happens, nothing uses the connection any more when this function ends
                results += await inserting
    return results


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Jobs that go in together; *columns* are as COPY takes them, None when it would not do."""

    jobs: Sequence[NewJob]
    columns: dict[str, list[Any]] | None


async def _next_chunk(source: Iterator[NewJob]) -> _Chunk:
    """Take a chunk, a few jobs at a time: between them the database is heard, and others have their turn."""
    jobs: list[NewJob] = []
    while len(jobs) < CHUNK and (few := list(islice(source, FEW))):
        jobs += few
        await asyncio.sleep(0)
    return _Chunk(jobs, columns_of(jobs))


async def _insert_chunk(connection: Connection, chunk: _Chunk) -> list[Enqueued]:
    if chunk.columns is not None and (ids := await copy_in(connection, chunk.columns)) is not None:
        return [Enqueued(job_id, is_new=True) for job_id in ids]
    jobs = chunk.jobs
    if not jobs:
        return []
    try:
        rows = await connection.fetch(
            ENQUEUE_MANY,
            [job.kind for job in jobs],
            [job.text for job in jobs],
            _said([job.dedupe_key for job in jobs], None, _as_is),
            _said([job.queue for job in jobs], "default", _as_is),
            _said([job.priority for job in jobs], 0, str),
            _said([job.run_at for job in jobs], None, datetime.isoformat),
            _said([job.expires_at for job in jobs], None, datetime.isoformat),
            _said([job.max_attempts for job in jobs], 8, str),
        )
    except REFUSALS as error:
        raise BadInput(_why(error)) from error
    added = [row[0] for row in rows]
    if None not in added:
        return [Enqueued(job_id, is_new=True) for job_id in added]
    return await _with_holders(connection, jobs, added)


HOLDERS = """
    SELECT dedupe_key, id
    FROM jobs
    WHERE dedupe_key = ANY ($1::text[])
"""


async def _with_holders(connection: Connection, jobs: Sequence[NewJob], added: Sequence[int | None]) -> list[Enqueued]:
    """Give each job that was not *added* the row that holds its key."""
    keys = [job.dedupe_key for job, job_id in zip(jobs, added, strict=True) if job_id is None]
    holders = {row["dedupe_key"]: row["id"] for row in await connection.fetch(HOLDERS, keys)}
    results = []
    for job, job_id in zip(jobs, added, strict=True):
        if job_id is not None:
            results.append(Enqueued(job_id, is_new=True))
        elif job.dedupe_key in holders:
            results.append(Enqueued(holders[job.dedupe_key], is_new=False))
        else:  # the row that held it has gone meanwhile, or this transaction's snapshot does not see it
            results.append(await _insert(connection, job))
    return results


REFUSALS = (
    asyncpg.CheckViolationError,
    asyncpg.DataError,
    asyncpg.NotNullViolationError,
    asyncpg.UntranslatableCharacterError,
    asyncpg.StatementTooComplexError,
)


def _why(error: Exception) -> str:
    """Say which rule refused the row: the name of a CHECK is its sentence."""
    rule = getattr(error, "constraint_name", None)
    return rule.replace("_", " ") if rule else "a value does not fit its column"


def _said(values: Sequence[Any], usual: Any, as_text: Callable[[Any], str]) -> list[str | None]:
    """Return *values* as text, or none at all when each of them is the *usual* one.

    None, where it is not usual, becomes what no such column takes: it must not pass for the usual value.
    """
    if values.count(usual) == len(values):
        return []
    nothing = None if usual is None else ""
    return [nothing if value is None else as_text(value) for value in values]


def _as_is(value: str) -> str:
    return value  # whether it is text at all, the driver says


def payload_text(payload: Any) -> str:
    """Return *payload* as JSON text, at most 256 KiB; raise BadInput for what PostgreSQL or a reader could not hold."""
    try:
        text = ENCODER.encode(payload if type(payload) is dict else _as_mapping(payload))
        size = len(text) if text.isascii() else len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"the payload is not JSON: {type(error).__name__}") from error
    if size > PAYLOAD_BYTES:
        raise BadInput(f"the payload is {size} bytes long; at most {PAYLOAD_BYTES} are taken")
    if "\\u0000" in text and NUL.search(text):
        raise BadInput("the payload holds a NUL, which PostgreSQL cannot store")
    if text.count("{") + text.count("[") > SHALLOW and not _is_readable(text):
        raise BadInput("the payload is nested so deeply that no handler could read it")
    return text


def _is_readable(text: str) -> bool:
    """Say whether what decodes a job's payload before it runs can read *text*: its depth has a limit."""
    try:
        from_json(text)
    except ValueError:
        return False
    return True


def _as_mapping(payload: Any) -> dict[Any, Any]:
    if payload is None:
        return {}
    if hasattr(payload, "model_dump"):
        payload = payload.model_dump(mode="json")
    elif is_dataclass(payload) and not isinstance(payload, type):
        payload = asdict(payload)
    if not isinstance(payload, Mapping):
        raise BadInput("a payload is a JSON object")
    return dict(payload)
