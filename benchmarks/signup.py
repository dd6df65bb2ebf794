"""The seed example, measured: a signup that sends and shrinks inline, against one that enqueues in its transaction.

    python benchmarks/signup.py

Inline, the request waits for an SMTP server on loopback that takes 1,200 ms and for a resize that takes 800 ms. Queued,
it saves the user and two job rows in one transaction; the next tick over HTTP does the work. Then the SMTP server is
stopped: the signup must not notice, and the mail must go out once the server is back. All of it runs on loopback, on
an embedded PostgreSQL with fsync and synchronous_commit on.
"""

import asyncio
import json
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import asyncpg
from PIL import Image, ImageOps

from app.channels import Message, open_email
from app.cli.demo_jobs import Avatar, Welcome
from app.cli.embedded import embedded_postgres
from app.config import Settings, load_settings
from app.jobs import enqueue
from app.migrate import migrate

SMTP_SECONDS = 1.2
RESIZE_SECONDS = 0.8
INLINE_RUNS = 5
QUEUED_RUNS = 50
WANTED_RATIO = 50
MAKE_USERS = "CREATE TABLE users (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, email text NOT NULL)"
SAVE_USER = "INSERT INTO users (email) VALUES ($1) RETURNING id"
EMAIL = "newcomer@example.com"


@asynccontextmanager
async def slow_smtp(port: int = 0) -> AsyncIterator[tuple[int, list[bytes]]]:
    """Run a mail server that takes 1,200 ms to accept a message; yield its port and what it accepted."""
    accepted: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 ready\r\n")
        while line := await reader.readline():
            verb = line.split()[0].upper()
            if verb == b"DATA":
                writer.write(b"354 go on\r\n")
                accepted.append(await reader.readuntil(b"\r\n.\r\n"))
                await asyncio.sleep(SMTP_SECONDS)
            writer.write(b"221 bye\r\n" if verb == b"QUIT" else b"250 ok\r\n")
            if verb == b"QUIT":
                break
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    try:
        yield server.sockets[0].getsockname()[1], accepted
    finally:
        server.close()


async def sign_up_inline(connection: asyncpg.Connection, settings: Settings, upload: Path, home: Path) -> None:
    """Do all of it while the user waits."""
    user_id = await connection.fetchval(SAVE_USER, EMAIL)
    message = Message(settings.email_from, EMAIL, "Welcome", "Hello", "<p>Hello</p>", "", f"<{user_id}@example.com>")
    await open_email(settings).send(message, f"inline-{user_id}")
    began = time.monotonic()
    await asyncio.to_thread(resize, upload, home / "avatars" / f"inline-{user_id}")
    await asyncio.sleep(max(0.0, RESIZE_SECONDS - (time.monotonic() - began)))


def resize(upload: Path, folder: Path) -> None:
    """Shrink the upload to 256 x 256."""
    folder.mkdir(parents=True)
    with Image.open(upload) as picture:
        ImageOps.fit(picture, (256, 256)).save(folder / "256.webp")


async def sign_up_queued(connection: asyncpg.Connection, upload: Path) -> int:
    """Save the user and two jobs in one transaction: all that the user waits for."""
    async with connection.transaction():
        user_id = int(await connection.fetchval(SAVE_USER, EMAIL))
        await enqueue(connection, "welcome.email", Welcome(user_id, "Newcomer", EMAIL))
        await enqueue(connection, "avatar.resize", Avatar(user_id, upload.name))
    return user_id


def call_tick(port: int, secret: str) -> dict[str, object]:
    """POST /api/cron/tick and return the summary."""
    request = Request(
        f"http://127.0.0.1:{port}/api/cron/tick", method="POST", headers={"Authorization": f"Bearer {secret}"}
    )
    with urlopen(request, timeout=60) as answer:  # noqa: S310 - loopback
        summary: dict[str, object] = json.load(answer)
    return summary


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[int]:
    """Run `dormouse serve` on a free port until the block ends."""
    assert settings.cron_secret is not None  # noqa: S101 - made in main
    assert settings.email_url is not None  # noqa: S101 - made in main
    environment = os.environ | {
        "DATABASE_URL": settings.dsn,
        "CRON_SECRET": settings.cron_secret.get_secret_value(),
        "EMAIL_URL": settings.email_url.get_secret_value(),
        "OUTBOX_DIR": settings.outbox_dir,
        "HANDLER_MODULES": "app.cli.demo_jobs",
        "PORT": str(settings.port),
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "app.cli", "serve", env=environment, stderr=subprocess.DEVNULL
    )
    try:
        yield settings.port
    finally:
        process.terminate()
        await process.wait()


async def free_port() -> int:
    """Return a port of loopback that was free a moment ago."""
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return port


async def wait_until_served(port: int) -> None:
    """Wait for the server's socket, 30 s at most."""
    async with asyncio.timeout(30):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return


