"""One order's world: what was put into it, what was seen at its far side, and the kinds that are run in it.

The far side is a recording e-mail channel and handlers of every temper; each effect outside is a step of its own.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from app.bookings.book import NewBooking, put_booking
from app.channels import Message
from app.errors import MaybeSent, NotSent, RecipientRefused
from app.handlers import HANDLERS
from app.jobs import Exponential, Job, Kind, NewJob, Permanent, Snooze, Steps, enqueue_many
from app.jobs.services import Services
from app.summary import Summary
from tests.evidence.explorer.scheduler import ACTOR, Actor, Scheduler
from tests.evidence.explorer.stage import Stage

AGAIN = Steps(0, 0, 0, 0, 0, 0, 0, 0)


class Oddity(BaseException):
    """What no handler should raise."""


@dataclass(frozen=True)
class Sent:
    """A message that reached the far side: by whom, and at which step."""

    key: str
    actor: Actor | None
    at: int


@dataclass(eq=False)
class World:
    """All that one order's checker needs to know beside the database."""

    rng: random.Random
    stage: Stage
    scheduler: Scheduler
    now: datetime
    ambiguous: str = "retry"
    honours_key: bool = False
    troubles: tuple[str, ...] = ()
    sent: list[Sent] = field(default_factory=list)
    starts: list[tuple[int, int]] = field(default_factory=list)
    summaries: list[Summary] = field(default_factory=list)
    enqueued: set[int] = field(default_factory=set)
    booked: list[tuple[int, str, str, datetime]] = field(default_factory=list)
    overruns: Counter[int] = field(default_factory=Counter)
    wins: list[tuple[int, int]] = field(default_factory=list)
    claims: list[tuple[int, int, int]] = field(default_factory=list)
    heard: list[tuple[int, int, int]] = field(default_factory=list)
    keyed: list[tuple[str, int]] = field(default_factory=list)
    maybes: int = 0
    by_hand: bool = False
    offsets: tuple[timedelta, ...] = (timedelta(hours=24),)
    kinds: dict[str, Kind] = field(default_factory=dict)

    def services(self, **overrides: Any) -> Services:
        """Return a process of its own."""
        return self.stage.services(self.kinds, ambiguous_send=self.ambiguous, **overrides)

    def start(self, hours: float) -> datetime:
        """Return the time *hours* from the order's beginning."""
        return self.now + timedelta(hours=hours)

    async def book(self, connection: Any, booking_id: str, hours: float) -> None:
        """Put a confirmed booking, and note from which step on it stands."""
        self.stands(booking_id, "confirmed", await self.put(connection, booking_id, hours))

    async def put(self, connection: Any, booking_id: str, hours: float) -> datetime:
        """Put a confirmed booking in the transaction of *connection*, and return its start."""
        starts_at = self.start(hours)
        email = f"{booking_id}@example.org"
        await put_booking(connection, NewBooking(id=booking_id, starts_at=starts_at, attendee_email=email))
        return starts_at

    def stands(self, booking_id: str, status: str, starts_at: datetime) -> None:
        """Note that from the next step on the booking stands so for everybody."""
        self.booked.append((self.scheduler.index, booking_id, status, starts_at))

    async def enqueue(self, *jobs: NewJob) -> list[int]:
        """Enqueue before the order begins."""
        ids = [row.id for row in await enqueue_many(self.stage.admin, jobs)]
        self.enqueued.update(ids)
        return ids

    async def outside(self, name: str) -> int:
        """Wait for the turn of an effect outside the database and return its step."""
        async with self.scheduler.turn(name) as step:
            return self.scheduler.index if step is None else step.index


class Recorder:
    """The far side of the e-mail channel: it notes what reaches it, and is in trouble as often as the order says."""

    name = "email"

    def __init__(self) -> None:
        self.world: World | None = None

    @property
    def honours_key(self) -> bool:
        """Whether a second send under one key is the same send."""
        return self.world is not None and self.world.honours_key

    async def send(self, _message: Message, key: str) -> str | None:
        """Note the message, or say why it did not go out."""
        world = self.world
        assert world is not None
        at = await world.outside("send")
        trouble = world.rng.choice(world.troubles) if world.troubles else ""
        if trouble == "not sent":
            raise NotSent("busy", 0)
        if trouble == "refused":
            raise RecipientRefused("no such mailbox")
        world.sent.append(Sent(key, ACTOR.get(), at))
        if trouble == "maybe":
            world.maybes += 1
            raise MaybeSent("the answer was lost")
        return f"id-{at}"


def kinds_of(world: Callable[[], World]) -> dict[str, Kind]:
    """Return our own kind and those of every temper; *world* gives the order under way."""

    async def begin(job: Job) -> None:
        world().starts.append((job.id, job.fence))
        await world().outside(f"begin {job.kind}")

    async def note(job: Job) -> None:
        await begin(job)

    async def effect(job: Job) -> None:
        await begin(job)
        async with job.completing() as connection:
            await connection.execute("INSERT INTO evidence.effects (job_id) VALUES ($1)", job.id)

    async def flaky(job: Job) -> None:
        await begin(job)
        if job.attempts - job.crashes <= job.payload.get("failures", 1):
            raise RuntimeError("not yet")

    async def hopeless(job: Job) -> None:
        await begin(job)
        raise Permanent("never")

    async def sleepy(job: Job) -> None:
        await begin(job)
        if sum(1 for job_id, _ in world().starts if job_id == job.id) < 2:
            raise Snooze(0)

    async def odd(job: Job) -> None:
        await begin(job)
        raise asyncio.CancelledError if job.payload.get("cancels") else Oddity

    handlers = {"note": note, "effect": effect, "flaky": flaky, "hopeless": hopeless, "sleepy": sleepy, "odd": odd}
    ours = {name: Kind(kind.handler, kind.payload, kind.timeout, AGAIN) for name, kind in HANDLERS.items()}
    return (
        ours
        | {name: Kind(handler, retry=AGAIN) for name, handler in handlers.items()}
        | {"later": Kind(note, retry=Exponential())}
    )
