"""The one PostgreSQL of a run, as durable as it ships: fsync and synchronous_commit on.

    initdb -> postgres (a port of loopback) -> template databases, one a contender and shape -> a fresh clone a run

The binaries are those of the `embedded` extra; the data lies below the folder given, on a disk, never in memory.
"""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from app.cli.embedded import find_binaries

SETTINGS = (
    "fsync=on",
    "synchronous_commit=on",
    "full_page_writes=on",
    "shared_buffers=2GB",
    "max_wal_size=8GB",
    "checkpoint_timeout=30min",
    "max_connections=200",
)
START_SECONDS = 60.0
ACCOUNT = "nobody"  # PostgreSQL refuses to run as root
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Server:
    """A running server: its port and the process id of its postmaster."""

    port: int
    pid: int

    def dsn(self, database: str) -> str:
        """Return the address of *database*."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    async def connect(self, database: str) -> Any:
        """Return a connection of the harness' own."""
        return await asyncpg.connect(self.dsn(database), statement_cache_size=0, command_timeout=600)

    async def create(self, database: str, template: str = "template0") -> None:
        """Make *database* a copy of *template*, in place of an older one, with its pages written out."""
        admin = await self.connect("postgres")
        try:
            await admin.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')
            await admin.execute(f'CREATE DATABASE "{database}" TEMPLATE "{template}" STRATEGY file_copy')
            await admin.execute("CHECKPOINT")
        finally:
            await admin.close()

    async def drop(self, database: str) -> None:
        """Remove *database*, whoever is connected."""
        admin = await self.connect("postgres")
        try:
            await admin.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')
        finally:
            await admin.close()

    def cpu_seconds(self) -> float:
        """Return the processor seconds that the server has used, backends that ended included."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return process_cpu(self.pid, with_children=True) + sum(process_cpu(int(child)) for child in children)


def process_cpu(pid: int, *, with_children: bool = False) -> float:
    """Return the processor seconds of *pid*, those of its ended children too if *with_children*; 0 when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(field) for field in fields[11 : 15 if with_children else 13]) / TICKS


@contextlib.contextmanager
def running_server(folder: Path) -> Iterator[Server]:
    """Run a server with its data below *folder* until the block ends."""
    binaries, account = find_binaries(), _account()
    folder.mkdir(parents=True, exist_ok=True)
    if account is not None:
        shutil.chown(folder, account)
        _open_way(folder, binaries)
    data, port = folder / "data", free_port()
    initdb = [str(binaries / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8"]
    subprocess.run(initdb, check=True, capture_output=True, user=account, cwd="/")
    options = [part for setting in SETTINGS for part in ("-c", setting)]
    command = [str(binaries / "postgres"), "-D", str(data), "-h", "127.0.0.1", "-p", str(port), "-k", "", *options]
    with (folder / "postgres.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, user=account, cwd="/", start_new_session=True)
    try:
        _await_ready(data, process)
        yield Server(port, process.pid)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def _account() -> str | None:
    return ACCOUNT if os.geteuid() == 0 else None


def _open_way(folder: Path, binaries: Path) -> None:
    """Let the server's account pass through the folders above its data and its programs."""
    owner = pwd.getpwnam(ACCOUNT).pw_uid
    for place in (*folder.parents, *binaries.parents):
        if place.stat().st_uid != owner and not place.stat().st_mode & 0o001:
            place.chmod(place.stat().st_mode | 0o011)


def free_port() -> int:
    """Return a port of loopback that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _await_ready(data: Path, process: "subprocess.Popen[bytes]") -> None:
    until, lines = time.monotonic() + START_SECONDS, [""]
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError):  # not written yet
            lines = (data / "postmaster.pid").read_text().split() or lines
        if lines[-1] == "ready":
            return
        time.sleep(0.05)
    raise SystemExit("the benchmarks' PostgreSQL did not start: see postgres.log beside its data")
