"""SIGTERM and SIGINT end the process in time, whatever a client has half sent or a job is doing."""

import asyncio
import contextlib
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from tests.web.conftest import CRON_SECRET
from tests.web.serving import Serving, read_answer, request

CRON = f"Authorization: Bearer {CRON_SECRET}"
TICK = request("POST", "/api/cron/tick", CRON)
HALVES = {
    "nothing": b"",
    "half a line": b"GET /liv",
    "half a head": b"POST /api/cron/tick HTTP/1.1\r\nHost: x\r\nX-",
    "half a body": request("POST", "/api/cron/tick", CRON, "Content-Length: 100", body=b'{"jobs":'),
    "a chunk too few": request(
        "POST",
        "/api/cron/tick",
        CRON,
        "Transfer-Encoding: chunked",
        body=b"1\r\n{\r\n",
    ),
}
LIMIT_SECONDS = 5.0  # the servers of these tests have 1 s of grace; the image has 8 s of the host's 10


@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
def test_a_client_that_never_finishes_does_not_keep_the_process(served: Callable[..., Serving], half: bytes) -> None:
    serving = served()
    with serving.connect() as line:
        line.sendall(half)
        assert serving.send(request("GET", "/livez")).status == 200

        assert serving.stop() < LIMIT_SECONDS


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
async def test_a_tick_under_way_is_told_and_still_answers(
    served: Callable[..., Serving], conn: Any, tmp_path: Path, number: int
) -> None:
    serving = served(HANDLER_MODULES="tests.web.shopkeeper")
    started = await _add(conn, "test.wait", tmp_path)
    with serving.connect() as line:
        line.sendall(TICK)
        await _until_there(started)

        serving.process.send_signal(number)
        answer = await asyncio.to_thread(read_answer, line)

    summary = json.loads(answer.body)
    assert (answer.status, summary["stopped_by"], summary["jobs"]["done"]) == (200, "shutdown", 1)
    assert serving.process.wait(LIMIT_SECONDS) is not None


async def test_a_job_that_does_not_listen_is_left_to_its_lease(
    served: Callable[..., Serving], conn: Any, tmp_path: Path
) -> None:
    serving = served(HANDLER_MODULES="tests.web.shopkeeper")
    started = await _add(conn, "test.deaf", tmp_path)
    with serving.connect() as line:
        line.sendall(TICK)
        await _until_there(started)

        took = await asyncio.to_thread(serving.stop)

    row = await conn.fetchrow("SELECT status, locked_until IS NOT NULL AS is_leased FROM jobs")
    assert took < LIMIT_SECONDS
    assert (row["status"], row["is_leased"]) in {("running", True), ("ready", False)}


async def test_a_database_that_is_locked_does_not_keep_the_process(served: Callable[..., Serving], conn: Any) -> None:
    serving = served()
    async with conn.transaction():
        await conn.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
        with serving.connect() as line:
            line.sendall(TICK)
            await _until_true(conn, "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted)")

            assert await asyncio.to_thread(serving.stop) < LIMIT_SECONDS


async def test_no_connection_is_left_behind(served: Callable[..., Serving], conn: Any) -> None:
    serving = served()
    serving.send(TICK)

    await asyncio.to_thread(serving.stop)

    with contextlib.suppress(TimeoutError):  # the next line says how many are left
        await _until_true(conn, "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'dormouse'")
    assert await conn.fetchval("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'dormouse'") == 0


async def _add(conn: Any, kind: str, folder: Path) -> Path:
    """Enqueue a job, and return the file that its handler makes when it starts: a claimed job may still be released."""
    started = folder / "started"
    await conn.execute("INSERT INTO jobs (kind, payload) VALUES ($1, $2)", kind, json.dumps({"started": str(started)}))
    return started


async def _until_there(file: Path) -> None:
    async with asyncio.timeout(10):
        while not file.exists():  # noqa: ASYNC110, ASYNC240 - nothing here could set an event
            await asyncio.sleep(0.01)


async def _until_true(conn: Any, question: str) -> None:
    """Ask the database again and again: it alone knows when another process has got there."""
    async with asyncio.timeout(10):
        while not await conn.fetchval(question):  # noqa: ASYNC110 - nothing here could set an event
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
async def test_the_handler_that_was_there_hears_the_signal_too_and_is_put_back(
    application: FastAPI, number: signal.Signals
) -> None:
    heard: list[int] = []

    def hear(number: int, _frame: object) -> None:
        heard.append(number)

    before = signal.signal(number, hear)
    try:
        async with application.router.lifespan_context(application):
            signal.raise_signal(number)
            async with asyncio.timeout(5):
                await application.state.services.stopping.wait()

        assert heard == [number]
        assert signal.getsignal(number) is hear
    finally:
        signal.signal(number, before)


async def test_a_signal_that_nobody_handled_keeps_its_own_effect(application: FastAPI) -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        async with application.router.lifespan_context(application):
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)


async def test_a_lifespan_beside_the_main_thread_touches_no_signal(application: FastAPI) -> None:
    async def live() -> None:
        async with application.router.lifespan_context(application):
            assert signal.getsignal(signal.SIGTERM) is before

    before = signal.getsignal(signal.SIGTERM)

    await asyncio.to_thread(asyncio.run, live())

    assert application.state.services.stopping.is_set()
