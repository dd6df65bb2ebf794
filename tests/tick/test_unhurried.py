"""The row of a tick that moved nothing does not wait for the disk; every other one does."""

from app.jobs import Kind, enqueue
from tests.tick.ticking import tick_once

# A deferred trigger runs as the transaction commits: it sees how.
WATCHED = """
    CREATE TABLE seen (how text);
    CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO seen VALUES (current_setting('synchronous_commit'));
        RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER look AFTER INSERT ON ticks DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION look()
"""


async def do_nothing(_job: object) -> None:
    """Be done at once."""


async def test_only_the_record_of_a_tick_that_moved_nothing_is_unhurried(services, connect):
    outside = await connect()
    await outside.execute(WATCHED)
    made = services({"toy": Kind(do_nothing)})

    await tick_once(made)
    await enqueue(outside, "toy")
    await tick_once(made)
    await tick_once(made)

    assert [row["how"] for row in await outside.fetch("SELECT how FROM seen")] == ["off", "on", "off"]
    async with made.database.acquire() as connection:
        assert await connection.fetchval("SELECT current_setting('synchronous_commit')") == "on"
