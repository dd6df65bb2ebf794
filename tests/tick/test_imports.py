"""A tick's cold start pays for what a tick needs and for nothing else."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {
    "typer", "rich", "alembic", "sqlalchemy", "jinja2", "babel", "icalendar", "email_validator", "httpx",
    "aiosmtplib", "apprise", "PIL",
}  # fmt: skip
ONE_TICK = """
import asyncio, json, sys
from app import tick
from app.config import load_settings
from app.db import Database
from app.handlers import load_kinds
from app.jobs.services import Services

async def main():
    settings = load_settings("DATABASE_URL")
    database = Database(settings.dsn)
    services = Services(settings, database, asyncio.Event(), load_kinds(settings))
    summary = await tick.run(services, tick.Budget.from_settings(settings))
    await database.close()
    print(json.dumps([summary.as_dict()["stopped_by"], sorted(sys.modules)]))

asyncio.run(main())
"""
THE_SERVER = """
import json, sys
import uvicorn
from app.main import create_app
create_app()
print(json.dumps(["made", sorted(sys.modules)]))
"""


@pytest.mark.parametrize(
    ("program", "answer"), [(ONE_TICK, "empty"), (THE_SERVER, "made")], ids=["an empty tick", "the server"]
)
def test_it_imports_neither_the_command_line_nor_migrations_nor_what_renders_and_sends(dsn, program, answer):
    wanted = {"DATABASE_URL": dsn, "CRON_SECRET": "0123456789abcdef" * 3, "PYTHONPATH": str(Path.cwd())}
    env = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "TMPDIR")} | wanted

    ran = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)

    said, modules = json.loads(ran.stdout.splitlines()[-1])
    assert said == answer
    # FastAPI itself imports email_validator where it finds it.
    assert HEAVY & {name.split(".")[0] for name in modules} <= ({"email_validator"} if answer == "made" else set())
