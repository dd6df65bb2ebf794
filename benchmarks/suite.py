"""The whole comparison, one part after the other; within a part every round takes all contenders in random order.

    install -> server -> parts (enqueue, drain, drain with history, drain under an old snapshot, ticks) -> report

What others do on the machine hits all contenders of a round alike: ratios hold better than rates.
"""

import argparse
import asyncio
import json
import random
import shutil
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks import ticks
from benchmarks.contenders import TICKS, Contender, ours
from benchmarks.drain import Drain, drain
from benchmarks.noise import watching
from benchmarks.peers import install
from benchmarks.report import write_report
from benchmarks.server import Server, running_server
from benchmarks.shelf import Template, make_template, obey

CACHE = Path.home() / ".cache" / "dormouse-bench"
RESULTS = Path(__file__).resolve().parent / "results"
TOO_SLOW_FOR_50_000 = ("procrastinate", "oban-py")
PARTS = {
    "enqueue": ("single", "bulk"),
    "drain": ("drain 1", "drain 4"),
    "history": ("empty", "full"),
    "snapshot": ("snapshot",),
    "ticks": ("ticks",),
}
SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ"


@dataclass(frozen=True)
class Sizes:
    """How much of everything."""

    rounds: int = 5
    long_rounds: int = 3
    single: int = 2000
    bulk: int = 100_000
    drain: int = 20_000
    small_drain: int = 5000
    history: int = 1_000_000
    snapshot: int = 50_000
    cap: float = 12.0


QUICK = Sizes(2, 1, 300, 10_000, 4000, 1000, 20_000, 10_000, 5.0)


