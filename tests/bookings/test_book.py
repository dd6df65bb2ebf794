"""The book keeps what its owner states under the owner's id, and refuses what would mislead a reminder."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.bookings.book import NewBooking, cancel_booking, get_booking, list_bookings, put_booking
from app.errors import BadInput, NotFound
from tests.bookings.shelf import DAY, HOUR, book, plan, states_of

AT_NOON = datetime(2027, 1, 2, 12, tzinfo=UTC)
NEW = NewBooking(id="b", starts_at=AT_NOON, title="Haircut", attendee_email="mali@example.org")
NUL = chr(0)


async def test_what_was_put_can_be_got(conn):
    put, is_new = await put_booking(conn, NEW)

    assert is_new is True
    assert await get_booking(conn, "b") == put
    assert (put.title, put.starts_at, put.status, put.remind_before) == ("Haircut", AT_NOON, "confirmed", None)


async def test_putting_again_changes_the_one_that_is_there(conn):
    await put_booking(conn, NEW)

    put, is_new = await put_booking(conn, replace(NEW, title="Shave", starts_at=AT_NOON + DAY))

    assert is_new is False
    assert (put.title, put.starts_at) == ("Shave", AT_NOON + DAY)
    assert put.updated_at > put.created_at
    assert await conn.fetchval("SELECT count(*) FROM bookings") == 1


async def test_a_cancelled_booking_can_be_cancelled_again_and_confirmed_anew(conn):
    await put_booking(conn, NEW)

    first, second = await cancel_booking(conn, "b"), await cancel_booking(conn, "b")
    anew, _ = await put_booking(conn, NEW)

    assert [first.status, second.status, anew.status] == ["cancelled", "cancelled", "confirmed"]


async def test_what_is_not_there_is_not_found(conn):
    assert await get_booking(conn, "nobody") is None
    with pytest.raises(NotFound):
        await cancel_booking(conn, "nobody")


MISLEADING: list[dict[str, Any]] = [
    {"starts_at": datetime(2027, 1, 2, 12)},  # noqa: DTZ001 - a time without a zone is what must be refused
    {"starts_at": "2027-01-02T12:00:00Z"},
    {"starts_at": 1_800_000_000},
    {"ends_at": AT_NOON - HOUR},
    {"ends_at": datetime(2027, 1, 2, 13)},  # noqa: DTZ001 - the same
    {"status": "pending"},
    {"id": ""},
    {"id": "x" * 201},
    {"title": f"a{NUL}b"},
    {"title": "a\ud800b"},
    {"attendee_name": f"{NUL}"},
    {"remind_before": (timedelta(0),)},
    {"remind_before": (-HOUR,)},
    {"remind_before": (timedelta(days=367),)},
]


async def test_what_would_mislead_is_refused_as_bad_input(conn):
    taken = []

    for wrong in MISLEADING:
        try:
            await put_booking(conn, replace(NEW, **wrong))
            taken.append(wrong)
        except BadInput:
            continue

    assert taken == []
    assert await conn.fetchval("SELECT count(*) FROM bookings") == 0


async def test_bookings_are_listed_by_start_page_by_page(conn):
    for hours, name in ((3, "c"), (1, "a"), (2, "b"), (2, "bb")):
        await book(conn, name, hours * HOUR)
    await conn.execute(
        "UPDATE bookings SET starts_at = (SELECT starts_at FROM bookings WHERE id = 'b') WHERE id = 'bb'"
    )

    first = await list_bookings(conn, limit=2)
    rest = await list_bookings(conn, after=(first[-1].starts_at, first[-1].id), limit=9)

    assert [booking.id for booking in first + rest] == ["a", "b", "bb", "c"]


async def test_a_booking_that_was_rolled_back_is_reminded_of_never(conn):
    transaction = conn.transaction()
    await transaction.start()
    await put_booking(conn, replace(NEW, starts_at=datetime.now(UTC) + HOUR))
    await transaction.rollback()

    planned = await plan(conn)

    assert planned.planned == 0
    assert await states_of(conn, "b") == []
