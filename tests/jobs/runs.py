"""Kinds and claimed rows for what needs no database: the judge, and the crew."""

from typing import Any

from app.jobs import Job, Kind
from app.jobs.queue import Claimed


async def nothing(_job: Job) -> None:
    """Be done at once."""


def kind_of(handler: Any = nothing, **said: Any) -> Kind:
    """Return a kind, of which only what matters to the test is said."""
    return Kind(handler, **said)


def claimed_row(**said: Any) -> Claimed:
    """Return a row as a claim gives it, at its first attempt."""
    values: dict[str, Any] = {
        "id": 1,
        "fence": 1,
        "kind": "toy",
        "queue": "default",
        "payload": "{}",
        "attempts": 1,
        "max_attempts": 8,
        "crashes": 0,
        "created_at": 1_924_992_000.0,
        "late_seconds": 0.0,
    }
    return Claimed(**values | said)
