"""A table the size of a year of work, made once: what is done, what is not due, and what is due among it."""

import asyncio
import secrets
from collections.abc import Iterator

import asyncpg
import pytest

from tests.servers import Server

DONE, FUTURE, DUE = 100_000, 100_000, 10_000


def fill(done: int, future: int, due: int) -> str:
    """Return the statements that fill the tables: so many jobs done, not due yet, and due among them."""
    return f"""
        INSERT INTO jobs (kind, queue, priority, status, run_at, finished_at, expires_at, created_at)
        SELECT 'toy',
            CASE WHEN n % 10 = 1 THEN 'video'
                WHEN n % 10 > 1 OR n BETWEEN {done} + 50 AND {done + future} THEN 'default'
                ELSE 'reminders' END,
            n % 3 - 1,
            CASE WHEN n <= {done} THEN 'done' ELSE 'ready' END,
            now() + CASE WHEN n <= {done + future} AND n > {done} THEN 1 ELSE -1 END * n * interval '1 second',
            CASE WHEN n <= {done} THEN now() - n * interval '5 seconds' END,
            CASE WHEN n % 10 = 0 THEN now() + n * interval '2 seconds' END,
            now() - n * interval '1 second'
        FROM generate_series(1, {done + future + due}) AS n;
        UPDATE jobs SET status = 'running', locked_until = now() - interval '1 minute'
        WHERE id % 2500 = 7 AND id > {done};
        UPDATE jobs SET crashes = 1 WHERE id % 5000 = 3 AND status = 'ready';
        UPDATE jobs SET expires_at = now() - interval '1 minute' WHERE id % 5000 = 9 AND status = 'ready';
        INSERT INTO bookings (title, starts_at)
        SELECT 'Haircut', now() + (n - 50000) * interval '10 minutes' FROM generate_series(1, 100000) AS n;
        INSERT INTO ticks (id, started_at, finished_at, source, summary)
        SELECT gen_random_uuid(), now() - n * interval '15 minutes', now() - n * interval '15 minutes', 'test', '{{}}'
        FROM generate_series(1, 1000) AS n
    """  # noqa: S608 - the numbers above


@pytest.fixture(scope="module")
def big_dsn(server: Server) -> Iterator[str]:
    """A database that is filled, vacuumed and analyzed; no test changes it."""
    name = f"big_{secrets.token_hex(6)}"
    asyncio.run(make(server, name, fill(DONE, FUTURE, DUE)))
    yield server.direct(name)
    asyncio.run(drop(server, name))


async def make(server: Server, name: str, statements: str) -> None:
    """Make the database *name*, filled by *statements*."""
    admin = await asyncpg.connect(server.admin_dsn)
    await admin.execute(f'CREATE DATABASE "{name}" TEMPLATE template_dormouse')
    await admin.close()
    inside = await asyncpg.connect(server.direct(name))
    await inside.execute(statements)
    await inside.execute("VACUUM ANALYZE")
    await inside.close()


async def drop(server: Server, name: str) -> None:
    """Remove the database *name*."""
    admin = await asyncpg.connect(server.admin_dsn)
    await admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    await admin.close()
