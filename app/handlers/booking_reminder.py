"""`booking.reminder`: send one reminder, or say why it is not sent.

    load -> decide -> freeze -> send -> mark sent        each step may end the run; what is read now is what counts

The message is rendered once and frozen: every retry sends the same bytes under the same key. Where the provider knows
no key and an answer was lost, AMBIGUOUS_SEND decides: retry, or hold the reminder as uncertain for a person.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from pydantic import BaseModel, Field

from app.bookings import record, reminders
from app.bookings.reminders import KIND as REMINDER
from app.bookings.reminders import Owed, ReminderKey
from app.channels import Channel, Message, open_email
from app.channels.suspension import suspend
from app.config import Settings
from app.errors import ChannelSuspended, MaybeSent, NotSent, RecipientRefused
from app.jobs import Job, Kind, Permanent, RetryAfter, Snooze
from app.jobs.together import Together

UNCERTAIN = "uncertain"
TIMEOUT_SECONDS = 15.0
SUSPENDED_LONGEST = 900.0


class Reminder(BaseModel):
    """The payload: the reminder's key."""

    booking_id: str
    starts_at: datetime
    remind_before_seconds: float = Field(gt=0, allow_inf_nan=False)
    channel: str

    def key(self) -> ReminderKey:
        """Return it as the table's key."""
        before = timedelta(seconds=self.remind_before_seconds)
        return ReminderKey(self.booking_id, self.starts_at, before, self.channel)


async def remind(job: Job) -> None:
    """Send the reminder that the payload names, once; note in the job what became of it."""
    key, settings = job.payload.key(), job.services.settings
    owed = await _shared(job).load.ask(key)
    if owed is None or owed.status in ("sent", "skipped"):
        job.note = "settled before"
        return
    reason = skip_reason(owed, key)
    if reason is not None:
        await _close(job, key, "skipped", reason)
        job.note = reason
        return
    if owed.suspended_seconds > 0:
        raise Snooze(min(owed.suspended_seconds + 1, SUSPENDED_LONGEST), "the channel is suspended")
    channel = open_email(settings)
    if owed.was_sending and must_hold(channel, settings):
        await _hold(job, key, "an earlier attempt ended while the message was on its way")
    message = await _frozen(job, key, owed)
    if message is None:
        raise Snooze(0, "the booking or its reminder changed a moment ago")
    await _send(job, key, channel, message, owed)


@dataclass(frozen=True, slots=True)
class _Shared:
    """What reminders that are sent side by side ask of the database together."""

    load: Together[ReminderKey, Owed | None]
    freeze: Together[tuple[ReminderKey, dict[str, Any]], dict[str, Any] | None]
    mark_sent: Together[tuple[ReminderKey, str | None], None]


def _shared(job: Job) -> _Shared:
    shared, database, settings = job.services.shared, job.services.database, job.services.settings
    if REMINDER not in shared:
        shared[REMINDER] = _Shared(
            Together(database, partial(reminders.load, offsets=settings.reminder_offsets)),
            Together(database, partial(record.freeze, may_repeat=not must_hold(open_email(settings), settings))),
            Together(database, record.mark_sent),
        )
    found: _Shared = shared[REMINDER]
    return found


def skip_reason(owed: Owed, key: ReminderKey) -> str | None:
    """Return why this reminder must not go out (cancelled, moved, started, superseded), None when it must."""
    booking = owed.booking
    if booking is None or booking.status != "confirmed":
        return "cancelled"
    if booking.starts_at != key.starts_at:
        return "moved"
    if booking.starts_at <= owed.now:
        return "started"
    return "superseded" if owed.is_superseded else None


def must_hold(channel: Channel, settings: Settings) -> bool:
    """Say whether a message that may have been sent must wait for a person rather than go out again."""
    return settings.ambiguous_send == "hold" and not channel.honours_key


async def _frozen(job: Job, key: ReminderKey, owed: Owed) -> Message | None:
    """Return the message that every attempt sends, None when what was read has changed since."""
    from app.bookings.render import render_reminder  # noqa: PLC0415 - an empty tick must not pay for Babel and Jinja

    settings, booking = job.services.settings, owed.booking
    assert booking is not None  # noqa: S101 - skip_reason has sent a missing booking away
    rendered = owed.rendered
    if rendered is None:
        message_id = f"<{owed.idempotency_key}@dormouse.invalid>"
        try:
            message = render_reminder(
                booking,
                remind_before=key.remind_before,
                settings=settings,
                message_id=message_id,
                now=owed.now,
            )
        except RecipientRefused as error:
            await _refuse(job, key, owed, str(error))
        rendered = message.as_json()
    kept = await _shared(job).freeze.ask((key, rendered))
    return None if kept is None else Message.from_json(kept)


async def _send(job: Job, key: ReminderKey, channel: Channel, message: Message, owed: Owed) -> None:
    try:
        provider_id = await channel.send(message, owed.idempotency_key)
    except RecipientRefused as error:
        await _refuse(job, key, owed, str(error))
    except ChannelSuspended as error:
        async with job.services.database.acquire() as connection:
            await record.mark_unsent(connection, key)
            await suspend(connection, key.channel, error.delay, str(error))
        raise Snooze(min(error.delay + 1, SUSPENDED_LONGEST), str(error)) from error
    except NotSent as error:
        async with job.services.database.acquire() as connection:
            await record.mark_unsent(connection, key)
        if error.delay is not None:
            raise RetryAfter(error.delay, str(error)) from error
        raise
    except MaybeSent as error:
        if must_hold(channel, job.services.settings):
            await _hold(job, key, str(error))
        raise
    else:
        await _shared(job).mark_sent.ask((key, provider_id))
        job.note = "sent"


async def _refuse(job: Job, key: ReminderKey, owed: Owed, reason: str) -> None:
    async with job.services.database.acquire() as connection:
        await record.refuse(connection, key, reason, may_be_sent=owed.was_sending)
    raise Permanent(reason)


async def _hold(job: Job, key: ReminderKey, reason: str) -> None:
    await _close(job, key, UNCERTAIN, reason)
    job.note = UNCERTAIN
    raise Permanent(f"{UNCERTAIN}: {reason}")


async def _close(job: Job, key: ReminderKey, status: str, reason: str) -> None:
    async with job.services.database.acquire() as connection:
        await record.close(connection, key, status, reason)


KIND = Kind(remind, payload=Reminder, timeout=TIMEOUT_SECONDS)
