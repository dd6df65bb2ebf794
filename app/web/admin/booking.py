"""One booking: what it says, what became of its reminders, and why."""

from starlette.responses import Response

from app.bookings import why
from app.bookings.book import get_booking
from app.errors import NotFound
from app.web.admin.reminders import promise, read_records
from app.web.admin.times import spell_when
from app.web.admin.visit import Visit


async def show_booking(visit: Visit) -> Response:
    """Show the booking in full."""
    settings = visit.services.settings
    booking = await get_booking(visit.connection, visit.place["booking_id"])
    if booking is None:
        raise NotFound("there is no booking with this id")
    scene = await why.look(visit.connection, booking)
    *rules, advice = why.explain(booking, scene, settings.reminder_offsets)
    records = (await read_records(visit.connection, [booking.id])).get(booking.id, [])
    return visit.render(
        "booking.html",
        booking=booking,
        when_text=spell_when(booking, visit.speech, settings),
        held=promise(booking, records, settings.reminder_offsets, visit.now),
        records=[record for record in records if record.starts_at != booking.starts_at],
        rules=rules,
        advice=advice,
    )
