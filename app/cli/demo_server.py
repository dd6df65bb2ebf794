"""The demo's service: the real `dormouse serve` in a process of its own, called as a scheduler calls it."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from app.cli.children import end_with_parent, stop
from app.cli.home import environment_without_settings
from app.cli.serving import GRACE_SECONDS, listen
from app.errors import DormouseError

LOOPBACK = "127.0.0.1"
START_SECONDS = 60.0
CALL_SECONDS = 60.0
POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Answer:
    """What the service answered: the status line's number and word, and the body."""

    status: int
    reason: str
    body: Any


@dataclass(frozen=True)
class Service:
    """A running `dormouse serve`."""

    process: "subprocess.Popen[bytes]"
    port: int
    started_in: float

    @property
    def url(self) -> str:
        """The service's address."""
        return f"http://{LOOPBACK}:{self.port}"

    def call(self, method: str, path: str, token: str | None = None) -> Answer:
        """Make one request; raise DormouseError when there is no answer, or none in JSON."""
        connection = HTTPConnection(LOOPBACK, self.port, timeout=CALL_SECONDS)
        try:
            headers = {} if token is None else {"Authorization": f"Bearer {token}", "X-Tick-Source": "demo"}
            connection.request(method, path, headers=headers)
            response = connection.getresponse()
            return Answer(response.status, response.reason, json.loads(response.read() or b"null"))
        except (OSError, HTTPException, ValueError) as error:
            raise DormouseError(f"the server gave no answer ({type(error).__name__}).") from None
        finally:
            connection.close()


@contextmanager
def running_service(settings: dict[str, str], port: int, log: Path) -> Iterator[Service]:
    """Run the server with *settings* on *port* (0 picks a free one) until the block ends.

    Raises DormouseError with the server's last words when it does not come up.
    """
    began = time.monotonic()
    with listen(LOOPBACK, port) as probe:
        port = probe.getsockname()[1]
    process = _start(settings, port, log)
    try:
        _await_answer(Service(process, port, 0.0), log)
        yield Service(process, port, time.monotonic() - began)
    finally:
        stop(process, signal.SIGTERM, GRACE_SECONDS + 4)


def _start(settings: dict[str, str], port: int, log: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-P", "-m", "app.cli", "serve", "--host", LOOPBACK, "--port", str(port)]
    with log.open("wb") as file:
        return subprocess.Popen(  # noqa: S603 - no shell, and no word of it comes from outside
            command,
            env=environment_without_settings() | settings,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,  # Ctrl-C is for the demo, which then stops its server
            preexec_fn=end_with_parent(signal.SIGTERM),  # noqa: PLW1509 - started before any thread of ours
        )


def _await_answer(service: Service, log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while True:
        try:
            service.call("GET", "/livez")
        except DormouseError:
            if service.process.poll() is not None or time.monotonic() > until:
                words = "\n".join(log.read_text(errors="replace").splitlines()[-5:])
                raise DormouseError(f"the server did not come up; its last words:\n{words}") from None
            time.sleep(POLL_SECONDS)
        else:
            return
