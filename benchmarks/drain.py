"""One measured drain: worker processes on a fresh database, from the first handler to the last durable row.

    spawn -> "C <jobs> <time>" lines of every worker -> all ran -> the table says: nothing unfinished -> SIGTERM

The clock starts as the first handler runs and ends when the contender's own table holds nothing unfinished: what ran
and was not written down does not count. A run that takes too long is cut and rated on what it finished.
"""

import asyncio
import re
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.contenders import TICKS, Contender
from benchmarks.server import Server, process_cpu

CAP_SECONDS = 12.0
START_SECONDS = 40.0
POLL_SECONDS = 0.003
STATE = """
    SELECT pg_stat_force_next_flush(), pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS wal,
        (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()) AS commits
"""


@dataclass
class Drain:
    """What one drain did: *jobs* durably finished in *seconds*; costs are of the whole run."""

    jobs: int
    seconds: float
    start_seconds: float = 0.0
    wal_bytes: int = 0
    commits: int = 0
    peak_mb: float = 0.0
    worker_cpu: float = 0.0
    server_cpu: float = 0.0
    is_capped: bool = False
    marks: list[tuple[int, float]] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Jobs for each second."""
        return self.jobs / self.seconds if self.seconds else 0.0

    def window(self, first: int, last: int) -> float:
        """Return jobs for each second between the moments at which *first* and *last* jobs had run."""
        return (last - first) / (self._moment(last) - self._moment(first))

    def _moment(self, jobs: int) -> float:
        before = (0, self.marks[0][1])
        for mark in self.marks:
            if mark[0] >= jobs:
                share = (jobs - before[0]) / max(1, mark[0] - before[0])
                return before[1] + share * (mark[1] - before[1])
            before = mark
        return before[1]


class Workers:
    """The worker processes of one run and what they have said."""

    def __init__(self, contender: Contender, dsn: str, number: int) -> None:
        self._command = contender.command("ticks" if contender.name == TICKS else "work", dsn, processes=number)
        self._number = number
        self._counts: dict[int, int] = {}
        self._processes: list[asyncio.subprocess.Process] = []
        self._readers: list[asyncio.Task[None]] = []
        self.marks: list[tuple[int, float]] = []
        self.first: float | None = None

    @property
    def log(self) -> Path:
        """Where they complain."""
        return self._command.log

    @property
    def ran(self) -> int:
        """How many jobs have run so far."""
        return sum(self._counts.values())

    async def start(self) -> None:
        """Start all of them at once."""
        pipe = asyncio.subprocess.PIPE
        with self._command.log.open("ab") as log:
            for place in range(self._number):
                process = await asyncio.create_subprocess_exec(
                    *self._command.argv, env=self._command.environment, stdout=pipe, stderr=log
                )
                self._processes.append(process)
                if process.stdout is not None:
                    self._readers.append(asyncio.create_task(self._read(place, process.stdout)))

    async def _read(self, place: int, said: asyncio.StreamReader) -> None:
        async for line in said:
            words = line.split()
            if len(words) == 3 and words[0] == b"C":
                self._counts[place], moment = int(words[1]), float(words[2])
                self.first = moment if self.first is None else min(self.first, moment)
                self.marks.append((self.ran, moment))

    @property
    def has_ended(self) -> bool:
        """Whether one of them has ended by itself, which none should."""
        return any(process.returncode is not None for process in self._processes)

    def memory_mb(self) -> float:
        """Return the largest peak resident memory of one process."""
        return max(_peak_mb(process.pid) for process in self._processes)

    def cpu_seconds(self) -> float:
        """Return the processor seconds of all."""
        return sum(process_cpu(process.pid) for process in self._processes)

    async def stop(self) -> None:
        """Ask them to end, then make them."""
        for process in self._processes:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(3):
                await asyncio.gather(*(process.wait() for process in self._processes))
        except TimeoutError:
            for process in self._processes:
                if process.returncode is None:
                    process.kill()
        await asyncio.gather(*self._readers)


def _peak_mb(pid: int) -> float:
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0.0
    return int(found[1]) / 1024 if found else 0.0


async def drain(
    server: Server,
    contender: Contender,
    database: str,
    jobs: int,
    *,
    processes: int = 1,
    boundary: int = 0,
    cap: float = CAP_SECONDS,
) -> Drain:
    """Let *processes* workers of *contender* drain the *jobs* due in *database*, whose ids are above *boundary*."""
    probe = await server.connect(database)
    workers = Workers(contender, server.dsn(database), processes)
    before, server_cpu, spawned = await probe.fetchrow(STATE), server.cpu_seconds(), time.time()
    try:
        await workers.start()
        left = await _until_finished(workers, jobs, cap, partial(probe.fetchval, contender.unfinished, boundary))
        ended, cpu, memory = time.time(), workers.cpu_seconds(), workers.memory_mb()
    finally:
        await workers.stop()
    used = server.cpu_seconds() - server_cpu
    after = await probe.fetchrow(STATE)
    await probe.close()
    first = workers.first or spawned
    return Drain(
        jobs=jobs - left,
        seconds=ended - first,
        start_seconds=first - spawned,
        wal_bytes=int(after["wal"] - before["wal"]),
        commits=after["commits"] - before["commits"],
        peak_mb=memory,
        worker_cpu=cpu,
        server_cpu=used,
        is_capped=left > 0,
        marks=workers.marks,
    )


async def _until_finished(workers: Workers, jobs: int, cap: float, count_left: Callable[[], Awaitable[int]]) -> int:
    """Wait until all *jobs* have run and are written down, or *cap* seconds since the first; return what is left."""
    until = time.time() + START_SECONDS
    while workers.ran < jobs and time.time() < until:
        if workers.has_ended:
            raise SystemExit(f"a worker ended by itself: see {workers.log}")
        until = until if workers.first is None else workers.first + cap
        await asyncio.sleep(POLL_SECONDS)
    while left := await count_left():
        if time.time() >= until:
            return left
        await asyncio.sleep(POLL_SECONDS)
    return 0
