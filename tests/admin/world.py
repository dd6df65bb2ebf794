"""A week of a small shop, put into the database by plain SQL: jobs of every status, ticks, bookings and reminders.

Every name and address is of example.com or example.org; the clock is the database's.
"""

import json
from typing import Any

from app.db import Connection

LONG_WORD = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft" * 3
THAI = "นัดหมายตรวจสุขภาพประจำปีสำหรับครอบครัวและแขกผู้มีเกียรติ"
SUMMARY: dict[str, Any] = {
    "ok": True,
    "attention": [],
    "warnings": [],
    "errors": [],
    "version": "0.1.0",
    "stopped_by": "empty",
    "rescued": 0,
    "crashed": 0,
    "pruned": 0,
    "alerted": 0,
    "more_due": False,
    "round_trips": 9,
}

# A tick each 15 minutes, busier by day; a night of 14 hours without any, and each ninth one left out.
ADD_TICKS = """
    INSERT INTO ticks (id, started_at, finished_at, source, summary)
    SELECT tick.id, tick.at, tick.at + interval '1 second', CASE WHEN n % 11 = 0 THEN 'cli' ELSE 'github' END,
        $1::text::jsonb || jsonb_build_object(
            'tick_id', tick.id, 'source', 'github', 'started_at', tick.at, 'duration_ms', 300 + 37 * (n % 40),
            'jobs', jsonb_build_object('claimed', busy + 2, 'done', busy,
                'retried', CASE WHEN n % 7 = 0 THEN 3 ELSE 0 END,
                'dead', CASE WHEN n % 97 = 5 THEN 4 ELSE 0 END, 'snoozed', 0, 'expired', 0, 'lost', 0, 'released', 0),
            'reminders', jsonb_build_object('planned', busy / 3, 'claimed', busy / 3, 'sent', busy / 3, 'retried', 0,
                'failed', CASE WHEN n % 211 = 7 THEN 1 ELSE 0 END, 'uncertain', 0, 'lost', 0, 'released', 0,
                'skipped', jsonb_build_object('cancelled', 0, 'moved', 0, 'started', 0, 'superseded', 1)),
            'attention', CASE WHEN n % 97 = 5 THEN '["jobs_dead"]' ELSE '[]' END::jsonb,
            'warnings', CASE WHEN n % 50 = 9 THEN '["late"]' ELSE '[]' END::jsonb,
            'backlog', jsonb_build_object('due', 0, 'reminders_due', 0, 'capped', FALSE,
                'oldest_due_age_seconds', NULL, 'dead', 3, 'unknown_kinds', '{}'::jsonb),
            'lateness_seconds', jsonb_build_object('p50', busy / 10.0,
                'max', CASE WHEN n % 50 = 9 THEN 2400 ELSE busy * 9 END),
            'tick_gap_seconds', 900
        )
    FROM (
        SELECT n, gen_random_uuid() AS id, now() - n * interval '15 minutes' + interval '12 minutes' AS at,
            greatest(0, 14 + (10 * sin((n + 20) / 15.3))::int + (n * 7919) % 9) AS busy
        FROM generate_series(1, 668) AS n
        WHERE n % 9 <> 4 AND n NOT BETWEEN 230 AND 286
    ) AS tick
"""

ADD_JOBS = """
    INSERT INTO jobs (kind, queue, payload, status, attempts, run_at, created_at, started_at, finished_at, last_error,
        errors, locked_until, crashes, fence, dedupe_key)
    SELECT kind, queue, payload::jsonb, status, attempts, now() + due::interval, now() - interval '2 hours',
        CASE WHEN attempts > 0 THEN now() - interval '20 minutes' END,
        CASE WHEN status NOT IN ('ready', 'running') THEN now() - interval '19 minutes' END, error,
        CASE WHEN error IS NULL THEN '[]' ELSE jsonb_build_array(
            jsonb_build_object('attempt', 1, 'at', now() - interval '50 minutes',
                'error', 'TimeoutError: it ran longer than 10 s'),
            jsonb_build_object('attempt', 2, 'at', now() - interval '19 minutes', 'error', error)
        ) END,
        CASE WHEN status = 'running' THEN now() + interval '40 seconds' END, crashes, attempts, key
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
        $9::text[]) AS job (kind, queue, payload, status, attempts_text, due, error, crashes_text, key)
    CROSS JOIN LATERAL (SELECT attempts_text::int AS attempts, crashes_text::int AS crashes) AS number
"""

ADD_BOOKINGS = """
    INSERT INTO bookings (id, title, starts_at, ends_at, status, attendee_name, attendee_email, time_zone, locale,
        location, created_at, remind_before)
    SELECT id, title, now() + starts::interval, now() + starts::interval + interval '1 hour', status, name, email, zone,
        locale, place, now() - interval '9 days', CASE WHEN own THEN '{48 hours,2 hours}'::interval[] END
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
        $9::text[], $10::text[]) AS b (id, title, starts, status, name, email, zone, locale, place, own_text)
    CROSS JOIN LATERAL (SELECT own_text::boolean AS own) AS flag
"""

