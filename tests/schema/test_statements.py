"""Every statement of the program is understood by the migrated schema."""

import ast
import re
from pathlib import Path

import asyncpg
import pytest

import app
from app.cli.demo_world import MAKE_USERS

FOLDER = Path(app.__file__).parent
SQL = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH|TRUNCATE)\s", re.IGNORECASE)


def statements() -> dict[str, str]:
    """Return every UPPER_CASE constant of the program that reads like SQL, with its place as its name."""
    found = {}
    for path in sorted(FOLDER.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))):
                    if name.isupper() and SQL.match(text):
                        found[f"{path.relative_to(FOLDER)}:{name}"] = text
    return found


STATEMENTS = statements()


def test_the_statements_are_found():
    named = {place.partition(":")[2] for place in STATEMENTS}

    assert {"CLAIM", "CLAIM_REMINDERS", "CLAIM_SUSPECT", "HEARTBEAT", "SETTLE", "RESCUE", "EXPIRE", "PRUNE"} <= named
    assert {"SURVEY", "ENQUEUE", "ENQUEUE_MANY", "PLAN", "RECORD", "CANCEL", "REQUEUE"} <= named


@pytest.fixture
async def plain(connect) -> asyncpg.Connection:
    """A connection to a database that has the demo's table too."""
    found: asyncpg.Connection = await connect()
    await found.execute(MAKE_USERS)
    return found


async def test_every_statement_is_prepared(plain):
    refused = {}
    for place, text in STATEMENTS.items():
        try:
            await plain.prepare(text)
        except asyncpg.PostgresError as error:
            refused[place] = str(error)

    assert refused == {}


async def test_every_parameter_is_used(plain):
    for place, text in STATEMENTS.items():
        prepared = await plain.prepare(text)
        used = {int(number) for number in re.findall(r"\$(\d+)", text)}

        assert used == set(range(1, len(prepared.get_parameters()) + 1)), place


def test_no_statement_asks_for_every_column():
    for place, text in STATEMENTS.items():
        assert not re.search(r"(SELECT|RETURNING)\s+(\w+\.)?\*", text), place


def test_no_statement_leaves_anything_in_the_session():
    for place, text in STATEMENTS.items():
        assert not re.search(r"pg_advisory_lock|pg_try_advisory_lock\b|\bLISTEN\b|^\s*SET\s", text), place
