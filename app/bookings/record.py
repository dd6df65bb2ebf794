"""What became of one reminder: each verb is one guarded statement, and says whether it was the one that wrote.

planned --freeze--> sending --mark_sent--> sent        mark_unsent: planned again      refuse: failed
                   close: skipped | failed | uncertain           a requeued job freezes what failed anew
"""

import json
from collections.abc import Sequence
from typing import Any

from app.bookings.reminders import ReminderKey, columns
from app.db import Connection

FREEZE = """
    UPDATE reminders
    SET status = 'planned', rendered = coalesce(reminders.rendered, asked.rendered::jsonb), reason = 'sending'
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
        WITH ORDINALITY AS asked (booking_id, starts_at, before_seconds, channel, rendered, place),
        bookings
    WHERE reminders.booking_id = asked.booking_id AND reminders.starts_at = asked.starts_at::timestamptz
        AND reminders.remind_before = make_interval(secs => asked.before_seconds::float8)
        AND reminders.channel = asked.channel AND reminders.status NOT IN ('sent', 'skipped')
        AND bookings.id = reminders.booking_id AND bookings.status = 'confirmed'
        AND bookings.starts_at = reminders.starts_at AND bookings.starts_at > now()
        AND ($6 OR reminders.reason IS DISTINCT FROM 'sending')
    RETURNING asked.place, reminders.rendered::text
"""


async def freeze(
    connection: Connection, items: Sequence[tuple[ReminderKey, dict[str, Any]]], *, may_repeat: bool
) -> list[dict[str, Any] | None]:
    """Keep each reminder's rendered message as what every attempt sends, and return what is kept: the first wins.

    The reminders are marked as being sent: until `mark_sent`, `mark_unsent` or `close`, nobody knows whether one was.
    None where the booking has moved, was cancelled or has started since it was read, or where another attempt is
    sending and this one may not be the second: not *may_repeat*.
    """
    texts = [json.dumps(rendered, ensure_ascii=False) for _, rendered in items]
    kept: list[dict[str, Any] | None] = [None] * len(items)
    for row in await connection.fetch(FREEZE, *columns([key for key, _ in items]), texts, may_repeat):
        kept[row["place"] - 1] = json.loads(row["rendered"])
    return kept


MARK_UNSENT = """
    UPDATE reminders
    SET reason = NULL
    WHERE booking_id = $1 AND starts_at = $2 AND remind_before = $3 AND channel = $4
        AND status <> 'sent' AND reason = 'sending'
"""


async def mark_unsent(connection: Connection, key: ReminderKey) -> None:
    """Record that this attempt surely sent nothing, so that another one cannot be the second."""
    await connection.execute(MARK_UNSENT, key.booking_id, key.starts_at, key.remind_before, key.channel)


MARK_SENT = """
    UPDATE reminders
    SET status = 'sent', sent_at = now(), reason = NULL, provider_id = asked.provider_id
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
        AS asked (booking_id, starts_at, before_seconds, channel, provider_id)
    WHERE reminders.booking_id = asked.booking_id AND reminders.starts_at = asked.starts_at::timestamptz
        AND reminders.remind_before = make_interval(secs => asked.before_seconds::float8)
        AND reminders.channel = asked.channel AND reminders.status <> 'sent'
"""


async def mark_sent(connection: Connection, items: Sequence[tuple[ReminderKey, str | None]]) -> list[None]:
    """Record that the provider took the messages; it is the truth whoever holds the leases by now.

    Each item is a reminder and the provider's own id of the message.
    """
    keys, ids = columns([key for key, _ in items]), [provider_id for _, provider_id in items]
    await connection.execute(MARK_SENT, *keys, ids)
    return [None] * len(items)


REFUSE = """
    UPDATE reminders
    SET status = 'failed', reason = $5,
        rendered = CASE WHEN $6 THEN rendered END,
        idempotency_key = CASE WHEN $6 THEN idempotency_key ELSE gen_random_uuid()::text END
    WHERE booking_id = $1 AND starts_at = $2 AND remind_before = $3 AND channel = $4
        AND status IN ('planned', 'failed', 'uncertain')
"""


async def refuse(connection: Connection, key: ReminderKey, reason: str, *, may_be_sent: bool) -> None:
    """End the reminder as failed: its recipient was refused for *reason*.

    Unless an earlier attempt *may_be_sent*, its bytes and key are given up: whoever corrects the booking and requeues
    the job sends the corrected message.
    """
    await connection.execute(REFUSE, key.booking_id, key.starts_at, key.remind_before, key.channel, reason, may_be_sent)


CLOSE = """
    UPDATE reminders
    SET status = $5, reason = $6
    WHERE booking_id = $1 AND starts_at = $2 AND remind_before = $3 AND channel = $4
        AND status IN ('planned', 'failed', 'uncertain')
"""


async def close(connection: Connection, key: ReminderKey, status: str, reason: str) -> None:
    """End the reminder as *status* (skipped, failed, uncertain) for *reason*, unless it was sent or skipped before."""
    await connection.execute(CLOSE, key.booking_id, key.starts_at, key.remind_before, key.channel, status, reason)