async def measure(home: Path, dsn: str) -> bool:
    """Run all parts, print the figures, and return whether every promise held."""
    connection = await asyncpg.connect(dsn)
    await connection.execute(MAKE_USERS)
    upload = home / "uploads" / "photo.png"
    upload.parent.mkdir(parents=True)
    Image.effect_noise((1600, 1200), 64).save(upload)
    held = []
    async with slow_smtp() as (smtp_port, accepted):
        settings = load_settings(
            database_url=dsn,
            cron_secret=secrets.token_hex(24),
            email_url=f"smtp://127.0.0.1:{smtp_port}?tls=none",
            outbox_dir=str(home / "outbox"),
            port=await free_port(),
        )
        async with serving(settings) as port:
            await wait_until_served(port)
            held.append(await compare(connection, settings, upload, home))
            held.append(await drain(connection, settings, home, accepted))
    held.append(await without_smtp(connection, settings, upload, smtp_port))
    await connection.close()
    return all(held)


async def compare(connection: asyncpg.Connection, settings: Settings, upload: Path, home: Path) -> bool:
    """Time both signups, in turn, and print the ratio of their medians."""
    inline, queued = [], []
    for _ in range(INLINE_RUNS):
        began = time.perf_counter()
        await sign_up_inline(connection, settings, upload, home)
        inline.append(1000 * (time.perf_counter() - began))
        for _ in range(QUEUED_RUNS // INLINE_RUNS):
            began = time.perf_counter()
            await sign_up_queued(connection, upload)
            queued.append(1000 * (time.perf_counter() - began))
    print("| signup | median ms | min | max | runs |\n|---|---:|---:|---:|---:|")
    for name, times in (("inline (SMTP 1,200 ms + resize 800 ms)", inline), ("enqueued in the transaction", queued)):
        print(f"| {name} | {statistics.median(times):,.1f} | {min(times):,.1f} | {max(times):,.1f} | {len(times)} |")
    ratio = statistics.median(inline) / statistics.median(queued)
    print(f"\nThe queued signup is {ratio:,.0f} times faster (wanted: at least {WANTED_RATIO}).")
    return ratio >= WANTED_RATIO


async def drain(connection: asyncpg.Connection, settings: Settings, home: Path, accepted: list[bytes]) -> bool:
    """Tick over HTTP until nothing is due, and check that both jobs of every signup were done by it."""
    assert settings.cron_secret is not None  # noqa: S101 - made in measure
    before, ticks, more = len(accepted), 0, True
    while more:
        summary = await asyncio.to_thread(call_tick, settings.port, settings.cron_secret.get_secret_value())
        ticks, more = ticks + 1, bool(summary["more_due"])
    done = await connection.fetchval("SELECT count(*) FROM jobs WHERE status = 'done'")
    avatars = len(list((home / "avatars").glob("[0-9]*/256.webp")))
    mails = len(accepted) - before
    print(f"{QUEUED_RUNS} signups: {done} jobs done by {ticks} tick(s), {mails} mails sent, {avatars} avatars made.")
    return done == 2 * QUEUED_RUNS and mails == avatars == QUEUED_RUNS


async def without_smtp(connection: asyncpg.Connection, settings: Settings, upload: Path, smtp_port: int) -> bool:
    """Sign up while the mail server is down: it works, the mail waits, and goes out when the server is back."""
    assert settings.cron_secret is not None  # noqa: S101 - made in measure
    secret = settings.cron_secret.get_secret_value()
    later = replace_port(settings, await free_port())
    async with serving(later) as port:
        await wait_until_served(port)
        began = time.perf_counter()
        await sign_up_queued(connection, upload)
        took = 1000 * (time.perf_counter() - began)
        down = await asyncio.to_thread(call_tick, port, secret)
        await connection.execute("UPDATE jobs SET run_at = now() WHERE status = 'ready'")
        async with slow_smtp(smtp_port) as (_, accepted):
            back = await asyncio.to_thread(call_tick, port, secret)
    print(
        f"SMTP down: the signup took {took:.1f} ms; that tick did {counts(down)}; "
        f"the first tick with SMTP back did {counts(back)}, {len(accepted)} mail sent."
    )
    return counts(down) == {"done": 1, "retried": 1} and counts(back) == {"done": 1} and len(accepted) == 1


def replace_port(settings: Settings, port: int) -> Settings:
    """Return the same settings for another server."""
    return settings.model_copy(update={"port": port})


def counts(summary: dict[str, object]) -> dict[str, int]:
    """Return how the jobs of a tick ended."""
    jobs = summary["jobs"]
    assert isinstance(jobs, dict)  # noqa: S101 - the summary's own shape
    return {name: count for name, count in jobs.items() if count and name != "claimed"}


def main() -> None:
    """Measure in a folder of its own; exit 1 when a promise did not hold."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with embedded_postgres(home / "server", "signup") as dsn:
            asyncio.run(migrate(dsn))
            sys.exit(0 if asyncio.run(measure(home, dsn)) else 1)


if __name__ == "__main__":
    main()
