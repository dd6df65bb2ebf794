"""`dormouse serve` is the server with every wait bounded: it starts without the database and ends at SIGTERM."""

import asyncio
import http.client
import signal
import socket
import time
from typing import Any

import pytest

from tests.cli.conftest import Dormouse, Spawn
from tests.conftest import CRON_SECRET
from tests.servers import free_port

ASLEEP = "postgresql://nobody@127.0.0.1:1/none"


def ask(port: int, method: str, path: str, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        response.read()
        return response
    finally:
        connection.close()


async def up(spawn: Spawn, port: int, **settings: str) -> asyncio.subprocess.Process:
    """Start the server and return when it answers."""
    process = await spawn("serve", "--host", "127.0.0.1", PORT=str(port), CRON_SECRET=CRON_SECRET, **settings)
    async with asyncio.timeout(30):
        while process.returncode is None:
            try:
                await asyncio.to_thread(ask, port, "GET", "/livez")
            except ConnectionError:
                await asyncio.sleep(0.05)
            else:
                return process
    raise AssertionError((await process.communicate())[1].decode())


async def test_it_ticks_with_the_bearer_and_names_no_server(spawn: Spawn, dsn: str) -> None:
    port = free_port()
    process = await up(spawn, port, DATABASE_URL=dsn)

    answer = await asyncio.to_thread(ask, port, "POST", "/api/cron/tick", Authorization=f"Bearer {CRON_SECRET}")

    assert answer.status == 200
    assert answer.getheader("server") is None
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_without_a_database_it_starts_and_a_signal_ends_it_with_0(spawn: Spawn, number: int) -> None:
    process = await up(spawn, free_port(), DATABASE_URL=ASLEEP)

    process.send_signal(number)

    assert await process.wait() == 0


async def test_a_half_sent_request_does_not_hold_up_the_end(spawn: Spawn) -> None:
    port = free_port()
    process = await up(spawn, port, DATABASE_URL=ASLEEP)
    with socket.create_connection(("127.0.0.1", port)) as half:
        half.sendall(b"POST /api/cron/tick HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nAuthorization: Bearer ")
        half.sendall(CRON_SECRET.encode() + b"\r\nContent-Type: application/json\r\n\r\n{")
        await asyncio.to_thread(ask, port, "GET", "/livez")
        began = time.monotonic()

        process.send_signal(signal.SIGTERM)

        assert await process.wait() == 0
        assert time.monotonic() - began < 9.5


async def test_a_taken_port_is_2_and_named(dormouse: Dormouse) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        ended = await dormouse(
            "serve", "--host", "127.0.0.1", "--port", str(port), DATABASE_URL=ASLEEP, CRON_SECRET=CRON_SECRET
        )

    assert ended.code == 2
    assert ended.err == f"dormouse: PORT: cannot listen on 127.0.0.1 port {port}: address already in use.\n"


@pytest.mark.parametrize(
    ("name", "value"), [("EMAIL_URL", "gopher://x"), ("HANDLER_MODULES", "nowhere"), ("CRON_SECRET", "changeme" * 5)]
)
async def test_what_only_the_application_checks_is_2_too(dormouse: Dormouse, name: str, value: str) -> None:
    settings: dict[str, Any] = {"CRON_SECRET": CRON_SECRET, "DATABASE_URL": ASLEEP, name: value}

    ended = await dormouse("serve", "--port", str(free_port()), **settings)

    assert ended.code == 2
    assert ended.err.startswith(f"dormouse: {name}")
    assert "Traceback" not in ended.err
