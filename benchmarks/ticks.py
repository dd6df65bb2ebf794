"""Ticks over loopback HTTP, warm: round trips, wall time, and the seconds that a host is kept awake.

dormouse serve + bare_app.py, both up; each measurement asks both in turn, one caller, one connection kept alive
"""

import asyncio
import contextlib
import http.client
import json
import os
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.jobs import NewJob, enqueue_many
from app.migrate import migrate
from benchmarks.bare import FILL, SCHEMA
from benchmarks.contenders import BYTECODE, ROOT, SIDES
from benchmarks.server import Server, free_port

TICK = "/api/cron/tick"
START_SECONDS = 30.0
EMPTY_CALLS = 100
EMPTY_TRIPS = 3
FULL_CALLS = 10
WARM_CALLS = 6  # the server keeps a plan from a statement's sixth run on
SLOW_JOBS = 1000
SLOW_CONCURRENCY = 100
BOOKINGS = """
    INSERT INTO bookings (title, starts_at, attendee_name, attendee_email, time_zone, locale)
    SELECT 'Haircut', now() + make_interval(hours => 3, secs => n), 'Kim', 'kim' || n || '@example.com', 'UTC', 'en'
    FROM generate_series(1, $1::int) AS n
"""
COMMITS = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
STATISTICS_SECONDS = 11.0  # a backend that lies idle tells within ten what it did
FIGURES = dict[str, dict[str, Any]]


class Caller:
    """One client of one server, on a connection that is kept alive."""

    def __init__(self, port: int, secret: str = "") -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self._headers = {"Authorization": f"Bearer {secret}"}

    def call(self, path: str) -> tuple[float, dict[str, Any]]:
        """Return the milliseconds of one call and what it answered."""
        began = time.perf_counter()
        self._connection.request("POST", path, headers=self._headers)
        answer = self._connection.getresponse()
        body = answer.read()
        took = 1000 * (time.perf_counter() - began)
        if answer.status != http.HTTPStatus.OK:
            raise SystemExit(f"{path} answered {answer.status}: {body[:500]!r}")
        found: dict[str, Any] = json.loads(body)
        return took, found

    def renew(self, path: str) -> None:
        """Call *path* once on a new connection: a server closes one that lay idle."""
        self._connection.close()
        self.call(path)

    def tick(self) -> tuple[float, dict[str, Any]]:
        """Call the tick."""
        return self.call(TICK)


async def measure(server: Server, cache: Path, rounds: int) -> FIGURES:
    """Return, by name, the medians of *rounds* rounds."""
    found: dict[str, list[dict[str, Any]]] = {}
    for database in ("ticks", "bare_ticks"):
        await server.create(database)
    await migrate(server.dsn("ticks"))
    connection = await server.connect("bare_ticks")
    await connection.execute(SCHEMA)
    await connection.execute(FILL, 100 * FULL_CALLS * (rounds + 1))
    await connection.close()
    secret = secrets.token_hex(24)
    with (
        tempfile.TemporaryDirectory() as outbox,
        _serving(_ours(), cache, server.dsn("ticks"), secret, outbox) as port,
        _serving(_bare(), cache, server.dsn("bare_ticks"), secret, outbox) as bare_port,
    ):
        callers = Caller(port, secret), Caller(bare_port)
        for number in range(rounds + 1):
            for name, figures in (await _round(server, *callers)).items():
                if number:  # the first round warms both
                    found.setdefault(name, []).append(figures)
    return {name: _medians(figures) for name, figures in found.items()}


def _medians(figures: list[dict[str, Any]]) -> dict[str, Any]:
    return {key: statistics.median(figure[key] for figure in figures) for key in figures[0]}


async def _round(server: Server, ours: Caller, bare: Caller) -> FIGURES:
    connection = await server.connect("ticks")
    try:
        found = {"empty": await _pairs(EMPTY_CALLS, ours, bare, "/one")}
        found["10 jobs"] = await _filled(connection, ours, 10, 0)
        found["100 jobs"] = await _filled(connection, ours, 100, 0, bare)
        found["100 reminders"] = await _filled(connection, ours, 0, 100)
        found["100 + 100"] = await _filled(connection, ours, 100, 100)
        found["1,000 of 300 ms"] = await _awake(connection, ours)
    finally:
        await connection.close()
    return found


