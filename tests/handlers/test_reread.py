"""The book is read again just before each message leaves."""

import asyncio
from datetime import timedelta
from typing import Any

from app.jobs.services import Services
from tests.bookings.shelf import DAY, HOUR, book, move, set_status, states_of
from tests.handlers.provider import Provider
from tests.tick.ticking import tick_once


async def tick_held_at_the_first(made: Services, provider: Provider) -> asyncio.Task[dict[str, Any]]:
    """Begin a tick and wait until its first message is under way."""
    ticking = asyncio.create_task(tick_once(made))
    await provider.arrived(1)
    return ticking


async def test_a_booking_cancelled_while_the_one_before_it_is_sent_is_not_reminded(services, conn, provider):
    made = services(reminder_concurrency=1, **provider.settings)
    await book(conn, "first", HOUR, email="first@example.org")
    await book(conn, "second", 2 * HOUR, email="second@example.org")

    with provider.holding():
        ticking = await tick_held_at_the_first(made, provider)
        await set_status(conn, "second", "cancelled")
    summary = await ticking

    assert provider.recipients == ["first@example.org"]
    assert summary["reminders"]["skipped"]["cancelled"] == 1
    assert await states_of(conn, "second") == [(DAY, "skipped", "cancelled")]


async def test_a_booking_moved_while_the_one_before_it_is_sent_is_reminded_for_its_new_time(services, conn, provider):
    made = services(reminder_concurrency=1, **provider.settings)
    await book(conn, "first", HOUR, email="first@example.org")
    await book(conn, "second", 2 * HOUR, email="second@example.org")

    with provider.holding():
        ticking = await tick_held_at_the_first(made, provider)
        await move(conn, "second", timedelta(minutes=45))
    first, second = await ticking, await tick_once(made)

    assert first["reminders"]["skipped"]["moved"] == 1
    assert second["reminders"]["sent"] == 1
    assert provider.recipients == ["first@example.org", "second@example.org"]


async def test_a_booking_cancelled_between_two_attempts_gets_no_second_one(services, conn, provider):
    made = services(**provider.settings)
    provider.replies = [b"HTTP/1.1 503 X\r\ncontent-length: 0\r\n\r\n"]
    await book(conn, "b", HOUR)
    await tick_once(made)
    await set_status(conn, "b", "cancelled")
    await conn.execute("UPDATE jobs SET run_at = now()")

    summary = await tick_once(made)

    assert len(provider.requests) == 1
    assert summary["reminders"]["skipped"]["cancelled"] == 1


async def test_the_nearest_start_is_sent_first(services, conn, provider):
    made = services(reminder_concurrency=1, **provider.settings)
    await book(conn, "late", 9 * HOUR, email="late@example.org")
    await book(conn, "soon", HOUR, email="soon@example.org")
    await book(conn, "then", 5 * HOUR, email="then@example.org")

    await tick_once(made)

    order = [request.json["to"][0] for request in provider.requests]
    assert order == ["soon@example.org", "then@example.org", "late@example.org"]