ADD_REMINDER = """
    WITH job AS (
        INSERT INTO jobs (kind, queue, payload, status, attempts, run_at, expires_at, started_at, finished_at,
            last_error, errors)
        SELECT 'booking.reminder', 'reminders',
            jsonb_build_object(
                'booking_id', id, 'starts_at', starts_at, 'channel', 'email', 'remind_before_seconds', 86400
            ),
            $3, 1, now() - interval '1 hour', starts_at, now() - interval '1 hour', now() - interval '1 hour',
            CASE WHEN $3 = 'dead' THEN $4 END,
            CASE WHEN $3 = 'dead'
                THEN jsonb_build_array(jsonb_build_object('attempt', 1, 'at', now(), 'error', $4::text))
                ELSE '[]' END
        FROM bookings
        WHERE id = $1 AND $3 <> ''
        RETURNING id
    )
    INSERT INTO reminders (booking_id, starts_at, remind_before, channel, job_id, status, reason, sent_at)
    SELECT bookings.id, bookings.starts_at, interval '24 hours', 'email', (SELECT id FROM job), $2, $4,
        CASE WHEN $2 = 'sent' THEN now() - interval '1 hour' END
    FROM bookings
    WHERE bookings.id = $1
"""

SUSPEND = """
    INSERT INTO channels (name, suspended_until, reason)
    VALUES ('email', now() + interval '42 minutes', 'the provider answers 429: daily quota reached')
"""

JOBS: list[tuple[str, ...]] = [
    ("avatar.resize", "default", '{"user_id": 4711, "sizes": [64, 256]}', "done", "1", "-1 hour", "", "0", ""),
    ("report.build", "default", '{"month": "2026-10"}', "done", "2", "-1 hour", "", "0", "report:2026-10"),
    ("invoice.send", "default", '{"invoice": "R-2026-0815", "total": "1250.00"}', "dead", "8", "-1 hour",
     "ConnectionRefusedError: the accounting service took no connection", "0", "invoice:R-2026-0815"),
    ("avatar.resize", "default", '{"user_id": 4712}', "dead", "3", "-1 hour", "crashed", "3", ""),
    ("search.index", "default", '{"page": 17}', "ready", "1", "20 minutes", "HTTPError: 503 from the index", "0", ""),
    ("welcome.mail", "default", '{"user_id": 4713}', "ready", "0", "-3 minutes", "", "0", ""),
    ("export.zip", "exports", "{}", "running", "1", "-1 minute", "", "0", ""),
    ("old.kind", "default", "{}", "ready", "0", "-2 hours", "", "0", ""),
    ("newsletter.send", "bulk", "{}", "cancelled", "0", "-1 hour", "", "0", ""),
    ("coupon.expire", "default", "{}", "expired", "0", "-1 hour", "", "0", ""),
]  # fmt: skip


async def add_jobs(connection: Connection, jobs: list[tuple[str, ...]]) -> None:
    """Add *jobs*: kind, queue, payload, status, attempts, due from now, error, crashes, dedupe key."""
    columns = [list(column) for column in zip(*jobs, strict=True)]
    for place in (6, 8):
        columns[place] = [value or None for value in columns[place]]
    await connection.execute(ADD_JOBS, *columns)


async def add_bookings(connection: Connection, bookings: list[tuple[str, ...]]) -> None:
    """Add *bookings*: id, title, start from now, status, name, address, zone, locale, place, own offsets."""
    await connection.execute(ADD_BOOKINGS, *(list(column) for column in zip(*bookings, strict=True)))


async def add_ticks(connection: Connection) -> None:
    """Add a week of ticks."""
    await connection.execute(ADD_TICKS, json.dumps(SUMMARY))


async def add_reminder(
    connection: Connection, booking_id: str, status: str, job: str = "", reason: str | None = None
) -> None:
    """Record a reminder of *booking_id* that ended as *status*, with a job of status *job* unless that is empty."""
    await connection.execute(ADD_REMINDER, booking_id, status, job, reason)


# id, title, start from now, status, name, address, zone, locale, place, own offsets (t or f)
BOOKINGS = """
b-1|Haircut|3 hours|confirmed|Mali Example|mali@example.org|Asia/Bangkok|th|Chair 2|f
b-2|Yoga for beginners|30 hours|confirmed|Jo Example|jo@example.org|Europe/Berlin|de||t
b-5|Check-up|20 hours|confirmed|Ann Example|ann@example.org|America/New_York|en||f
b-6|Massage|18 hours|confirmed|Bob Example|bob@example.org|UTC|en||f
b-7|Tasting|-2 hours|confirmed|Cy Example|cy@example.org|UTC|en||f
"""


async def fill(connection: Connection) -> None:
    """Fill the database with a week of a small shop, long words and Thai among it."""
    text = ("wörter " * 30 + LONG_WORD)[:1000] * 10
    payload, error = json.dumps({"text": text, "thai": THAI}, ensure_ascii=False), f"ValueError: {LONG_WORD} {THAI}"
    long = ("import." + LONG_WORD[:150], "q" * 120, payload, "dead", "8", "-1 hour", error[:480], "0", "k" * 300)
    await add_jobs(connection, [*JOBS, long])
    await add_ticks(connection)
    bookings = [tuple(line.split("|")) for line in BOOKINGS.strip().splitlines()]
    bookings += [
        ("b-3", THAI, "50 hours", "confirmed", "มะลิ", "mali@example.org", "Asia/Bangkok", "th", "ห้อง 4", "f"),
        ("b-4", LONG_WORD, "60 hours", "cancelled", LONG_WORD, "long@example.org", "Nowhere/Zone", "xx", "", "f"),
    ]
    await add_bookings(connection, bookings)
    await add_reminder(connection, "b-1", "sent", "done")
    await add_reminder(connection, "b-5", "uncertain", "dead", "the connection broke after the message was sent")
    await add_reminder(connection, "b-6", "failed", "dead", "invalid_recipient")
    await add_reminder(connection, "b-7", "skipped", "", "started")
    await connection.execute(SUSPEND)
