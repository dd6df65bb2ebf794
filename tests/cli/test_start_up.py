"""A cold start pays only for what it needs."""

import subprocess
import sys
import time

from tests.cli.conftest import environment

UNNEEDED = {"typer", "alembic", "sqlalchemy", "jinja2", "babel", "icalendar", "aiosmtplib", "httpx"}
SERVE_IMPORTS = """
import sys
import app.cli, app.cli.exits, app.cli.serving, uvicorn, app.main
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""
STORY = (
    "import sys, app.cli.program as p; p.build('jobs'); print('app.cli.demo' in sys.modules, 'alembic' in sys.modules)"
)


def test_serving_imports_no_command_line_and_nothing_a_tick_does_not_need() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SERVE_IMPORTS], capture_output=True, text=True, check=True, env=environment()
    )

    assert UNNEEDED.isdisjoint(ran.stdout.split())


def test_only_the_module_of_the_command_is_loaded() -> None:
    ran = subprocess.run([sys.executable, "-c", STORY], capture_output=True, text=True, check=True, env=environment())

    assert ran.stdout == "False False\n"


def test_wrong_settings_end_serve_within_a_second_each_on_its_line() -> None:
    wrong = environment(CRON_SECRET="short", PORT="0", TICK_BUDGET_SECONDS="nan", DATABASE_URL="mysql://x")
    began = time.monotonic()

    ran = subprocess.run(
        [sys.executable, "-m", "app.cli", "serve"], capture_output=True, text=True, check=False, env=wrong
    )

    assert time.monotonic() - began < 1
    assert ran.returncode == 2
    lines = ran.stderr.splitlines()
    assert {line.split(":")[1].strip() for line in lines} == {
        "CRON_SECRET",
        "PORT",
        "TICK_BUDGET_SECONDS",
        "DATABASE_URL",
    }


def test_serve_without_settings_says_what_to_set() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "app.cli", "serve"], capture_output=True, text=True, check=False, env=environment()
    )

    assert ran.returncode == 2
    assert "DATABASE_URL is not set" in ran.stderr
    assert "CRON_SECRET is not set" in ran.stderr
