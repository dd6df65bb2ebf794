"""The server that the tests were asked to run on is the one that they run on: PostgreSQL 18, 15, or 15 behind two."""

import asyncio

import asyncpg

VERSIONS = {"embedded": 18, "system": 15, "pgbouncer": 15}


async def test_the_server_is_the_one_that_was_asked_for(request, conn):
    kind = request.config.getoption("--server")

    assert await conn.fetchval("SELECT current_setting('server_version_num')::int / 10000") == VERSIONS[kind]


async def test_a_pooler_gives_two_connections_and_no_session(request, dsn):
    opened = [await asyncpg.connect(dsn, statement_cache_size=0) for _ in range(4)]

    async def look(connection: asyncpg.Connection) -> int:
        async with connection.transaction():
            await connection.execute("SELECT pg_sleep(0.05)")
            pid: int = await connection.fetchval("SELECT pg_backend_pid()")
        return pid

    backends = set(await asyncio.gather(*(look(connection) for connection in opened)))
    for connection in opened:
        await connection.close()

    assert len(backends) == (2 if request.config.getoption("--server") == "pgbouncer" else 4)
