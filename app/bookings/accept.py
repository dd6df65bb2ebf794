"""What a person decides about a reminder whose answer was lost: it did arrive, so it is not sent again.

uncertain --accept--> sent        (sending it again is requeueing its job)
"""

from app.bookings.reminders import ReminderKey
from app.db import Connection

IS_UNCERTAIN = """
    SELECT EXISTS (
        SELECT 1
        FROM reminders
        WHERE booking_id = $1 AND starts_at = $2 AND remind_before = $3 AND channel = $4 AND status = 'uncertain'
    )
"""


async def is_uncertain(connection: Connection, key: ReminderKey) -> bool:
    """Say whether the reminder under *key* waits for a person."""
    found: bool = await connection.fetchval(IS_UNCERTAIN, key.booking_id, key.starts_at, key.remind_before, key.channel)
    return found


ACCEPT = """
    UPDATE reminders
    SET status = 'sent', sent_at = now(), reason = NULL
    WHERE booking_id = $1 AND starts_at = $2 AND remind_before = $3 AND channel = $4 AND status = 'uncertain'
    RETURNING booking_id
"""


async def accept(connection: Connection, key: ReminderKey) -> bool:
    """Record that the uncertain reminder under *key* was sent; say whether this call was the one that did."""
    done = await connection.fetchval(ACCEPT, key.booking_id, key.starts_at, key.remind_before, key.channel)
    return done is not None
