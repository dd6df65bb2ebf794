"""What became of one reminder: each verb is one guarded statement, and says whether it was the one that wrote.

planned --freeze--> sending --mark_sent--> sent        mark_unsent: planned again      refuse: failed
                   close: skipped | failed | uncertain           a requeued job freezes what failed anew
"""

import json
from typing import Any

from app.bookings.reminders import ReminderKey
from app.db import Connection

FREEZE = """
    UPDATE reminders
    SET status = 'planned', rendered = coalesce(rendered, $5::text::jsonb), reason = 'sending'
    FROM bookings
    WHERE reminders.booking_id = $1 AND reminders.starts_at = $2 AND reminders.remind_before = $3
        AND reminders.channel = $4 AND reminders.status NOT IN ('sent', 'skipped')
        AND bookings.id = reminders.booking_id AND bookings.status = 'confirmed'
        AND bookings.starts_at = reminders.starts_at AND bookings.starts_at > now()
        AND ($6 OR reminders.reason IS DISTINCT FROM 'sending')
    RETURNING reminders.rendered::text
"""


async def freeze(
    connection: Connection, key: ReminderKey, rendered: dict[str, Any], *, may_repeat: bool
) -> dict[str, Any] | None:
    """Keep *rendered* as what every attempt sends, and return what is kept: the first to write it wins.

    The reminder is marked as being sent: until `mark_sent`, `mark_unsent` or `close`, nobody knows whether it was.
    None when the booking has moved, was cancelled or has started since it was read, or when another attempt is sending
    and this one may not be the second: not *may_repeat*.
    """
    text = json.dumps(rendered, ensure_ascii=False)
    values = (key.booking_id, key.starts_at, key.remind_before, key.channel, text, may_repeat)
    kept = await connection.fetchval(FREEZE, *values)
    return None if kept is None else json.loads(kept)


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
    SET status = 'sent', sent_at = now(), reason = NULL, provider_id = $5
    WHERE booking_id = $1 AND starts_at = $2 AND remind_before = $3 AND channel = $4 AND status <> 'sent'
"""


async def mark_sent(connection: Connection, key: ReminderKey, provider_id: str | None) -> None:
    """Record that the provider took the message; it is the truth whoever holds the lease by now."""
    await connection.execute(MARK_SENT, key.booking_id, key.starts_at, key.remind_before, key.channel, provider_id)


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
