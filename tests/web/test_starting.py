"""What is wrong with the settings is told at the start, in one message without a value; the database may sleep."""

import os
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from app.config import Settings
from app.errors import ConfigError
from app.main import create_app
from tests.servers import free_port
from tests.web.serving import Serving, request

GOOD = {"DATABASE_URL": "postgresql://u:canary-pass@127.0.0.1:1/n", "CRON_SECRET": "canary-" + "c" * 40}


def start(**environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "uvicorn", "app.main:create_app", "--factory", "--port", str(free_port())]
    env = {"PATH": os.environ["PATH"]} | {name: value for name, value in (GOOD | environment).items() if value}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize(
    ("environment", "named"),
    [
        ({"CRON_SECRET": ""}, "CRON_SECRET"),
        ({"CRON_SECRET": "canary-short"}, "CRON_SECRET"),
        ({"CRON_SECRET": "canary-changeme-changeme-changeme-changeme"}, "CRON_SECRET"),
        ({"DATABASE_URL": ""}, "DATABASE_URL"),
        ({"DATABASE_URL": "mysql://u:canary@h/n"}, "DATABASE_URL"),
        ({"API_TOKEN": GOOD["CRON_SECRET"]}, "API_TOKEN"),
        ({"TICK_JOBS": "0"}, "TICK_JOBS"),
        ({"EMAIL_URL": "pigeon://canary@h"}, "EMAIL_URL"),
        ({"HANDLER_MODULES": "no.such.module"}, "HANDLER_MODULES"),
    ],
)
def test_a_setting_that_does_not_do_ends_the_start_with_one_message(environment: dict[str, str], named: str) -> None:
    ended = start(**environment)

    lines = ended.stderr.strip().splitlines()
    assert ended.returncode != 0
    assert named in ended.stderr
    assert "Traceback" not in ended.stderr
    assert len(lines) <= 4
    assert "canary" not in ended.stderr


def test_all_that_is_wrong_is_told_at_once() -> None:
    ended = start(CRON_SECRET="short", TICK_JOBS="-1", PORT="x")

    assert all(name in ended.stderr for name in ("CRON_SECRET", "TICK_JOBS", "PORT"))


@pytest.mark.parametrize("missing", ["cron_secret", "database_url"])
def test_an_application_without_its_secret_or_database_is_refused(
    settings: Callable[..., Settings], missing: str
) -> None:
    values = {"database_url": GOOD["DATABASE_URL"], missing: None}

    with pytest.raises(ConfigError, match=missing.upper()):
        create_app(settings(**values))


def test_a_database_that_sleeps_does_not_stop_the_start(served: Callable[..., Serving]) -> None:
    started = time.monotonic()
    serving = served(DATABASE_URL=f"postgresql://u@127.0.0.1:{free_port()}/n")

    answer = serving.send(request("GET", "/livez"))

    assert answer.status == 200
    assert time.monotonic() - started < 15
