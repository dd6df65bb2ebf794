"""The image's server, a real database and the workflow's step: the three that meet in production."""

import secrets
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.ops.image import image_environment, run_in
from tests.ops.step import Step


@dataclass(frozen=True)
class Served:
    process: "subprocess.Popen[bytes]"
    url: str
    secret: str


@pytest.fixture
def served(image: Path, dsn: str, tmp_path: Path) -> Iterator[Served]:
    """The image's CMD with an environment of its own, on a free port of loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    secret = secrets.token_hex(32)
    given = {"DATABASE_URL": dsn, "CRON_SECRET": secret, "PORT": str(port), "OUTBOX_DIR": str(tmp_path / "outbox")}
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(
            [str(image / "venv/bin/dormouse"), "serve"],
            cwd=image / "srv/dormouse",
            env=image_environment(image) | given,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        ) as process,
    ):
        yield Served(process, f"http://127.0.0.1:{port}", secret)
        process.kill()


def ask(url: str) -> str:
    """GET *url*, waiting for a server that is starting."""
    command = ["curl", "--fail", "--silent", "--show-error", "--noproxy", "*", "--max-time", "20"]
    waiting = ["--retry", "60", "--retry-connrefused", "--retry-delay", "1", "--retry-max-time", "40"]
    return subprocess.run([*command, *waiting, url], capture_output=True, text=True, check=True, timeout=60).stdout


def test_the_workflow_step_ticks_the_image_and_is_green(served: Served, step: Step) -> None:
    outcome = step.run(f"{served.url}/api/cron/tick", served.secret, WAKE_SECONDS="40", RETRY_PAUSE="1")

    assert outcome.code == 0, outcome.output
    assert "## Tick: ok" in outcome.summary
    assert "| claimed | 0 | 0 |" in outcome.summary
    assert "&quot;source&quot;:&quot;github&quot;" in outcome.summary
    assert served.secret not in outcome.output


def test_a_step_with_another_secret_is_red(served: Served, step: Step) -> None:
    outcome = step.run(f"{served.url}/api/cron/tick", "0" * 64, WAKE_SECONDS="40", RETRY_PAUSE="1")

    assert outcome.code == 1
    assert "::error title=Tick::HTTP 401" in outcome.output


def test_sigterm_ends_the_server_in_time_and_nothing_was_written_into_the_image(served: Served, image: Path) -> None:
    before = sorted((image / "srv").rglob("*"))
    ask(f"{served.url}/livez")

    served.process.send_signal(signal.SIGTERM)

    assert served.process.wait(10) == 0
    assert sorted((image / "srv").rglob("*")) == before


def test_migrating_is_a_command_of_the_image(image: Path, dsn: str) -> None:
    migrated = run_in(image, "dormouse", "migrate", DATABASE_URL=dsn)

    assert migrated.returncode == 0, migrated.stderr
