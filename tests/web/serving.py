"""The real server in a process of its own, and raw sockets to talk to it."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.servers import free_port

START_SECONDS = 30.0
ANSWER_SECONDS = 20.0
GRACE_SECONDS = "1"


@dataclass(frozen=True)
class Answer:
    """One HTTP answer as it came over the wire."""

    status: int
    head: str
    body: bytes


@dataclass(frozen=True)
class Serving:
    """A running server: its *port*, its process and the file that its log lines go to."""

    port: int
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def log_text(self) -> str:
        return self.log.read_text(errors="replace")

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), ANSWER_SECONDS)

    def send(self, request: bytes) -> Answer:
        """Send these very bytes and return the first answer; status 0 when the server closed without one."""
        with self.connect() as line:
            line.sendall(request)
            return read_answer(line)

    def stop(self, number: int = signal.SIGTERM) -> float:
        """Send the signal and return the seconds until the process had ended."""
        started = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(ANSWER_SECONDS)
        return time.monotonic() - started


def request(method: str, path: str, *headers: str, body: bytes = b"") -> bytes:
    """Return the bytes of a request; a Content-Length is added unless *headers* name one or a transfer coding."""
    lines = [f"{method} {path} HTTP/1.1", "Host: test", *headers]
    if not any(line.lower().startswith(("content-length", "transfer-encoding")) for line in headers):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def read_answer(line: socket.socket) -> Answer:
    """Read one answer from *line*: head, then the body by its Content-Length."""
    line.settimeout(ANSWER_SECONDS)
    data = b""
    while b"\r\n\r\n" not in data:
        piece = _receive(line)
        if not piece:
            return Answer(0, data.decode("latin-1"), b"")
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    text = head.decode("latin-1")
    length = next((int(row.split(":")[1]) for row in text.lower().split("\r\n") if "content-length" in row), 0)
    while len(body) < length and (piece := _receive(line)):
        body += piece
    return Answer(int(text.split(" ", 2)[1]), text, body)


def _receive(line: socket.socket) -> bytes:
    try:
        return line.recv(65_536)
    except ConnectionResetError:
        return b""


@contextlib.contextmanager
def serve(folder: Path, environment: Mapping[str, str]) -> Iterator[Serving]:
    """Run uvicorn as the image does, on a free port, until the block ends."""
    port, log = free_port(), folder / "server.log"
    command = [sys.executable, "-m", "uvicorn", "app.main:create_app", "--factory", "--port", str(port)]
    command += ["--http", "httptools", "--no-server-header", "--timeout-graceful-shutdown", GRACE_SECONDS]
    with log.open("wb") as lines:
        process = subprocess.Popen(command, env=_clean(environment), stdout=lines, stderr=lines)
        serving = Serving(port, process, log)
        try:
            _await_start(serving)
            yield serving
        finally:
            process.kill()
            process.wait()


def _clean(environment: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG", "PYTHONPATH"}}
    return kept | dict(environment)


def _await_start(serving: Serving) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if serving.process.poll() is not None:
            raise RuntimeError(f"the server ended: {serving.log_text()}")
        with contextlib.suppress(OSError):  # not listening yet: asked again below
            serving.connect().close()
            return
        time.sleep(0.02)
    raise RuntimeError("the server did not open its port in time")
