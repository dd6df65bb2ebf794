"""Where the model meets the product: one database, one loop, and a far side whose troubles are named in advance."""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar
from unittest.mock import patch

import asyncpg

from app.channels import Message
from app.config import Settings
from app.db import Database
from app.errors import ChannelSuspended, MaybeSent, NotSent, RecipientRefused
from app.handlers import booking_reminder
from app.jobs import Job, Kind, Steps
from app.jobs.queue import Claimed, Verdict
from app.jobs.runner import Ending, judge, perform
from app.jobs.services import Services

SUSPENDED_SECONDS = 600.0
TROUBLES = {
    "not sent": NotSent("busy", 0),
    "refused": RecipientRefused("no such mailbox"),
    "maybe": MaybeSent("the answer was lost"),
    "suspended": ChannelSuspended("over quota", SUSPENDED_SECONDS),
}
FAILED = Kind(booking_reminder.remind, retry=Steps(0, 0))
REMINDER = Kind(booking_reminder.remind, payload=booking_reminder.Reminder, retry=Steps(0, 0))
SAME = ("id", "kind", "queue", "attempts", "max_attempts", "crashes", "fence", "created_at")
CLEAN = "DELETE FROM jobs; DELETE FROM bookings; DELETE FROM reminders; DELETE FROM channels; DELETE FROM ticks"
Answer = TypeVar("Answer")


@dataclass
class FarSide:
    """The e-mail channel: what reached it, and what troubles it now."""

    name: str = "email"
    honours_key: bool = False
    trouble: str = ""
    sent: Counter[str] = field(default_factory=Counter)

    async def send(self, message: Message, _key: str) -> str | None:
        """Count the message, or fail as it was told to."""
        if self.trouble in ("", "maybe"):
            self.sent[message.to.partition("@")[0]] += 1
        if self.trouble:
            raise TROUBLES[self.trouble]
        return None


@dataclass
class Bench:
    """One connection for all rules, and a pool for the handler."""

    runner: asyncio.Runner
    connection: Any
    database: Database
    far: FarSide
    now: datetime

    def wait(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Run *work* to its end."""
        return self.runner.run(work)

    def execute(self, sql: str, *args: Any) -> None:
        """Move rows where a test moves time."""
        self.wait(self.connection.execute(sql, *args))

    def fetch(self, sql: str, *args: Any) -> list[Any]:
        """Look at rows."""
        rows: list[Any] = self.wait(self.connection.fetch(sql, *args))
        return rows

    def clean(self) -> None:
        """Empty the tables and the far side."""
        self.execute(CLEAN)
        self.far.sent.clear()
        self.now = self.fetch("SELECT now() AS now")[0]["now"]

    def at(self, hours: float) -> datetime:
        """Return the time *hours* from the beginning."""
        return self.now + timedelta(hours=hours)

    def hours(self, moment: datetime) -> float:
        """Return it as hours from the beginning."""
        return (moment - self.now) / timedelta(hours=1)

    def remind(self, claimed: Claimed, trouble: str, *, is_hold: bool) -> Verdict:
        """Run the product's own handler for a claimed job and judge its end."""
        self.far.trouble = trouble
        values: dict[str, Any] = {
            "reminder_offsets": (timedelta(hours=24), timedelta(hours=1)),
            "ambiguous_send": "hold" if is_hold else "retry",
        }
        settings = Settings(**values)
        services = Services(settings, self.database, asyncio.Event(), {})
        job = Job(**{name: getattr(claimed, name) for name in SAME}, payload=None, services=services)
        verdict = judge(claimed, REMINDER, Ending(self.wait(perform(job, REMINDER, claimed.payload))))
        assert verdict is not None
        return verdict


@contextmanager
def open_bench(dsn: str) -> Iterator[Bench]:
    """Open a bench on the fresh database *dsn* until the block ends."""
    far = FarSide()
    with asyncio.Runner() as runner, patch.object(booking_reminder, "open_email", lambda _settings: far):
        connection = runner.run(asyncpg.connect(dsn))
        bench = Bench(runner, connection, Database(dsn), far, runner.run(connection.fetchval("SELECT now()")))
        try:
            yield bench
        finally:
            runner.run(bench.database.close())
            runner.run(connection.close())
