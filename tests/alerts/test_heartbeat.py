"""The dead-man's switch hears each tick, in the form of its service, and never fails or delays one."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from app import tick
from app.errors import DatabaseUnavailable
from app.heartbeat import Event, make_ping
from app.jobs import Job, Kind, enqueue
from app.tick import Budget, Summary
from app.worker import work
from tests.channels.http_server import DROP, HANG, HttpServer, answer, http_server
from tests.servers import free_port

UUID = "11111111-2222-4333-8444-555555555555"
COUNTS = {"done": 3, "dead": 1, "due": 0}


@pytest.fixture
async def monitor() -> AsyncIterator[HttpServer]:
    async with http_server(answer(200)) as server:
        yield server


def calls(server: HttpServer) -> list[tuple[str, str]]:
    """Return method and path of each ping, in order."""
    lines = [request.line.split() for request in server.requests]
    return [(line[0], urlsplit(line[1]).path) for line in lines]


def queries(server: HttpServer) -> list[list[tuple[str, str]]]:
    return [parse_qsl(urlsplit(request.line.split()[1]).query) for request in server.requests]


async def run(services: Any, url: str, seconds: float = 25, **kinds: Kind) -> Summary:
    made = services(kinds, heartbeat_url=url)
    return await tick.run(made, Budget(100, 100, seconds))


async def test_healthchecks_hears_start_and_success_with_one_run_id_and_counts(
    services: Any, monitor: HttpServer, conn: Any
) -> None:
    await enqueue(conn, "note", {"email": "person@example.com"})

    async def take(_job: Job) -> None:
        return

    summary = await run(services, f"{monitor.url}/{UUID}", note=Kind(take))

    assert calls(monitor) == [("POST", f"/{UUID}/start"), ("POST", f"/{UUID}")]
    assert queries(monitor) == [[("rid", summary.tick_id)]] * 2
    body = monitor.requests[1].json
    assert (body["done"], body["dead"], body["errors"]) == (1, 0, 0)
    assert all(isinstance(value, int | float) for value in body.values())


async def test_a_section_that_fails_is_a_fail_ping(services: Any, monitor: HttpServer, conn: Any) -> None:
    await conn.execute("ALTER TABLE tick_totals RENAME TO elsewhere")

    summary = await run(services, f"{monitor.url}/ping/key/slug?create=1")

    assert summary.errors
    assert calls(monitor)[-1] == ("POST", "/ping/key/slug/fail")
    assert queries(monitor)[-1] == [("create", "1"), ("rid", summary.tick_id)]


async def test_a_tick_that_cannot_reach_the_database_is_a_fail_ping(services: Any, monitor: HttpServer) -> None:
    made = services(heartbeat_url=f"{monitor.url}/{UUID}")
    made.database._dsn = f"postgresql://nobody@127.0.0.1:{free_port()}/none"  # noqa: SLF001 - the far side is away
    made.database.connect_timeout = 0.3

    with pytest.raises(DatabaseUnavailable):
        await tick.run(made, Budget(1, 1, 5))

    assert calls(monitor) == [("POST", f"/{UUID}/start"), ("POST", f"/{UUID}/fail")]


async def test_a_dry_run_pings_nobody(services: Any, monitor: HttpServer) -> None:
    made = services(heartbeat_url=monitor.url)

    await tick.run(made, Budget(1, 1, 5, is_dry_run=True))

    assert monitor.requests == []


@pytest.mark.parametrize("failure", [answer(404), answer(500), DROP, b"no HTTP\r\n\r\n"])
async def test_a_monitor_that_is_down_changes_nothing(services: Any, monitor: HttpServer, failure: bytes) -> None:
    monitor.answer = failure

    summary = await run(services, f"{monitor.url}/{UUID}")

    assert (summary.is_ok, summary.stopped_by) == (True, "empty")


async def test_a_monitor_that_hangs_costs_two_seconds_a_ping(services: Any, monitor: HttpServer) -> None:
    monitor.answer = HANG
    started = time.monotonic()

    summary = await run(services, f"{monitor.url}/{UUID}")

    assert time.monotonic() - started < 4.5
    assert summary.is_ok


async def test_a_monitor_that_hangs_never_breaks_the_deadline(services: Any, monitor: HttpServer, conn: Any) -> None:
    monitor.answer = HANG
    await enqueue(conn, "slow")
    started = time.monotonic()

    async def sleep(_job: Job) -> None:
        await asyncio.Event().wait()

    await run(services, f"{monitor.url}/{UUID}", seconds=1, slow=Kind(sleep, timeout=1))

    assert time.monotonic() - started < 2.0


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (Event.START, None),
        (Event.SUCCESS, "https://uptime.betterstack.com/api/v1/heartbeat/t0ken"),
        (Event.FAIL, "https://uptime.betterstack.com/api/v1/heartbeat/t0ken/fail"),
    ],
)
def test_better_stack_knows_success_and_fail_and_no_start(event: Event, expected: str | None) -> None:
    ping = make_ping("https://uptime.betterstack.com/api/v1/heartbeat/t0ken", event, UUID, COUNTS)

    assert (ping.url if ping else None) == expected
    assert ping is None or json.loads(ping.body or b"") == COUNTS


@pytest.mark.parametrize(("event", "state"), [(Event.START, "run"), (Event.SUCCESS, "complete"), (Event.FAIL, "fail")])
def test_cronitor_gets_a_state_a_series_and_metrics_in_its_query(event: Event, state: str) -> None:
    ping = make_ping("https://cronitor.link/p/key/monitor?env=prod", event, UUID, COUNTS)

    assert ping is not None
    query = parse_qsl(urlsplit(ping.url).query)
    assert (urlsplit(ping.url).path, ping.body) == ("/p/key/monitor", None)
    assert query[:3] == [("env", "prod"), ("state", state), ("series", UUID)]
    metrics = [("metric", "count:3"), ("metric", "error_count:1"), ("message", "done 3, dead 1, due 0")]
    assert query[3:] == ([] if event == Event.START else metrics)


async def test_cronitor_hears_run_and_complete(services: Any, monitor: HttpServer) -> None:
    await run(services, f"{monitor.url}/p/key/monitor")

    assert calls(monitor) == [("GET", "/p/key/monitor")] * 2
    assert [dict(query)["state"] for query in queries(monitor)] == ["run", "complete"]


@pytest.mark.parametrize("suffix", ["/", "?a=b#c"])
def test_an_address_keeps_its_query_and_loses_its_last_slash(suffix: str) -> None:
    ping = make_ping(f"https://hc.example.com/ping/{UUID}{suffix}", Event.FAIL, "run", COUNTS)

    assert ping is not None
    assert urlsplit(ping.url).path == f"/ping/{UUID}/fail"
    assert urlsplit(ping.url).query == ("a=b&rid=run" if "?" in suffix else "rid=run")


async def test_a_worker_is_heard_at_its_first_chores_without_a_start(services: Any, monitor: HttpServer) -> None:
    made = services(heartbeat_url=f"{monitor.url}/{UUID}")
    worker = asyncio.create_task(work(made, poll_seconds=0.05, chore_seconds=0.05))
    async with asyncio.timeout(10):
        while not monitor.requests:  # noqa: ASYNC110 - the far side is all that can tell
            await asyncio.sleep(0.01)

    made.stopping.set()
    await worker

    assert calls(monitor) == [("POST", f"/{UUID}")]
