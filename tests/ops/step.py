"""The workflow's own shell step, and a far side on loopback that answers it as told.

workflow file --read--> step --bash--> curl --> FarSide        (nothing of the step is written again here)
"""

import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[2]
SECRET = "s3cr3t-of-tests-only-0123456789abcdef"


@dataclass(frozen=True)
class Answer:
    """One answer: *hang* never comes, *drop* closes without a word, *after* is seconds to wait first."""

    status: int = 200
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    drop: bool = False
    after: float = 0


@dataclass
class FarSide:
    """A service on loopback: gives *answers* in turn, the last one for ever, and keeps what it was sent."""

    answers: list[Answer] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""
    stopped: threading.Event = field(default_factory=threading.Event)

    def next_answer(self) -> Answer:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextlib.contextmanager
def serve(side: FarSide, port: int = 0) -> Iterator[None]:
    """Run *side* on loopback until the block ends, on a free port unless *port* is given."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
            """Say nothing."""

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            side.requests.append({"method": "POST", "path": self.path, "headers": dict(self.headers), "body": body})
            answer = side.next_answer()
            if answer.hang:
                side.stopped.wait()
            elif answer.after:
                side.stopped.wait(answer.after)
            if answer.hang or answer.drop:
                self.close_connection = True
                return
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            content = b"" if answer.status == 204 else answer.body.encode()
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            side.requests.append({"method": "GET", "path": self.path, "headers": dict(self.headers), "body": b""})
            self.send_error(405)

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    side.url = f"http://127.0.0.1:{server.server_address[1]}/api/cron/tick"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield
    finally:
        side.stopped.set()
        server.shutdown()
        server.server_close()


@dataclass(frozen=True)
class Outcome:
    code: int
    output: str
    summary: str


class Step:
    """The workflow's shell step, as GitHub would run it."""

    def __init__(self, folder: Path) -> None:
        workflow = YAML(typ="safe").load((ROOT / ".github/workflows/cron-tick.yml").read_text())
        (step,) = workflow["jobs"]["tick"]["steps"]
        self.script = folder / "step.sh"
        self.script.write_text(step["run"])
        self.summary = folder / "summary.md"
        self.bounds = {"CALL_SECONDS": "10", "WAKE_SECONDS": "5", "RETRY_PAUSE": "0", "RUN_SECONDS": "60"}

    def start(self, url: str, secret: str = SECRET, **bounds: str) -> "subprocess.Popen[str]":
        """Begin the step; stdout and stderr come as one text."""
        self.summary.write_text("")
        base = {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "NO_PROXY": "*",
            "GITHUB_STEP_SUMMARY": str(self.summary),
        }
        return subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(self.script)],
            env={**base, "TICK_URL": url, "CRON_SECRET": secret, **self.bounds, **bounds},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, url: str, secret: str = SECRET, **bounds: str) -> Outcome:
        """Run the step to its end."""
        with self.start(url, secret, **bounds) as process:
            output, _ = process.communicate(timeout=60)
        return Outcome(process.returncode, output, self.summary.read_text())


Start = Callable[..., FarSide]
Tool = Callable[..., "subprocess.CompletedProcess[str]"]
