"""The lanes of a tick and of a worker: which queues each claims from, how far its batch goes, how many run at once.

reminders   the queue `reminders`, nearest start first
jobs        the other queues that this process serves, each claim beginning with the next of them
suspects    what has crashed before: one at a time, from either
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.db import Connection
from app.jobs import queue
from app.jobs.crew import Crew
from app.jobs.pump import Counts, Lane
from app.summary import REMINDERS, Budget


@dataclass(eq=False)
class Rota:
    """The *queues* that a process serves, in turns, so that none can starve the others."""

    queues: list[str]

    def turn(self) -> list[str]:
        """Return the queues, each time beginning with the next."""
        self.queues = self.queues[1:] + self.queues[:1]
        return self.queues


def reminder_lane(crew: Crew, counts: Counts, batch: int | None, poll_seconds: float | None = None) -> Lane:
    """Return the lane of reminders, endless when *batch* is None."""
    settings = crew.services.settings

    async def nearest(connection: Connection, kinds: Sequence[str], limit: int) -> list[queue.Claimed]:
        return await queue.claim_reminders(connection, kinds, limit, settings.lease_seconds)

    return Lane(crew, nearest, counts, settings.reminder_concurrency, batch, poll_seconds=poll_seconds)


def job_lane(crew: Crew, counts: Counts, rota: Rota, batch: int | None, poll_seconds: float | None = None) -> Lane:
    """Return the lane of all other queues, endless when *batch* is None."""
    settings = crew.services.settings

    async def oldest(connection: Connection, kinds: Sequence[str], limit: int) -> list[queue.Claimed]:
        return await queue.claim(connection, rota.turn(), kinds, limit, settings.lease_seconds)

    return Lane(crew, oldest, counts, settings.job_concurrency, batch, poll_seconds=poll_seconds)


def tick_lanes(
    crew: Crew, counts: Counts, rota: Rota, budget: Budget, *, kept: int, has_jobs: bool, has_reminders: bool
) -> dict[str, Lane]:
    """Return by name the lanes that have something to do; of each batch *kept* places stay free, or half of it."""
    lanes = {}
    if has_reminders:
        lanes[REMINDERS] = reminder_lane(crew, counts, budget.reminders - min(kept, budget.reminders // 2))
    if has_jobs:
        lanes["jobs"] = job_lane(crew, counts, rota, budget.jobs - min(kept, budget.jobs // 2))
    return lanes


def suspect_lane(crew: Crew, counts: Counts, queues: Sequence[str], batch: int) -> Lane:
    """Return the lane of what has crashed before in *queues*: each runs with no neighbour."""
    lease = crew.services.settings.lease_seconds

    async def one(connection: Connection, kinds: Sequence[str], _limit: int) -> list[queue.Claimed]:
        return await queue.claim_suspect(connection, queues, kinds, lease)

    return Lane(crew, one, counts, 1, batch, is_solo=True)
