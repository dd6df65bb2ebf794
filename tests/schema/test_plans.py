"""The hot statements walk the index that was made for them, however much is done and however much is not due."""

import json
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from app.bookings import reminders
from app.jobs import queue, sweep
from app.jobs.browse import survey
from tests.schema.big import DUE, big_dsn

__all__ = ["big_dsn"]

LEASES = [(job_id, 1) for job_id in range(201_000, 201_100)]
OFFSETS = (timedelta(hours=24), timedelta(hours=1))
Call = Callable[[Any], Awaitable[Any]]

# What the program does, and the indexes that it must walk for it.
HOT: dict[str, tuple[Call, set[str]]] = {
    "claim": (lambda it: queue.claim(it, ["default"], ["toy"], 100, 60.0), {"jobs_claim_idx", "jobs_pkey"}),
    "claim of two queues": (
        lambda it: queue.claim(it, ["default", "video"], ["toy"], 10, 60.0),
        {"jobs_claim_idx", "jobs_pkey"},
    ),
    "claim of unknown kinds": (
        lambda it: queue.claim(it, ["default"], ["x"], 100, 60.0),
        {"jobs_claim_idx", "jobs_pkey"},
    ),
    "claim reminders": (
        lambda it: queue.claim_reminders(it, ["toy"], 100, 60.0),
        {"jobs_claim_reminders_idx", "jobs_pkey"},
    ),
    "claim a suspect": (
        lambda it: queue.claim_suspect(it, ["default"], ["toy"], 60.0),
        {"jobs_crashed_idx", "jobs_pkey"},
    ),
    "heartbeat": (lambda it: queue.heartbeat(it, LEASES, 60.0), {"jobs_pkey"}),
    "settle": (lambda it: queue.settle(it, [queue.Verdict(*lease, "done") for lease in LEASES]), {"jobs_pkey"}),
    "rescue": (lambda it: sweep.rescue(it, 1000, 3), {"jobs_lease_idx", "jobs_pkey"}),
    "expire": (lambda it: sweep.expire(it, 1000), {"jobs_expiry_idx", "jobs_pkey"}),
    "prune": (lambda it: sweep.prune(it, 86_400.0, 1000), {"jobs_prune_idx", "jobs_pkey"}),
    "survey": (
        lambda it: survey(it, ["default", "reminders"], ["toy"], 86_400.0),
        {"jobs_claim_idx", "jobs_lease_idx"},
    ),
    "plan": (lambda it: reminders.plan(it, OFFSETS, ["email"], 100), {"bookings_remind_idx"}),
}


class Overheard(Exception):
    """What was about to be sent."""


class Listener:
    """A connection that sends nothing: it tells what it was asked to send."""

    async def fetch(self, statement: str, *arguments: Any, **_options: Any) -> Any:
        raise Overheard(statement, arguments)

    fetchrow = fetchval = execute = fetch


async def sent_by(call: Call) -> tuple[str, tuple[Any, ...]]:
    """Return the statement and the arguments that *call* sends."""
    with pytest.raises(Overheard) as overheard:
        await call(Listener())
    return overheard.value.args


@pytest.fixture
async def big(big_dsn) -> Any:
    """A connection to the large database, in a transaction that is taken back."""
    connection = await asyncpg.connect(big_dsn, statement_cache_size=0, command_timeout=60)
    transaction = connection.transaction()
    await transaction.start()
    yield connection
    await transaction.rollback()
    await connection.close()


async def explain(connection: Any, call: Call, options: str = "") -> list[dict[str, Any]]:
    """Return every node of the plan of what *call* sends."""
    statement, arguments = await sent_by(call)
    text = await connection.fetchval(f"EXPLAIN (FORMAT JSON, COSTS {options}) {statement}", *arguments)
    return list(_nodes(json.loads(text)[0]["Plan"]))


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", []):
        yield from _nodes(inner)


def scans_whole(nodes: list[dict[str, Any]]) -> list[str]:
    scanned = [node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan"]
    return [name for name in scanned if name in {"jobs", "bookings"}]


def indexes(nodes: list[dict[str, Any]]) -> set[str]:
    return {node["Index Name"] for node in nodes if "Index Name" in node}


@pytest.mark.parametrize("name", HOT)
async def test_a_hot_statement_walks_its_index(big, name):
    call, wanted = HOT[name]

    nodes = await explain(big, call)

    assert scans_whole(nodes) == []
    assert wanted <= indexes(nodes)


@pytest.mark.parametrize("name", HOT)
async def test_it_does_so_too_when_the_plan_is_made_without_the_values(big, name):
    call, wanted = HOT[name]
    await big.execute("SET LOCAL plan_cache_mode = force_generic_plan")

    nodes = await explain(big, call)

    assert scans_whole(nodes) == []
    assert wanted <= indexes(nodes)


@pytest.mark.parametrize("name", ["claim", "claim of two queues", "claim reminders", "claim a suspect"])
async def test_a_claim_reads_no_more_rows_than_it_takes(big, name):
    call, _ = HOT[name]

    nodes = await explain(big, call, ", ANALYZE, BUFFERS, TIMING OFF")

    scanned = [node for node in nodes if node.get("Index Name", "").startswith("jobs_c")]
    touched = sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"] for node in scanned
    )
    assert 0 < touched <= 2 * 100 + 20
    assert nodes[0]["Shared Hit Blocks"] + nodes[0]["Shared Read Blocks"] < 10_000


async def test_a_claim_is_quick_while_an_old_snapshot_is_held_open(big, big_dsn):
    reader = await asyncpg.connect(big_dsn)
    async with reader.transaction(isolation="repeatable_read"):
        await reader.fetchval("SELECT count(*) FROM ticks")
        nodes = await explain(big, HOT["claim"][0], ", ANALYZE, TIMING OFF")
    await reader.close()

    assert scans_whole(nodes) == []
    assert nodes[0]["Actual Rows"] == 100


async def test_what_there_is_to_do_is_counted_without_reading_what_is_done_or_not_due(big):
    call, _ = HOT["survey"]

    nodes = await explain(big, call, ", ANALYZE, BUFFERS, TIMING OFF")

    assert nodes[0]["Shared Hit Blocks"] + nodes[0]["Shared Read Blocks"] < 15_000
    assert max(node["Actual Rows"] for node in nodes) <= DUE


# By primary key alone: a table this small may well be read whole for them.
BY_KEY = {"heartbeat", "settle"}


@pytest.mark.parametrize("name", sorted(HOT.keys() - BY_KEY))
async def test_a_new_table_that_nobody_has_analyzed_is_not_read_whole_either(connect, name):
    fresh = await connect()
    await fresh.execute("INSERT INTO jobs (kind, run_at) SELECT 'toy', now() FROM generate_series(1, 5000)")
    call, _ = HOT[name]

    nodes = await explain(fresh, call)

    assert scans_whole(nodes) == []
