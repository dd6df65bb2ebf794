"""Who takes part: how each is started, filled, and asked whether all its work is durably finished.

    Contender -> command("schema" | "fill" | "single" | "bulk" | "work", dsn, ...) -> a process of its own

Each runs at the settings that served it best here: those of its documentation for throughput, not its defaults. What
its own table calls unfinished counts, and $1 is the highest id that stood there before the jobs of the run.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SIDES = Path(__file__).resolve().parent / "sides"
BYTECODE = "PYTHONDONTWRITEBYTECODE"  # set in some environments: every start would then compile our own files


@dataclass(frozen=True)
class Command:
    """A process to start: its words, environment, and where it complains."""

    argv: list[str]
    environment: dict[str, str]
    log: Path


@dataclass(frozen=True)
class Contender:
    """One queue at its best *settings*; *future* and *done* fill its table with $1 rows that are not due or finished.

    *fewer* divides the sizes of bulk enqueueing for one that is slow at it.
    """

    name: str
    settings: str
    program: Path
    side: str
    cache: Path
    boundary: str
    unfinished: str
    future: str
    done: str
    environment: Mapping[str, str] = field(default_factory=dict)
    fewer: int = 1
    version: str = ""

    def command(self, word: str, dsn: str, jobs: int = 0, processes: int = 1) -> Command:
        """Return the process that obeys *word*."""
        environment = {name: value for name, value in os.environ.items() if name != BYTECODE}
        environment |= {
            "PROCESSES": str(processes),
            "DATABASE_URL": dsn,
            "PYTHONPYCACHEPREFIX": str(self.cache / "bytecode"),
            **self.environment,
        }
        argv = [str(self.program), str(SIDES / self.side), word, dsn, str(jobs)]
        if word == "work" and self.name == WORKER:
            argv = [str(self.program), "-m", "app.cli", "worker", "--poll-seconds", "0.1"]
        return Command(argv, environment, self.cache / f"{self.name.replace(' ', '-')}.log")


WORKER = "dormouse worker"
TICKS = "dormouse ticks"
BARE = "bare asyncpg"
OUR_CONCURRENCY = 500

OUR_BOUNDARY = "SELECT coalesce(max(id), 0) FROM jobs"
OUR_UNFINISHED = """
    SELECT (SELECT count(*) FROM jobs WHERE status = 'running' AND id > $1) + (
        SELECT count(*) FROM jobs
        WHERE status = 'ready' AND crashes = 0 AND queue = 'default' AND priority = 0 AND run_at <= now() AND id > $1
    )
"""
OUR_FUTURE = """
    INSERT INTO jobs (kind, payload, run_at)
    SELECT 'noop', jsonb_build_object('n', n), now() + make_interval(days => 1, secs => n / 10.0)
    FROM generate_series(1, $1::int) AS n
"""
OUR_DONE = """
    INSERT INTO jobs (kind, payload, status, attempts, fence, run_at, created_at, started_at, finished_at)
    SELECT 'noop', jsonb_build_object('n', n), 'done', 1, 1, past.at, past.at, past.at, past.at
    FROM generate_series(1, $1::int) AS n
    CROSS JOIN LATERAL (SELECT now() - make_interval(hours => 1, secs => n / 10.0) AS at) AS past
"""
BARE_UNFINISHED = """
    SELECT (SELECT count(*) FROM jobs WHERE status = 'running' AND id > $1)
        + (SELECT count(*) FROM jobs WHERE status = 'ready' AND run_at <= now() AND id > $1)
"""
BARE_DONE = """
    INSERT INTO jobs (kind, payload, status, attempts, run_at, finished_at)
    SELECT 'noop', jsonb_build_object('n', n), 'done', 1, now() - interval '1 hour', now() - interval '1 hour'
    FROM generate_series(1, $1::int) AS n
"""


def ours(cache: Path) -> list[Contender]:
    """Return Dormouse as a worker and as ticks, and the limit: what asyncpg alone can do on such a table."""
    python = Path(sys.executable)
    environment = {
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(SIDES))),
        "HANDLER_MODULES": "dormouse_kinds",
        "JOB_CONCURRENCY": str(OUR_CONCURRENCY),
    }
    queue = (OUR_BOUNDARY, OUR_UNFINISHED, OUR_FUTURE, OUR_DONE, environment)
    bare = (OUR_BOUNDARY, BARE_UNFINISHED, OUR_FUTURE, BARE_DONE, environment)
    return [
        Contender(WORKER, "`dormouse worker`, JOB_CONCURRENCY=500", python, "dormouse_side.py", cache, *queue),
        Contender(TICKS, "ticks of up to 10,000, JOB_CONCURRENCY=500", python, "dormouse_side.py", cache, *queue),
        Contender(BARE, "claim of 500 beside completion of 500, no handler", python, "bare_side.py", cache, *bare),
    ]
