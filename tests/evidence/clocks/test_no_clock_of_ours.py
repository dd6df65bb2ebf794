"""No time of this program's goes to the database: read from the source, so that the next statement keeps to it too.

How it is checked: (1) the calls that read the time of day in `app/` are few, and each of them is named here with what
it is for; (2) no function that makes such a call hands anything to a connection; (3) what is measured is measured by
the monotonic clock, whose numbers mean nothing to a database, and no statement takes one: its parameters are seconds.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import app

FOLDER = Path(app.__file__).parent
TIME_OF_DAY = {"now", "utcnow", "today", "time", "time_ns", "localtime", "gmtime", "fromtimestamp"}
OWNERS = {"datetime", "date", "time", "dt", "arrow", "pendulum"}
ASKING = {"fetch", "fetchrow", "fetchval", "execute", "executemany", "copy_records_to_table"}
MONOTONIC = {"monotonic", "perf_counter"}

# Every place that reads the time of day, and why it may.
NAMED = {
    "log.py:_now": "the time on a log line",
    "web/admin/visit.py:render": "the time on a page without a session: the login",
    "cli/check_database.py": "the doctor compares our clock with the database's, and warns",
    "cli/demo_world.py": "the demo's own made-up bookings, and a key that no other run has",
}


def functions() -> Iterator[tuple[str, str, ast.AST]]:
    """Yield every function of the program with its file and its name."""
    for path in sorted(FOLDER.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield str(path.relative_to(FOLDER)), node.name, node


def calls(node: ast.AST, names: set[str], owners: set[str] | None = None) -> list[ast.Call]:
    """Return the calls inside *node* of a method with one of *names*, of one of *owners* if that is asked."""
    return [
        call
        for call in ast.walk(node)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in names
        and (owners is None or (isinstance(call.func.value, ast.Name) and call.func.value.id in owners))
    ]


def is_named(file: str, function: str) -> bool:
    return file in NAMED or f"{file}:{function}" in NAMED


def test_the_time_of_day_is_read_only_where_it_decides_nothing() -> None:
    found = [(file, name) for file, name, node in functions() if calls(node, TIME_OF_DAY, OWNERS)]

    assert [place for place in found if not is_named(*place)] == []
    assert {file for file, _ in found} == {place.partition(":")[0] for place in NAMED}


def test_no_function_that_reads_a_clock_hands_its_time_to_the_database() -> None:
    wrong = []
    for file, name, node in functions():
        for ask in calls(node, ASKING):
            taken = [word.attr for word in ast.walk(ask) if isinstance(word, ast.Attribute)]
            if set(taken) & (TIME_OF_DAY | MONOTONIC) - {"now"} or calls(ask, {"now"}, OWNERS):
                wrong.append((file, name, ask.lineno))

    assert wrong == []


def test_the_rule_would_find_what_it_forbids() -> None:
    bad = ast.parse("async def f(c):\n    await c.execute(CLAIM, datetime.now(UTC), time.time())")

    assert len(calls(bad, TIME_OF_DAY, OWNERS)) == 2
    assert calls(bad, ASKING)
