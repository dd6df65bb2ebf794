"""Who is at work in one tick: every claimed job, its lease, its time limit, and the way it may be cut short.

    claimed -> waiting -> running -> ended -> settled        cut: timeout, lease lost, or the process is stopping

One heartbeat per interval renews the leases of all. A handler that ignores its cancellation is left behind: its place
is given up, nothing is written for it, and its lease runs out. Timers are set for the handlers that wait for something,
once the loop has its turn again: one that ends without a pause could not be cut anyway.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any

from app.db import DATABASE_ERRORS, Connection, Link
from app.errors import LeaseLost
from app.jobs.job import Job, Kind
from app.jobs.queue import Claimed, Verdict, heartbeat, settle
from app.jobs.retry import Herd
from app.jobs.runner import LEASE_LOST, STOPPED, TIMED_OUT, Ending, judge, perform
from app.jobs.services import Services
from app.jobs.settler import Settler
from app.log import Alike, log_many

CANCEL_GRACE_SECONDS = 0.3
STOP_GRACE_SECONDS = 5.0
NUMBERS = ("job_id", "attempt", "ran_ms")
Report = Callable[[Claimed, str, str | None], None]


@dataclass(eq=False, slots=True)
class Run:
    """One job between claim and settlement; *report* is told its outcome and its note.

    *task* is where its handler runs, None before and after. *ended_at* and the lease's end are monotonic seconds.
    """

    claimed: Claimed
    kind: Kind
    report: Report
    ended: Callable[["Run"], None]
    lease_end: float
    job: Job
    task: asyncio.Task[Any] | None = None
    timer: asyncio.TimerHandle | None = None
    cut: str | None = None
    started: float = 0.0
    ended_at: float = 0.0
    is_left_behind: bool = False

    @property
    def has_waited(self) -> bool:
        """Whether the loop had a turn while the handler ran."""
        return self.timer is not None


@dataclass(eq=False)
class Crew:
    """All runs of one tick, over one link; *until* (monotonic seconds) is the tick's deadline, None for a worker."""

    services: Services
    kinds: Mapping[str, Kind]
    link: Link
    until: float | None
    runs: dict[int, Run] = field(default_factory=dict)
    settler: Settler[Run] = field(init=False)
    errors: list[str] = field(default_factory=list)
    is_stopping: bool = False
    is_paused: bool = False
    is_over: bool = False
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _unarmed: list[Run] = field(default_factory=list)
    _lines: dict[tuple[str, str, str | None, int], list[tuple[int, ...]]] = field(default_factory=dict)
    wake: set[asyncio.Event] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.settler = Settler(self.link, self.until, self._flushed)
        self.context = copy_context()  # what a handler binds in its own must be seen nowhere else
        self._herd = Herd()
        self._secrets = self.services.settings.secret_values()
        self._lease_seconds = self.services.settings.lease_seconds

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator["Crew"]:
        """Keep leases alive and listen for the end of the process until the block ends; then let go of what is left."""
        self._tasks = [asyncio.create_task(self._keep_leases()), asyncio.create_task(self._listen_for_stop())]
        try:
            yield self
        finally:
            self.is_over = True
            for task in (*self._tasks, *(run.task for run in self.runs.values() if run.task)):
                task.cancel()
            self.settler.cancel()

    def pause(self, *, is_paused: bool) -> None:
        """Let the lanes claim and start nothing, or let them go on."""
        self.is_paused = is_paused
        self._wake_all()

    def _wake_all(self) -> None:
        for event in self.wake:
            event.set()

    def take(self, claimed: Claimed, kind: Kind, report: Report, ended: Callable[[Run], None], since: float) -> Run:
        """Hold a claimed row from now on; its lease was asked for at *since* (monotonic)."""
        job_id, fence, name, queue, _, attempts, max_attempts, crashes, created_at, _ = claimed
        job = Job(
            job_id,
            name,
            queue,
            None,
            attempts,
            max_attempts,
            crashes,
            fence,
            created_at,
            self.services,
            _completing=self._completing,
        )
        if (lost := self.runs.get(job_id)) is not None:
            self.cut(lost, LEASE_LOST)  # rescued and claimed anew while its handler goes on
        run = self.runs[job_id] = Run(claimed, kind, report, ended, since + self._lease_seconds, job)
        return run

    async def run(self, run: Run, task: asyncio.Task[Any]) -> None:
        """Let the handler run in *task*, the current one, for its kind's timeout at most; then settle it."""
        run.task, run.started = task, time.monotonic()
        if not self._unarmed:
            asyncio.get_running_loop().call_soon(self._arm, context=self.context)
        self._unarmed.append(run)
        error = await perform(run.job, run.kind, run.claimed.payload)
        run.task, run.ended_at = None, time.monotonic()
        if run.timer is not None:
            run.timer.cancel()
        if not self.is_over and not run.is_left_behind:
            self.context.run(self._end, run, error)

    def _arm(self) -> None:
        """Set a timer for every run that has let the loop go on."""
        unarmed, self._unarmed = self._unarmed, []
        loop, now = asyncio.get_running_loop(), time.monotonic()
        for run in unarmed:
            if run.task is not None and run.timer is None:
                run.timer = loop.call_later(max(0.0, run.started + run.kind.timeout - now), self.cut, run, TIMED_OUT)

    def cut(self, run: Run, why: str) -> None:
        """Cancel a run because of *why*, with which what it raises is judged; one that has not started never will."""
        if run.is_left_behind:
            return
        run.cut = run.cut or why
        if run.task is None:
            return
        if run.timer is not None:
            run.timer.cancel()
        run.task.cancel()
        run.timer = asyncio.get_running_loop().call_later(CANCEL_GRACE_SECONDS, self._leave_behind, run)

    def is_held(self, run: Run) -> bool:
        """Say whether the lease of a run that waits still holds."""
        return run.cut is None and run.lease_end > time.monotonic()

    def give_up(self, run: Run) -> None:
        """Hand an unstarted claim back, no attempt spent; one whose lease is lost is only counted."""
        self._settle(run, Verdict(run.claimed.id, run.claimed.fence, "released") if self.is_held(run) else None)

    def _end(self, run: Run, error: BaseException | None) -> None:
        if run.job.is_completed:
            self._settled(run, "done", None)
            self._say()
        elif error is None and run.cut is None:
            self.settler.add(Verdict(run.claimed.id, run.claimed.fence, "done"), run)
        else:
            self._settle(run, judge(run.claimed, run.kind, Ending(error, run.cut), self._secrets))
        run.ended(run)

    def _settle(self, run: Run, verdict: Verdict | None) -> None:
        if verdict is None:
            self._settled(run, "lost", None)
            self._say()
            return
        if verdict.outcome == "retried":
            verdict = verdict._replace(delay=verdict.delay + self._herd.spread(time.monotonic()))
        self.settler.add(verdict, run)

    def _flushed(self, batch: Sequence[tuple[Verdict, Run]], won: set[int]) -> None:
        for verdict, run in batch:
            self._settled(run, verdict.outcome if verdict.id in won else "lost", verdict.error)
        self._say()

    def _settled(self, run: Run, outcome: str, error: str | None) -> None:
        claimed = run.claimed
        if self.runs.get(claimed.id) is run:
            del self.runs[claimed.id]
        run.report(claimed, outcome, run.job.note)
        row: tuple[int, ...] = (claimed.id, claimed.attempts)
        if run.ended_at:
            row = (*row, round((run.ended_at - run.started) * 1000))
        self._lines.setdefault((outcome, claimed.kind, error, len(row)), []).append(row)

    def _say(self) -> None:
        lines, self._lines = self._lines, {}
        log_many([_alike(*key, rows) for key, rows in lines.items()])

    def _leave_behind(self, run: Run) -> None:
        if run.task is None:
            return
        run.is_left_behind, run.ended_at = True, time.monotonic()
        self.errors.append(
            f"job {run.claimed.id} of kind {run.claimed.kind} ignored its cancellation and was left behind"
        )
        self._settled(run, "lost", None)
        self._say()
        run.ended(run)

    @asynccontextmanager
    async def _completing(self, job: Job) -> AsyncIterator[Connection]:
        async with self.link.acquire() as connection, connection.transaction():
            yield connection
            if job.id not in await settle(connection, [Verdict(job.id, job.fence, "done")]):
                raise LeaseLost

    async def _keep_leases(self) -> None:
        seconds = self.services.settings.lease_seconds
        while True:
            await asyncio.sleep(seconds / 3)
            self._cut_those_whose_lease_is_over()
            if not self.runs:
                continue
            asked = time.monotonic()
            held = list(self.runs.values())
            try:
                async with self.link.acquire(seconds / 3) as connection:
                    ours = await heartbeat(connection, ((run.claimed.id, run.claimed.fence) for run in held), seconds)
            except DATABASE_ERRORS as error:
                self.errors.append(f"heartbeat: {type(error).__name__}")
                continue
            self._renew(held, ours, asked + seconds)

    def _renew(self, held: Iterable[Run], ours: set[int], lease_end: float) -> None:
        for run in held:
            if run.claimed.id in ours:
                run.lease_end = lease_end
            elif self.runs.get(run.claimed.id) is run:
                self.cut(run, LEASE_LOST)

    def _cut_those_whose_lease_is_over(self) -> None:
        now = time.monotonic()
        for run in list(self.runs.values()):
            if run.lease_end <= now:
                self.cut(run, LEASE_LOST)

    async def _listen_for_stop(self) -> None:
        await self.services.stopping.wait()
        self.is_stopping = True
        self._wake_all()
        await asyncio.sleep(STOP_GRACE_SECONDS)
        for run in list(self.runs.values()):
            self.cut(run, STOPPED)


def _alike(outcome: str, kind: str, error: str | None, width: int, rows: list[tuple[int, ...]]) -> Alike:
    """Return the lines of runs that ended alike; those that never ran have no `ran_ms` in their *rows*."""
    fields: dict[str, Any] = {"event": f"job.{outcome}", "kind": kind, "error": error}
    if width < len(NUMBERS):
        fields["ran_ms"] = None
    return Alike("error" if outcome == "dead" else "info", fields, NUMBERS[:width], rows)
