"""`dormouse serve` as an operator starts it, and what can be seen of it from outside: its port, its log, its memory.

It gets an environment of its own, so that a run that measures coverage does not measure another server.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.servers import free_port
from tests.web.serving import Serving

ROOT = Path(__file__).resolve().parents[3]
START_SECONDS = 60.0
KEPT = ("PATH", "HOME", "LANG")


@contextmanager
def serve_really(folder: Path, settings: Mapping[str, str]) -> Iterator[Serving]:
    """Run `dormouse serve` with *settings* until the block ends, its log in *folder*."""
    port, log = free_port(), folder / "serve.log"
    with log.open("wb") as lines:
        process = subprocess.Popen(
            [sys.executable, "-m", "app.cli", "serve", "--host", "127.0.0.1", "--port", str(port)],
            cwd=ROOT,
            env=bare_environment() | dict(settings),
            stdin=subprocess.DEVNULL,
            stdout=lines,
            stderr=lines,
        )
        serving = Serving(port, process, log)
        try:
            _await_answer(serving)
            yield serving
        finally:
            process.kill()
            process.wait()


def bare_environment() -> dict[str, str]:
    """Return what a program needs to run at all, and no setting."""
    return {name: os.environ[name] for name in KEPT if name in os.environ}


def _await_answer(serving: Serving) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if serving.process.poll() is not None:
            raise RuntimeError(f"the server ended: {serving.log_text()}")
        with suppress(OSError):  # not listening yet: asked again below
            if serving.send(b"GET /livez HTTP/1.1\r\nHost: test\r\n\r\n").status == 200:
                return
        time.sleep(0.02)
    raise RuntimeError("the server did not answer in time")


def resident_mib(process: subprocess.Popen[bytes]) -> float:
    """Return the memory that *process* holds, in MiB."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    line = next(row for row in status.splitlines() if row.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def open_files(process: subprocess.Popen[bytes]) -> int:
    """Return how many files and sockets *process* holds open."""
    return len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
