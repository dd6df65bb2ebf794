"""Bad rows are refused where they enter, by a CHECK whose name says what is wrong."""

import asyncpg
import pytest

# Each CHECK with the statements that it alone refuses.
JOBS = {
    "jobs_status_is_known": ["status = 'waiting'", "status = ''", "status = 'READY'"],
    "jobs_kind_is_named": ["kind = ''", "kind = repeat('k', 201)"],
    "jobs_queue_is_named": ["queue = ''", "queue = repeat('q', 201)"],
    "jobs_dedupe_key_is_short": ["dedupe_key = ''", "dedupe_key = repeat('d', 501)"],
    "jobs_payload_is_an_object": ["payload = '[]'", "payload = '1'", "payload = 'null'", "payload = '\"x\"'"],
    "jobs_payload_is_at_most_1_mib": [
        "payload = jsonb_build_object('x', (SELECT string_agg(md5(n::text), '') FROM generate_series(1, 40000) AS n))"
    ],
    "jobs_priority_is_low_normal_or_high": ["priority = 2", "priority = -2"],
    "jobs_max_attempts_is_positive": ["max_attempts = 0", "max_attempts = -1"],
    "jobs_counts_are_not_negative": ["attempts = -1", "crashes = -1", "fence = -1"],
    "jobs_errors_are_a_list": ["errors = '{}'", "errors = 'null'", "errors = '\"x\"'"],
    "jobs_running_means_leased": ["status = 'running'", "locked_until = now()"],
    "jobs_finished_means_a_time": [
        "status = 'done'",
        "status = 'dead'",
        "status = 'cancelled'",
        "status = 'expired'",
        "finished_at = now()",
    ],
    "jobs_times_are_within_the_calendar": [
        "run_at = 'infinity'",
        "run_at = '-infinity'",
        "run_at = 'infinity'",
        "run_at = '0001-12-31 00:00+00 BC'",
        "expires_at = 'infinity'",
        "expires_at = '0001-12-31 00:00+00 BC'",
    ],
}

BOOKINGS = {
    "bookings_id_is_short": ["id = ''", "id = repeat('i', 201)"],
    "bookings_status_is_known": ["status = 'canceled'", "status = ''"],
    "bookings_times_are_within_the_calendar": [
        "starts_at = 'infinity'",
        "ends_at = 'infinity'",
        "starts_at = '-infinity'",
        "starts_at = '0001-12-31 00:00+00 BC'",
    ],
    "bookings_end_is_not_before_the_start": ["ends_at = starts_at - interval '1 microsecond'"],
    "bookings_offsets_are_known": ["remind_before = ARRAY[NULL, '1 hour']::interval[]"],
    "bookings_offsets_are_up_to_366_days": [
        "remind_before = '{0}'",
        "remind_before = '{-1 hour}'",
        "remind_before = '{367 days}'",
        "remind_before = '{1 hour,366 days 1 second}'",
    ],
}

REMINDERS = {
    "reminders_status_is_known": ["status = 'waiting'"],
    "reminders_sent_means_a_time": ["status = 'sent'", "sent_at = now()"],
    "reminders_not_sent_means_a_reason": ["status = 'skipped'", "status = 'failed'", "status = 'uncertain'"],
}

GOOD = {
    "jobs": [
        "status = 'running', locked_until = now()",
        "status = 'done', locked_until = NULL, finished_at = now()",
        "priority = 1",
        "priority = -1",
        "kind = repeat('k', 200), queue = repeat('q', 200), dedupe_key = repeat('d', 500)",
        "run_at = '0001-01-01 00:00+00', expires_at = '9999-12-30 23:59+00'",
    ],
    "bookings": ["ends_at = starts_at", "remind_before = '{366 days}'", "remind_before = '{}'"],
    "reminders": ["status = 'sent', sent_at = now()", "status = 'skipped', sent_at = NULL, reason = 'moved'"],
}

FIRST_ROWS = """
    INSERT INTO jobs (kind) VALUES ('toy');
    INSERT INTO bookings (id, starts_at) VALUES ('b', now());
    INSERT INTO reminders (booking_id, starts_at, remind_before, channel) VALUES ('b', now(), '1 day', 'email')
"""

CHECKS = """
    SELECT conname
    FROM pg_constraint
    WHERE contype = 'c' AND conrelid = $1::text::regclass
"""


@pytest.mark.parametrize(("table", "rules"), [("jobs", JOBS), ("bookings", BOOKINGS), ("reminders", REMINDERS)])
async def test_every_check_refuses_its_bad_row_by_name(conn, table, rules):
    await conn.execute(FIRST_ROWS)

    for rule, bad in rules.items():
        for change in bad:
            with pytest.raises(asyncpg.CheckViolationError) as refused:
                await conn.execute(f"UPDATE {table} SET {change}")  # noqa: S608 - the statements above
            assert refused.value.constraint_name == rule, change

    assert {row["conname"] for row in await conn.fetch(CHECKS, table)} == set(rules)


@pytest.mark.parametrize("table", GOOD)
async def test_a_good_row_at_the_edge_of_a_rule_is_taken(conn, table):
    await conn.execute(FIRST_ROWS)

    for change in GOOD[table]:
        async with conn.transaction():
            done = await conn.execute(f"UPDATE {table} SET {change}")  # noqa: S608 - the statements above
            assert done == "UPDATE 1", change


@pytest.mark.parametrize("column", ["kind", "queue", "payload", "status", "priority", "run_at", "errors", "created_at"])
async def test_what_a_job_must_have_cannot_be_missing(conn, column):
    await conn.execute(FIRST_ROWS)

    with pytest.raises(asyncpg.NotNullViolationError):
        await conn.execute(f"UPDATE jobs SET {column} = NULL")  # noqa: S608 - the columns above


async def test_two_rows_cannot_hold_one_dedupe_key(conn):
    await conn.execute("INSERT INTO jobs (kind, dedupe_key) VALUES ('toy', 'k')")

    with pytest.raises(asyncpg.UniqueViolationError) as refused:
        await conn.execute("INSERT INTO jobs (kind, dedupe_key) VALUES ('toy', 'k')")

    assert refused.value.constraint_name == "jobs_one_row_per_dedupe_key"


async def test_no_foreign_key_leads_to_or_from_jobs(conn):
    count = await conn.fetchval("SELECT count(*) FROM pg_constraint WHERE contype = 'f'")

    assert count == 0
