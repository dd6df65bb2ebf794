"""A PostgreSQL of a test's own, with fsync on, that may be stopped in the worst way and started again."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.servers import Server, _as_server_user, _open_to_server_user, embedded_bin, free_port

START_SECONDS = 60.0
TUNING = ("fsync=on", "max_connections=60", "shared_buffers=32MB", "wal_sync_method=fdatasync")


@dataclass(eq=False)
class Cluster:
    """The server whose files are below *folder*; *server* says where it is found."""

    folder: Path
    data: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def server(self) -> Server:
        return Server("127.0.0.1", self.port)

    def make(self) -> None:
        """Write the files of a new cluster; what it logs ahead goes beside *folder*'s data, never on its disk."""
        argv = [str(embedded_bin() / "initdb"), "-D", str(self.data), "-X", str(self.folder / "wal")]
        argv += ["-U", "postgres", "-A", "trust", "-E", "UTF8"]
        subprocess.run(argv, check=True, capture_output=True, user=_as_server_user(), cwd="/")

    def start(self) -> None:
        """Start, and return when it takes connections; the dead may hold its memory for a moment."""
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            self.process = self._launch()
            while self.process.poll() is None and time.monotonic() < until:
                if self._is_ready():
                    return
                time.sleep(0.05)
            time.sleep(0.1)
        raise RuntimeError((self.folder / "postgres.log").read_text()[-2000:])

    def crash(self) -> None:
        """Stop at once and without a word to anyone, as `pg_ctl stop -m immediate` does."""
        argv = [str(embedded_bin() / "pg_ctl"), "stop", "-D", str(self.data), "-m", "immediate"]
        subprocess.run(argv, check=True, capture_output=True, user=_as_server_user(), cwd="/")
        self._wait()

    def kill(self) -> None:
        """Kill the postmaster; its children notice and follow."""
        if self.process is not None:
            self.process.kill()
        self._wait()

    def stop(self) -> None:
        """End it, if it runs."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self._wait()

    def _wait(self) -> None:
        if self.process is not None:
            self.process.wait(30)

    def _launch(self) -> subprocess.Popen[bytes]:
        options = [item for setting in TUNING for item in ("-c", setting)]
        argv = [str(embedded_bin() / "postgres"), "-D", str(self.data), "-h", "127.0.0.1", "-p", str(self.port)]
        with (self.folder / "postgres.log").open("ab") as log:
            return subprocess.Popen(
                [*argv, "-k", "", *options], stdout=log, stderr=log, user=_as_server_user(), cwd="/"
            )

    def _is_ready(self) -> bool:
        argv = [str(embedded_bin() / "pg_isready"), "-h", "127.0.0.1", "-p", str(self.port), "-q"]
        return subprocess.run(argv, check=False, cwd="/").returncode == 0


@contextmanager
def cluster(folder: Path, data: Path | None = None) -> Iterator[Cluster]:
    """Run a cluster below *folder*, its data at *data* if that is given, until the block ends."""
    user = _as_server_user()
    if user is not None:
        _open_to_server_user(folder, user)
    made = Cluster(folder, data or folder / "data")
    made.make()
    made.start()
    try:
        yield made
    finally:
        made.stop()


@contextmanager
def small_disk(place: Path, megabytes: int) -> Iterator[Path]:
    """Mount a disk of so many *megabytes*, in memory, at *place* until the block ends; only root can."""
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(place)], check=True)
    try:
        user = _as_server_user()
        if user is not None:
            shutil.chown(place, user)
        yield place
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):  # the mount itself may have failed: nothing to undo
            subprocess.run(["umount", str(place)], check=True)


def is_root() -> bool:
    """Say whether this process may mount."""
    return os.geteuid() == 0
