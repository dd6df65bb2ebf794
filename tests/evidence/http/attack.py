"""Clients without a token that send the worst they can, from a process of their own: `attack.py PORT WHICH`.

    slow     holds 300 connections open, each with something that never ends, and feeds them a byte now and then
    bodies   sends bodies and headers of the worst size and shape, as fast as they are answered

It prints `ready` once all of it is under way and goes on until its standard input is closed.
"""

import asyncio
import itertools
import sys
from collections.abc import Iterator

CONNECTIONS = 300
BYTE_EVERY_SECONDS = 0.5
HOST = "127.0.0.1"
JSON = b"Content-Type: application/json\r\n"
FORM = b"Content-Type: application/x-www-form-urlencoded\r\nSec-Fetch-Site: same-origin\r\n"
NESTED = b"[" + b"[]," * 3_000_000 + b"1]"


def openings() -> Iterator[bytes]:
    """Yield starts of requests, none of which is whole."""
    yield from itertools.cycle(
        (
            b"GET /livez HT",
            b"GET /livez HTTP/1.1\r\nHost: x\r\nX-Long: ",
            b"POST /api/cron/tick HTTP/1.1\r\nHost: x\r\n" + JSON + b"Content-Length: 200000\r\n\r\n[",
            b"POST /api/jobs HTTP/1.1\r\nHost: x\r\n" + JSON + b"Transfer-Encoding: chunked\r\n\r\nff\r\n[",
            b"POST /admin/login HTTP/1.1\r\nHost: x\r\n" + FORM + b"Content-Length: 16000\r\n\r\ntoken=",
            b"",
        )
    )


def worst() -> Iterator[bytes]:
    """Yield whole requests that are as dear as one without a token can be."""
    form = b"&".join(b"%d=%s" % (n, b"%41" * 180) for n in range(30))[:16_384]
    while True:
        yield _post(b"/api/cron/tick", JSON, NESTED)
        yield _post(b"/api/jobs", JSON + b"Authorization: Bearer " + b"x" * 60_000 + b"\r\n", NESTED[:200_000])
        yield b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + b"a:b\r\n" * 12_000 + b"\r\n"
        yield b"GET /" + b"%41/" * 15_000 + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        yield _post(b"/admin/language", FORM, form)
        yield b"GET /admin/login?next=" + b"/a" * 10_000 + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        yield _post(b"/api/admin/jobs/requeue", JSON + b"Transfer-Encoding: chunked\r\n", b"10000\r\n" + b"x" * 65_536)


def _post(path: bytes, headers: bytes, body: bytes) -> bytes:
    length = b"" if b"chunked" in headers else b"Content-Length: %d\r\n" % len(body)
    return b"POST " + path + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + headers + length + b"\r\n" + body


async def hold(port: int, opening: bytes) -> None:
    """Hold one connection; when the server ends it, open the next."""
    while True:
        try:
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(opening)
            answered = asyncio.create_task(reader.read(1))
            while not (await asyncio.wait({answered}, timeout=BYTE_EVERY_SECONDS))[0]:
                writer.write(b"x" if opening else b"")
                await writer.drain()
            writer.close()
        except OSError:
            await asyncio.sleep(BYTE_EVERY_SECONDS)


async def send_all(port: int) -> None:
    """Send one dear request after the other."""
    for raw in worst():
        try:
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(raw)
            async with asyncio.timeout(5):
                await reader.read()
        except (OSError, TimeoutError):
            await asyncio.sleep(0)
        finally:
            writer.close()


async def main(port: int, which: str) -> None:
    """Attack until standard input ends."""
    if which == "slow":
        tasks = [asyncio.create_task(hold(port, opening)) for opening in itertools.islice(openings(), CONNECTIONS)]
    else:
        tasks = [asyncio.create_task(send_all(port)) for _ in range(2)]
    await asyncio.sleep(1)
    print("ready", flush=True)  # noqa: T201 - the test waits for it
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    for task in tasks:
        task.cancel()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
