"""The peers: where each is installed, at which settings it runs, and how its own table looks.

    install(cache) -> cache/<peer>/ (a venv or node_modules of its own) -> the contenders that could be had

Nothing of them is installed into our own environment. The done rows of a peer that keeps a log are one row a job, and
triggers are left out while history is written: both are in the peer's favour.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.contenders import Contender

INSTALL_SECONDS = 600


@dataclass(frozen=True)
class Peer:
    """What is fixed about a peer; *packages* are pinned to a major version, *python* is the oldest that it takes."""

    name: str
    packages: tuple[str, ...]
    settings: str
    side: str
    boundary: str
    unfinished: str
    future: str
    done: str
    python: tuple[int, int] | None = (3, 11)
    fewer: int = 1


PROCRASTINATE = Peer(
    "procrastinate",
    ("procrastinate>=3,<4", "psycopg[binary,pool]"),
    "concurrency 100",
    "procrastinate_side.py",
    "SELECT coalesce(max(id), 0) FROM procrastinate_jobs",
    """
    SELECT count(*) FROM procrastinate_jobs
    WHERE id > $1 AND status IN ('todo', 'doing') AND (scheduled_at IS NULL OR scheduled_at <= now())
    """,
    """
    INSERT INTO procrastinate_jobs (queue_name, task_name, args, scheduled_at)
    SELECT 'default', 'noop', jsonb_build_object('n', n), now() + make_interval(days => 1, secs => n / 10.0)
    FROM generate_series(1, $1::int) AS n
    """,
    """
    INSERT INTO procrastinate_jobs (queue_name, task_name, args, status, attempts)
    SELECT 'default', 'noop', jsonb_build_object('n', n), 'succeeded', 1 FROM generate_series(1, $1::int) AS n
    """,
    fewer=5,
)
PGQUEUER = Peer(
    "pgqueuer",
    ("pgqueuer[asyncpg]>=1.6,<2", "uvloop"),
    "batch_size 100, no limit, uvloop",
    "pgqueuer_side.py",
    "SELECT coalesce(max(id), 0) FROM pgqueuer",
    """
    SELECT (SELECT count(*) FROM pgqueuer WHERE status = 'picked' AND id > $1) + (
        SELECT count(*) FROM pgqueuer
        WHERE status = 'queued' AND entrypoint = 'noop' AND execute_after <= now() AND id > $1
    )
    """,
    """
    INSERT INTO pgqueuer (priority, status, entrypoint, payload, execute_after)
    SELECT 0, 'queued', 'noop', '{}', now() + make_interval(days => 1, secs => n / 10.0)
    FROM generate_series(1, $1::int) AS n
    """,
    """
    INSERT INTO pgqueuer_log (job_id, status, priority, entrypoint, created, aggregated)
    SELECT 1000000 + n, 'successful', 0, 'noop', now() - interval '1 hour', TRUE FROM generate_series(1, $1::int) AS n
    """,
)
OBAN = Peer(
    "oban-py",
    ("oban>=0.7,<0.8", "psycopg[binary,pool]", "uvloop"),
    "limit 1000, uvloop",
    "oban_side.py",
    "SELECT coalesce(max(id), 0) FROM oban_jobs",
    "SELECT count(*) FROM oban_jobs WHERE state IN ('available', 'executing') AND queue = 'default' AND id > $1",
    """
    INSERT INTO oban_jobs (state, worker, args, scheduled_at)
    SELECT 'scheduled', '__main__.Noop', jsonb_build_object('n', n),
        timezone('UTC', now() + make_interval(days => 1, secs => n / 10.0))
    FROM generate_series(1, $1::int) AS n
    """,
    """
    INSERT INTO oban_jobs (state, worker, args, attempt, attempted_at, completed_at)
    SELECT 'completed', '__main__.Noop', jsonb_build_object('n', n), 1, past.at, past.at
    FROM generate_series(1, $1::int) AS n
    CROSS JOIN LATERAL (SELECT timezone('UTC', now() - interval '1 hour') AS at) AS past
    """,
    python=(3, 12),
    fewer=20,
)
GRAPHILE = Peer(
    "graphile-worker",
    ("graphile-worker@0.18", "pg@8", "node@22"),
    "localQueue 1000 (500 with 4 processes), completions in batches",
    "graphile_side.cjs",
    "SELECT coalesce(max(id), 0) FROM graphile_worker._private_jobs",
    "SELECT count(*) FROM graphile_worker._private_jobs WHERE id > $1 AND run_at <= now()",
    """
    INSERT INTO graphile_worker._private_jobs (task_id, payload, run_at)
    SELECT tasks.id, json_build_object('n', n), now() + make_interval(days => 1, secs => n / 10.0)
    FROM generate_series(1, $1::int) AS n CROSS JOIN graphile_worker._private_tasks AS tasks
    """,
    "SELECT $1::int",
    python=None,
)
PG_BOSS = Peer(
    "pg-boss",
    ("pg-boss@12", "pg@8", "node@22"),
    "4 x batchSize 1000, burstWhenBatchFull",
    "pgboss_side.cjs",
    "SELECT 0",
    """
    SELECT (SELECT count(*) FROM pgboss.job_common WHERE name = 'noop' AND state = 'active' AND $1 >= 0) + (
        SELECT count(*) FROM pgboss.job_common
        WHERE name = 'noop' AND state IN ('created', 'retry') AND NOT blocked AND start_after <= now()
    )
    """,
    """
    INSERT INTO pgboss.job (name, data, start_after, policy)
    SELECT 'noop', jsonb_build_object('n', n), now() + make_interval(days => 1, secs => n / 10.0), 'standard'
    FROM generate_series(1, $1::int) AS n
    """,
    """
    INSERT INTO pgboss.job (name, data, state, started_on, completed_on, policy)
    SELECT 'noop', jsonb_build_object('n', n), 'completed', now() - interval '1 hour', now() - interval '1 hour',
        'standard'
    FROM generate_series(1, $1::int) AS n
    """,
    python=None,
)
PEERS = (GRAPHILE, PG_BOSS, PGQUEUER, OBAN, PROCRASTINATE)


def install(cache: Path, notes: list[str]) -> list[Contender]:
    """Install every peer that can be had below *cache*; what cannot is told in *notes*."""
    found = []
    for peer in PEERS:
        home = cache / peer.side.partition("_")[0]
        try:
            program = _install_node(peer, home) if peer.python is None else _install_python(peer, peer.python, home)
        except (OSError, subprocess.SubprocessError, LookupError) as error:
            notes.append(f"{peer.name} could not be installed: {type(error).__name__}: {error}")
            continue
        found.append(_contender(peer, home, program, cache))
    return found


def _contender(peer: Peer, home: Path, program: Path, cache: Path) -> Contender:
    return Contender(
        peer.name,
        peer.settings,
        program,
        peer.side,
        cache,
        peer.boundary,
        peer.unfinished,
        peer.future,
        peer.done,
        {"NODE_PATH": str(home / "node_modules")} if peer.python is None else {},
        peer.fewer,
        _version(peer, home),
    )


def _install_python(peer: Peer, oldest: tuple[int, int], home: Path) -> Path:
    program = home / "bin" / "python"
    if not program.exists():
        subprocess.run([_interpreter(oldest), "-m", "venv", str(home)], check=True, capture_output=True)
        command = [str(program), "-m", "pip", "install", "--quiet", *peer.packages]
        subprocess.run(command, check=True, timeout=INSTALL_SECONDS)
    return program


def _interpreter(oldest: tuple[int, int]) -> str:
    """Return a Python that is new enough: this one, one on the path, or one that pyenv keeps."""
    if sys.version_info >= oldest:
        return sys.executable
    for minor in range(oldest[1], oldest[1] + 3):
        on_path = shutil.which(f"python3.{minor}")
        kept = sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python"))
        for candidate in [on_path, *map(str, kept)]:
            if candidate and subprocess.run([candidate, "--version"], capture_output=True, check=False).returncode == 0:
                return candidate
    raise LookupError(f"no Python {oldest[0]}.{oldest[1]} or newer was found")


def _install_node(peer: Peer, home: Path) -> Path:
    program = home / "node_modules" / "node" / "bin" / "node"
    if not program.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise LookupError("npm was not found")
        home.mkdir(parents=True, exist_ok=True)
        (home / "package.json").write_text(json.dumps({"name": "peer", "private": True}))
        command = [npm, "install", "--silent", "--no-audit", "--no-fund", *peer.packages]
        subprocess.run(command, cwd=home, check=True, timeout=INSTALL_SECONDS, env=dict(os.environ))
    return program


def _version(peer: Peer, home: Path) -> str:
    if peer.python is None:
        package = peer.packages[0].partition("@")[0]
        text: str = json.loads((home / "node_modules" / package / "package.json").read_text())["version"]
        return text
    package = peer.packages[0].partition(">")[0].partition("[")[0]
    folders = home.glob(f"lib/*/site-packages/{package}-*.dist-info")
    return next((folder.name.split("-")[1].removesuffix(".dist") for folder in folders), "").removesuffix(".dist")
