"""What a tick leaves behind: its row, and its counts added to the sums that outlive every process.

Summary -> ticks (kept for 90 days) + tick_totals (kept for ever), in one statement
"""

from collections.abc import Iterator

from pydantic_core import to_json

from app.db import Connection
from app.log import get_logger
from app.summary import Summary

log = get_logger()

# The sums are locked in the order of their names: two ticks never wait for each other in a circle. A tick that moved
# nothing does not wait for the disk ($7): a server that crashes within the next moment loses a row that says so.
RECORD = """
    WITH unhurried AS MATERIALIZED (
        SELECT set_config('synchronous_commit', 'off', TRUE) WHERE $7
    ),
    old AS MATERIALIZED (
        SELECT id
        FROM ticks
        WHERE started_at < now() - interval '90 days'
        ORDER BY started_at
        LIMIT 100
        FOR UPDATE SKIP LOCKED
    ),
    gone AS (
        DELETE FROM ticks USING old WHERE ticks.id = old.id
    ),
    added AS (
        INSERT INTO tick_totals AS held (name, value)
        SELECT name, number::bigint
        FROM unnest($5::text[], $6::text[]) AS counted (name, number)
        ORDER BY name
        ON CONFLICT (name) DO UPDATE
        SET value = held.value + EXCLUDED.value
    )
    INSERT INTO ticks (id, started_at, finished_at, source, summary)
    SELECT $1::text::uuid, $2::timestamptz, clock_timestamp(), $3::text, $4::text::jsonb
    FROM (SELECT count(*) FROM unhurried) AS is_set
"""


async def record(connection: Connection, summary: Summary) -> None:
    """Leave the tick's row behind and add up what it counted."""
    text, counts = to_json(summary.as_dict()).decode(), dict(_counts(summary))
    names, numbers = list(counts), [str(number) for number in counts.values()]
    row = (summary.tick_id, summary.started_at, summary.source, text)
    await connection.execute(RECORD, *row, names, numbers, list(counts) == ["ticks"])


def log_finished(summary: Summary) -> None:
    """Log the tick in one line: what it did, in counts that are not zero; as an error when a person must act."""
    say = log.info if summary.is_ok else log.error
    say(
        "tick.finished",
        tick_id=summary.tick_id,
        source=summary.source,
        stopped_by=summary.stopped_by,
        duration_ms=summary.duration_ms,
        round_trips=summary.round_trips,
        counts=dict(_counts(summary)),
        attention=summary.attention,
        warnings=summary.warnings,
        failed=sorted({failure["section"] for failure in summary.errors}),
    )


def _counts(summary: Summary) -> Iterator[tuple[str, int]]:
    """Name what is not zero; `ticks` always counts."""
    yield "ticks", 1
    lanes = {"jobs": summary.jobs, "reminders": summary.reminders, "reminders.skipped": summary.skipped}
    for lane, counts in lanes.items():
        yield from ((f"{lane}.{name}", number) for name, number in counts.items() if number)
    rest = {"rescued": summary.rescued, "crashed": summary.crashed, "pruned": summary.pruned}
    rest |= {"alerted": summary.alerted, "errors": len(summary.errors)}
    yield from ((name, number) for name, number in rest.items() if number)
