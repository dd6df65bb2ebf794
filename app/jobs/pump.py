"""One lane: claim what can start now, run it, and stop for one of four reasons.

    claim -> waiting -> start -> (ends) -> claim again       empty | batch | deadline | shutdown

How far a claim looks ahead follows what the lane has seen: as many jobs as will start within a quarter of a second.
Slow jobs are claimed one by one, quick ones by the hundred. A claim runs beside the jobs, and beside the settlement of
those before them: neither waits for the other.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from app.db import Connection
from app.jobs.crew import Crew, Run
from app.jobs.hands import Hands
from app.jobs.queue import Claimed

LOOKAHEAD_SECONDS = 0.25
LOOKAHEAD_MOST = 2000
CLAIM_MOST = 1000
START_SLACK_SECONDS = 0.3
RECLAIM_SECONDS = 1.0
Claim = Callable[[Connection, Sequence[str], int], Awaitable[list[Claimed]]]


class Counts(Protocol):
    """Who keeps the lane's books: a tick's summary, or a worker's."""

    def claim(self, claimed: list[Claimed]) -> None:
        """Count rows that were claimed."""

    def report(self, claimed: Claimed, outcome: str, note: str | None) -> None:
        """Count how one of them ended."""


@dataclass(eq=False)
class Lane:
    """A queue's share of a tick: *claim* takes (connection, kinds, limit); *batch* None is a worker's endless lane.

    *is_solo* runs one job at a time and settles each before the next is claimed. *poll_seconds* is how often a
    worker's empty lane looks again; None ends the lane when it is empty.
    """

    crew: Crew
    claim: Claim
    counts: Counts
    concurrency: int
    batch: int | None
    is_solo: bool = False
    poll_seconds: float | None = None
    claimed: int = 0
    _waiting: deque[Run] = field(default_factory=deque)
    _running: set[Run] = field(default_factory=set)
    _hands: Hands = field(init=False)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _looking: asyncio.Task[None] | None = None
    _is_drained: bool = False
    _has_ended: bool = False
    _looked_at: float = 0.0
    _mean: float | None = None

    def __post_init__(self) -> None:
        self._hands = Hands(self.crew, self._take, self._places)

    @property
    def is_idle(self) -> bool:
        """Whether it holds no job, and is not about to."""
        return not self._running and not self._waiting and self._looking is None

    async def pump(self) -> str:
        """Run the lane until it must stop; return why: empty, batch, deadline or shutdown. All is settled then."""
        self.crew.wake.add(self._changed)
        try:
            reason = await self._work()
        except Exception:
            await self._finish()  # a claim failed: what it left running still ends and is settled
            raise
        else:
            await self._finish()
        finally:
            if self._looking is not None:
                self._looking.cancel()
        return reason

    async def _finish(self) -> None:
        if self._looking is not None:
            await asyncio.wait({self._looking})
        self._release_waiting()
        while self._running:
            await self._until_change(None)
        await self.crew.settler.drain()
        self._end_look()

    def _release_waiting(self) -> None:
        while self._waiting:
            self.crew.give_up(self._waiting.popleft())

    async def _work(self) -> str:
        while True:
            self._changed.clear()
            self._end_look()
            reason = self._stop_reason()
            if reason is not None:
                return reason
            if self.crew.is_paused and not self.is_solo:
                self._release_waiting()
            elif self._may_look():
                self._begin_look()  # before any hand: the database is then at work beside them
            elif self._is_empty() and self.poll_seconds is None:
                return "empty"
            self._hands.bring()
            await self._until_change(self._patience())

    def _stop_reason(self) -> str | None:
        if self.crew.is_stopping:
            return "shutdown"
        if self._waiting:
            return None
        if self.batch is not None and self.claimed >= self.batch:
            return "batch"
        return None if self._kinds() else "deadline"

    def _kinds(self) -> list[str]:
        """Name the kinds whose timeout still fits before the deadline."""
        return [name for name, kind in self.crew.kinds.items() if self._fits(kind.timeout)]

    def _fits(self, timeout: float) -> bool:
        until = self.crew.until
        return until is None or time.monotonic() + timeout <= until + START_SLACK_SECONDS

    def _room(self) -> int:
        """Return how many more rows can start now, or so soon that a claim of their own would cost more."""
        free = min(self.concurrency - len(self._running) + self._lookahead() - len(self._waiting), CLAIM_MOST)
        return free if self.batch is None else min(free, self.batch - self.claimed)

    def _lookahead(self) -> int:
        if self._mean is None or self.is_solo:
            return 0
        return min(int(self.concurrency * LOOKAHEAD_SECONDS / max(self._mean, 1e-6)), LOOKAHEAD_MOST)

    def _may_look(self) -> bool:
        if self._looking is not None or self._room() <= 0 or len(self._waiting) > self._lookahead() // 2:
            return False
        if not self._is_drained:
            return True
        return time.monotonic() - self._looked_at >= (self.poll_seconds or RECLAIM_SECONDS)

    def _is_empty(self) -> bool:
        return self._is_drained and self.is_idle

    def _patience(self) -> float | None:
        """Return how long to wait for a change before looking at the queue again."""
        return (self.poll_seconds or RECLAIM_SECONDS) if self._is_drained and self._looking is None else None

    def _begin_look(self) -> None:
        self._has_ended = False
        self._looking = asyncio.create_task(self._look(self._room()))
        self._looking.add_done_callback(self._looked)

    def _looked(self, looking: asyncio.Task[None]) -> None:
        if not looking.cancelled():
            looking.exception()  # asked for here, so that a lane that was cut leaves no warning; raised in _end_look
        self._changed.set()

    def _end_look(self) -> None:
        """Put a claim that has ended behind us; raise what it raised."""
        looking = self._looking
        if looking is not None and looking.done():
            self._looking = None
            looking.result()

    async def _look(self, room: int) -> None:
        if self.is_solo:
            await self.crew.settler.drain()
        self._looked_at = time.monotonic()
        async with self.crew.link.acquire() as connection:
            rows = await self.claim(connection, self._kinds(), room)
        self.claimed += len(rows)
        # A handler may enqueue: the lane is drained only when nothing ended since it last looked in vain.
        self._is_drained = len(rows) < room and (not self._has_ended or bool(self._running or self._waiting))
        self.counts.claim(rows)
        for row in rows:
            kind = self.crew.kinds[row.kind]
            self._waiting.append(self.crew.take(row, kind, self.counts.report, self._ended, self._looked_at))

    def _places(self) -> int:
        """Return how many of those that wait may start now."""
        return min(len(self._waiting), self.concurrency - len(self._running)) if self._may_start() else 0

    def _take(self) -> Run | None:
        """Give the next run to a hand; one that no longer fits before the deadline goes back."""
        while self._waiting and len(self._running) < self.concurrency and self._may_start():
            run = self._waiting.popleft()
            if self._fits(run.kind.timeout) and self.crew.is_held(run):
                self._running.add(run)
                if not self._waiting:
                    self._changed.set()  # places may have come free while these were claimed
                return run
            self.crew.give_up(run)
            self._changed.set()  # nothing else would tell that this one waits no more
        return None

    def _may_start(self) -> bool:
        crew = self.crew
        return not crew.is_stopping and not crew.is_over and (self.is_solo or not crew.is_paused)

    def _ended(self, run: Run) -> None:
        self._running.discard(run)
        self._has_ended = True
        if not self._running and not self._waiting:
            self._is_drained = False
        took = run.ended_at - run.started
        self._mean = took if self._mean is None else 0.8 * self._mean + 0.2 * took
        self._changed.set()

    async def _until_change(self, seconds: float | None) -> None:
        """Sleep until a job ends, the process is stopping, or *seconds* have passed."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return
        finally:
            self._changed.clear()