async def _pairs(calls: int, ours: Caller, bare: Caller, path: str) -> dict[str, Any]:
    times, bare_times, trips = [], [], []
    ours.renew(TICK)
    bare.renew(path)
    for _ in range(calls):
        took, summary = await asyncio.to_thread(ours.tick)
        times.append(took)
        trips.append(summary["round_trips"])
        bare_times.append((await asyncio.to_thread(bare.call, path))[0])
    return _figures(times, trips, bare_times)


async def _filled(
    connection: Any, ours: Caller, jobs: int, bookings: int, bare: Caller | None = None
) -> dict[str, Any]:
    times, bare_times, trips = [], [], []
    before = 0 if jobs else await _commits(connection)
    ours.renew(TICK)
    if bare is not None:
        bare.renew("/one")
    for call in range(0 if bookings else -WARM_CALLS, FULL_CALLS):
        await enqueue_many(connection, [NewJob("noop", {"n": n}) for n in range(jobs)])
        await connection.execute(BOOKINGS, bookings)
        took, summary = await asyncio.to_thread(ours.tick)
        if call < 0:
            continue
        if (summary["jobs"]["done"], summary["reminders"]["sent"]) != (jobs, bookings):
            raise SystemExit(f"the tick did something else: {summary}")
        times.append(took)
        trips.append(summary["round_trips"])
        if bare is not None:
            bare_times.append((await asyncio.to_thread(bare.call, "/hundred"))[0])
    found = _figures(times, trips, bare_times)
    if not jobs:
        of_harness = FULL_CALLS + 2 + EMPTY_TRIPS
        found["all_trips"] = (await _commits(connection) - before - of_harness) / FULL_CALLS
    await connection.execute("DELETE FROM bookings")
    await _tidy(connection)
    return found


async def _tidy(connection: Any) -> None:
    """Do what autovacuum does within a minute: nobody else's bookings vanish by the hundred between two ticks."""
    for table in ("bookings", "reminders", "jobs"):
        await connection.execute(f"VACUUM (ANALYZE) {table}")


async def _commits(connection: Any) -> int:
    """Return how many statements were committed in this database: a handler's own too, which no summary counts."""
    await asyncio.sleep(STATISTICS_SECONDS)
    await connection.execute("SELECT pg_stat_force_next_flush()")
    found: int = await connection.fetchval(COMMITS)
    return found


def _figures(times: list[float], trips: list[int], bare_times: list[float]) -> dict[str, Any]:
    found = {"p50_ms": statistics.median(times), "trips": max(trips), "worst_ms": max(times)}
    return found | ({"bare_ms": statistics.median(bare_times)} if bare_times else {})


async def _awake(connection: Any, ours: Caller) -> dict[str, Any]:
    """Return the seconds that answering takes, over all the ticks that SLOW_JOBS slow jobs need."""
    ours.renew(TICK)
    await enqueue_many(connection, [NewJob("slow") for _ in range(SLOW_JOBS)])
    seconds, ticks, more_due = 0.0, 0, True
    while more_due:
        took, summary = await asyncio.to_thread(ours.tick)
        seconds, ticks, more_due = seconds + took / 1000, ticks + 1, summary["more_due"]
    return {"awake_s": seconds, "ticks": ticks, "ideal_s": SLOW_JOBS * 0.3 / SLOW_CONCURRENCY}


def _ours() -> list[str]:
    return [sys.executable, "-m", "app.cli", "serve"]


def _bare() -> list[str]:
    return [sys.executable, str(Path(__file__).with_name("bare_app.py"))]


@contextlib.contextmanager
def _serving(command: list[str], cache: Path, dsn: str, secret: str, outbox: str) -> Iterator[int]:
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if name != BYTECODE} | {
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(SIDES))),
        "PYTHONPYCACHEPREFIX": str(cache / "bytecode"),
        "DATABASE_URL": dsn,
        "CRON_SECRET": secret,
        "OUTBOX_DIR": outbox,
        "HANDLER_MODULES": "dormouse_kinds",
        "JOB_CONCURRENCY": str(SLOW_CONCURRENCY),
        "TICK_JOBS": str(SLOW_JOBS),
        "PORT": str(port),
    }
    with (cache / "serving.log").open("ab") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            _await_port(port, process)
            yield port
        finally:
            process.terminate()
            process.wait(20)


def _await_port(port: int, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return  # an error means: not listening yet
        time.sleep(0.05)
    raise SystemExit("a server did not start: see serving.log in the cache folder")
