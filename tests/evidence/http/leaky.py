"""Handlers that fail with every secret of the process in their mouths, as careless code does."""

import os
from dataclasses import dataclass

from app.jobs import Job, Kind, Permanent, RetryAfter, Snooze

SECRETS = "LEAKY_SECRETS"


@dataclass
class Order:
    """A payload with a shape that the canary does not have."""

    number: int


def told() -> list[str]:
    """Return each secret, bare and inside the addresses that hold it."""
    return os.environ[SECRETS].split("\n")


async def one_by_one(job: Job) -> None:
    """Fail with one secret: which one, the payload says."""
    raise RuntimeError(f"could not use {told()[job.payload['number']]}: refused")


async def permanently(job: Job) -> None:
    raise Permanent(f"this will not do: {told()[job.payload['number']]}")


async def later(job: Job) -> None:
    raise RetryAfter(3600, f"come back with {told()[job.payload['number']]}")


async def from_within(job: Job) -> None:
    """End the program with a group of errors behind it."""
    text = told()[job.payload["number"]]
    group = ExceptionGroup(text, [ValueError(text), KeyError(text)])
    raise SystemExit(str(group.exceptions)) from group


def in_a_thread(job: Job) -> None:
    raise OSError(2, told()[job.payload["number"]], told()[job.payload["number"]])


async def quietly(job: Job) -> None:
    """Fail without a word about the payload."""
    raise LookupError("not there")


async def asleep(job: Job) -> None:
    raise Snooze(3600, told()[job.payload["number"]])


HANDLERS = {
    "leaky.one_by_one": Kind(one_by_one),
    "leaky.permanently": Kind(permanently),
    "leaky.later": Kind(later),
    "leaky.from_within": Kind(from_within),
    "leaky.in_a_thread": Kind(in_a_thread),
    "leaky.asleep": Kind(asleep),
    "leaky.quietly": Kind(quietly),
    "leaky.order": Kind(quietly, payload=Order),
}