@dataclass
class Suite:
    """One run: *results* maps part and contender to what was measured, as plain data."""

    server: Server
    contenders: list[Contender]
    sizes: Sizes
    results: dict[str, dict[str, list[dict[str, Any]]]] = field(default_factory=dict)

    async def run(self, parts: list[str], store: Path) -> None:
        """Measure *parts*, in the order of the table; what is measured so far is kept in *store*."""
        known = {
            "enqueue": self.enqueue,
            "drain": self.drain,
            "history": self.history,
            "snapshot": self.snapshot,
            "ticks": self.ticks,
        }
        for name in parts or known:
            say(f"-- {name}")
            for part in PARTS[name]:
                self.results.pop(part, None)
            await known[name]()
            await asyncio.to_thread(store.write_text, json.dumps(self.results))

    def note(self, part: str, contender: str, found: dict[str, Any]) -> None:
        """Keep one measurement."""
        self.results.setdefault(part, {}).setdefault(contender, []).append(found)
        say(f"{part:10s} {contender:18s} " + " ".join(f"{k}={v:.6g}" for k, v in found.items() if k != "marks"))

    async def enqueue(self) -> None:
        """Enqueue one by one and in bulk, on a table that only ever grew by this run."""
        takers = [contender for contender in self.contenders if contender.name != TICKS]
        for _ in range(self.sizes.rounds):
            for contender in shuffled(takers):
                for word, size in (("single", self.sizes.single), ("bulk", self.sizes.bulk // contender.fewer)):
                    await self.server.create("run")
                    obey(contender, "schema", self.server.dsn("run"))
                    seconds = await asyncio.to_thread(obey, contender, word, self.server.dsn("run"), size)
                    self.note(word, contender.name, {"rate": size / seconds, "jobs": size})

    async def drain(self) -> None:
        """Drain with 1 and with 4 processes."""
        jobs = self.sizes.drain
        shelf = await self._shelve(self.contenders, jobs)
        for _ in range(self.sizes.rounds):
            for processes in (1, 4):
                for contender in shuffled(self.contenders):
                    await self._drain(f"drain {processes}", contender, shelf[contender.name], jobs, processes)
        await self._clear(shelf)

    async def history(self) -> None:
        """Drain a few, on an empty table and beside a million rows that are not due and a million that are done."""
        jobs, takers = self.sizes.small_drain, [c for c in self.contenders if c.name != TICKS]
        empty = await self._shelve(takers, jobs)
        full = await self._shelve(takers, jobs, self.sizes.history)
        for _ in range(self.sizes.long_rounds):
            for contender in shuffled(takers):
                await self._drain("empty", contender, empty[contender.name], jobs)
                await self._drain("full", contender, full[contender.name], jobs)
        await self._clear(empty)
        await self._clear(full)

    async def snapshot(self) -> None:
        """Drain many while a transaction elsewhere keeps every dead row and index entry alive."""
        jobs = self.sizes.snapshot
        takers = [c for c in self.contenders if c.name not in (TICKS, *TOO_SLOW_FOR_50_000)]
        shelf = await self._shelve(takers, jobs)
        for _ in range(self.sizes.long_rounds):
            for contender in shuffled(takers):
                await self._drain("snapshot", contender, shelf[contender.name], jobs, has_snapshot=True)
        await self._clear(shelf)

    async def ticks(self) -> None:
        """Measure ticks over HTTP, beside bare routes."""
        for name, found in (await ticks.measure(self.server, self.contenders[0].cache, self.sizes.rounds)).items():
            self.note("ticks", name, found)

    async def _drain(
        self,
        part: str,
        contender: Contender,
        template: Template,
        jobs: int,
        processes: int = 1,
        *,
        has_snapshot: bool = False,
    ) -> None:
        await self.server.create("run", template.name)
        holder = await self.server.connect("run") if has_snapshot else None
        if holder is not None:
            await holder.execute(SNAPSHOT)
            await holder.fetchval("SELECT count(*) FROM pg_class")
        with watching() as watch:
            found = await drain(
                self.server,
                contender,
                "run",
                jobs,
                processes=processes,
                boundary=template.boundary,
                cap=self.sizes.cap,
            )
            watch.used = found.worker_cpu + found.server_cpu
        if holder is not None:
            await holder.close()
        noise = {"foreign": watch.foreign, "stolen": watch.stolen}
        self.note(part, contender.name, as_plain(found, jobs) | noise)

    async def _shelve(self, takers: list[Contender], jobs: int, history: int = 0) -> dict[str, Template]:
        shelf = {}
        for contender in takers:
            began = time.monotonic()
            shelf[contender.name] = await make_template(self.server, contender, jobs, history)
            say(f"filled     {contender.name:18s} {time.monotonic() - began:.1f} s")
        return shelf

    async def _clear(self, shelf: dict[str, Template]) -> None:
        for template in shelf.values():
            await self.server.drop(template.name)


def as_plain(found: Drain, jobs: int) -> dict[str, Any]:
    """Return a drain's figures; the windows only of one that ran to its end."""
    plain = {
        "rate": found.rate,
        "jobs": found.jobs,
        "start": found.start_seconds,
        "wal": found.wal_bytes / max(1, found.jobs),
        "commits": found.commits / max(1, found.jobs),
        "peak": found.peak_mb,
        "worker_cpu": found.worker_cpu * 1e6 / max(1, found.jobs),
        "server_cpu": found.server_cpu * 1e6 / max(1, found.jobs),
    }
    if not found.is_capped and found.marks:
        fifth = jobs // 5
        plain |= {"first": found.window(0, fifth), "last": found.window(jobs - fifth, jobs)}
    return plain


def shuffled(contenders: list[Contender]) -> list[Contender]:
    """Return them in an order of chance."""
    return random.sample(contenders, len(contenders))


def say(text: str) -> None:
    """Tell how far it is."""
    print(time.strftime("%H:%M:%S"), text, flush=True)


def main() -> None:
    """Measure what the command line asks for and write the table and the chart."""
    parser = argparse.ArgumentParser(description="Dormouse beside its peers, on one PostgreSQL.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and small sizes: minutes, not half an hour")
    parser.add_argument("--ours-only", action="store_true", help="leave the peers out; needs no network")
    parser.add_argument("--parts", nargs="*", default=[], help="enqueue, drain, history, snapshot, ticks; default all")
    parser.add_argument("--rounds", type=int, help="rounds of each part; a figure is the median of them (default 5)")
    parser.add_argument("--keep", action="store_true", help="keep what an earlier run measured of the other parts")
    parser.add_argument("--cache", type=Path, default=CACHE, help="where peers and data lie, outside the repository")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where speed.md, speed.png and speed.svg go")
    asked = parser.parse_args()
    asked.cache.mkdir(parents=True, exist_ok=True)
    notes: list[str] = []
    contenders = ours(asked.cache) + ([] if asked.ours_only else install(asked.cache, notes))
    data = asked.cache / "server"
    shutil.rmtree(data, ignore_errors=True)
    with running_server(data) as server:
        sizes = QUICK if asked.quick else Sizes()
        if asked.rounds:
            sizes = replace(sizes, rounds=asked.rounds, long_rounds=asked.rounds)
        suite = Suite(server, contenders, sizes)
        store = asked.cache / "measured.json"
        if asked.keep and store.exists():
            suite.results = json.loads(store.read_text())
        asyncio.run(suite.run(asked.parts, store))
    shutil.rmtree(data, ignore_errors=True)
    write_report(asked.results, suite.results, contenders, notes)
