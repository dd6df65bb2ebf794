"""People enqueue from any language: by a plain INSERT and by `enqueue_job`, both as psql sends them."""

import asyncio
from dataclasses import dataclass

import asyncpg
import pytest

from tests.servers import SYSTEM_BIN, embedded_bin

PLAIN = """
    INSERT INTO jobs (kind, payload, dedupe_key)
    VALUES ('welcome.mail', '{"user_id": 7}', 'welcome:7')
    ON CONFLICT (dedupe_key) DO NOTHING
"""


@dataclass
class Said:
    """What psql answered."""

    code: int
    out: str
    err: str


@pytest.fixture
def psql(request, direct_dsn):
    """Send statements as a person does, each in a transaction of its own unless they say BEGIN."""
    folder = embedded_bin() if request.config.getoption("--server") == "embedded" else SYSTEM_BIN

    async def send(*statements: str) -> Said:
        commands = [item for statement in statements for item in ("-c", statement)]
        process = await asyncio.create_subprocess_exec(
            folder / "psql",
            direct_dsn,
            "-X",
            "-q",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            *commands,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        assert process.returncode is not None
        return Said(process.returncode, out.decode().strip(), err.decode())

    return send


async def count(conn: asyncpg.Connection) -> int:
    jobs: int = await conn.fetchval("SELECT count(*) FROM jobs")
    return jobs


async def test_a_plain_insert_enqueues_once_a_key(conn, psql):
    first = await psql(PLAIN)
    again = await psql(PLAIN)

    row = await conn.fetchrow(
        "SELECT status, queue, priority, attempts, max_attempts, run_at <= now() AS due FROM jobs"
    )
    assert first.code == again.code == 0
    assert tuple(row.values()) == ("ready", "default", 0, 0, 8, True)
    assert await count(conn) == 1


async def test_a_plain_insert_needs_a_kind_and_nothing_else(conn, psql):
    said = await psql("INSERT INTO jobs (kind) VALUES ('welcome.mail') RETURNING id, status, payload, dedupe_key")

    assert said.out == "1|ready|{}|"
    assert await count(conn) == 1


async def test_a_plain_insert_is_part_of_the_transaction_it_stands_in(conn, psql):
    await psql("BEGIN", PLAIN, "ROLLBACK")
    rolled_back = await count(conn)
    await psql("BEGIN", PLAIN, "COMMIT")

    assert (rolled_back, await count(conn)) == (0, 1)


async def test_a_bad_plain_insert_says_which_rule_it_breaks(psql):
    said = await psql("INSERT INTO jobs (kind, payload) VALUES ('welcome.mail', '[1]')")

    assert said.code != 0
    assert "jobs_payload_is_an_object" in said.err


async def test_enqueue_job_returns_the_id_and_whether_it_is_new(psql):
    first = await psql("""SELECT * FROM enqueue_job('toy', '{"n": 1}', dedupe_key => 'k')""")
    again = await psql("""SELECT * FROM enqueue_job('toy', '{"n": 2}', dedupe_key => 'k')""")
    other = await psql("SELECT id, is_new FROM enqueue_job('toy')")

    assert first.out == "1|t"
    assert again.out == "1|f"
    assert other.out.endswith("|t")


async def test_enqueue_job_takes_every_argument_by_name(conn, psql):
    said = await psql("""
        SELECT enqueue_job(
            kind => 'toy', payload => '{"n": 1}', dedupe_key => 'k', run_at => '2031-01-01 00:00+00',
            queue => 'video', priority => 1, expires_at => '2031-01-02 00:00+00', max_attempts => 3
        )
    """)

    row = await conn.fetchrow(
        "SELECT kind, payload::text, dedupe_key, extract(year FROM run_at at time zone 'UTC')::int, queue, priority,"
        " extract(day FROM expires_at at time zone 'UTC')::int, max_attempts FROM jobs"
    )
    assert said.out == "(1,t)"
    assert tuple(row.values()) == ("toy", '{"n": 1}', "k", 2031, "video", 1, 2, 3)


async def test_enqueue_job_takes_nulls_for_what_has_a_default_time_or_payload(conn, psql):
    said = await psql("SELECT enqueue_job('toy', NULL, run_at => NULL, dedupe_key => NULL)")

    assert said.code == 0
    assert await conn.fetchval("SELECT payload = '{}' AND run_at <= now() FROM jobs")


async def test_enqueue_job_is_gone_with_the_transaction_that_rolled_back(conn, psql):
    await psql("BEGIN", "SELECT enqueue_job('toy')", "ROLLBACK")

    assert await count(conn) == 0


async def test_enqueue_job_refuses_what_the_table_refuses(psql):
    for call in ("''", "'toy', '[]'", "'toy', priority => 9", "'toy', priority => 99999", "NULL"):
        assert (await psql(f"SELECT enqueue_job({call})")).code != 0


async def test_enqueue_job_runs_as_many_times_as_there_are_rows(conn, psql):
    await psql("SELECT enqueue_job('toy', jsonb_build_object('n', n)) FROM generate_series(1, 25) AS n")

    assert await conn.fetchval("SELECT count(DISTINCT payload) FROM jobs") == 25


async def test_a_key_that_a_repeatable_read_snapshot_cannot_see_is_a_serialization_failure(conn, connect):
    old = await connect()
    transaction = old.transaction(isolation="repeatable_read")
    await transaction.start()
    await old.fetchval("SELECT count(*) FROM jobs")
    await conn.execute("SELECT enqueue_job('toy', dedupe_key => 'k')")

    with pytest.raises(asyncpg.SerializationError):
        await old.execute("SELECT enqueue_job('toy', dedupe_key => 'k')")

    await transaction.rollback()
    assert await count(conn) == 1
