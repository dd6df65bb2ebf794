"""`dormouse bookings`: look at bookings, add one for a trial, cancel one."""

from typing import Annotated
from uuid import uuid4

import typer

from app.bookings import book
from app.cli import why
from app.cli.output import print_fields, print_json, print_line, print_table
from app.cli.session import on_connection
from app.cli.times import read_delay, read_instant
from app.errors import NotFound

commands = typer.Typer()
group = typer.Typer(help="Look at bookings; add or cancel one.", no_args_is_help=True)
commands.add_typer(group, name="bookings")

COLUMNS = ("id", "starts at", "status", "title", "attendee", "time zone", "locale")
BookingId = Annotated[str, typer.Argument(help="The booking's id.")]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]


@group.command("list")
def list_bookings(
    after: Annotated[str | None, typer.Option(help="Only those that start at this time or later.")] = None,
    after_id: Annotated[str, typer.Option(help="With --after: only beyond this id, the next page.")] = "",
    limit: Annotated[int, typer.Option(help="Most rows.", min=1, max=1000)] = 50,
    *,
    as_json: AsJson = False,
) -> None:
    """List bookings by their start. Exit code 0, also when there are none."""
    place = None if after is None else (read_instant(after), after_id)
    rows = on_connection(lambda connection: book.list_bookings(connection, after=place, limit=limit))
    if as_json:
        print_json([row.as_json() for row in rows])
        return
    print_table(COLUMNS, [_cells(row) for row in rows], empty="No booking fits.")
    if len(rows) == limit:
        print_line(f"There may be more: --after {rows[-1].starts_at.isoformat()} --after-id {rows[-1].id!r}")


def _cells(row: book.Booking) -> tuple[object, ...]:
    attendee = row.attendee_email or row.attendee_name
    return (row.id, row.starts_at, row.status, row.title, attendee, row.time_zone, row.locale)


@group.command()
def show(booking_id: BookingId, *, as_json: AsJson = False) -> None:
    """Show one booking whole. Exit code 5 when there is none."""
    row = on_connection(lambda connection: book.get_booking(connection, booking_id))
    if row is None:
        raise NotFound("there is no booking of this id.")
    _show(row, as_json=as_json)


@group.command()
def cancel(booking_id: BookingId, *, as_json: AsJson = False) -> None:
    """Cancel a booking: what is not sent yet will not be. Exit code 5 when there is none."""
    row = on_connection(lambda connection: book.cancel_booking(connection, booking_id))
    _show(row, as_json=as_json)


@group.command()
def add(
    *,
    starts_at: Annotated[str, typer.Option(help="Start with its offset: 2030-01-31T09:00+07:00.")],
    title: Annotated[str, typer.Option(help="What is booked.")] = "",
    booking_id: Annotated[str | None, typer.Option("--id", help="Your own id; a taken one is replaced.")] = None,
    ends_at: Annotated[str | None, typer.Option(help="End, with its offset.")] = None,
    name: Annotated[str | None, typer.Option(help="The attendee's name.")] = None,
    email: Annotated[str | None, typer.Option(help="The attendee's address.")] = None,
    time_zone: Annotated[str | None, typer.Option(help="IANA zone, such as Asia/Bangkok.")] = None,
    locale: Annotated[str | None, typer.Option(help="Language of the reminder: en, th, …")] = None,
    location: Annotated[str | None, typer.Option(help="Where, or a link.")] = None,
    remind_before: Annotated[str | None, typer.Option(help="24h,1h; without it REMINDER_OFFSETS.")] = None,
    as_json: AsJson = False,
) -> None:
    """Add a booking, or replace the one of the same --id. Exit code 2 when a value is wrong."""
    offsets = None if remind_before is None else tuple(read_delay(part) for part in remind_before.split(","))
    booking = book.NewBooking(
        id=booking_id or str(uuid4()),
        title=title,
        starts_at=read_instant(starts_at),
        ends_at=None if ends_at is None else read_instant(ends_at),
        attendee_name=name,
        attendee_email=email,
        attendee_line_id=None,
        time_zone=time_zone,
        locale=locale,
        location=location,
        remind_before=offsets,
    )
    row, _ = on_connection(lambda connection: book.put_booking(connection, booking))
    _show(row, as_json=as_json)


def _show(row: book.Booking, *, as_json: bool) -> None:
    values = row.as_json()
    if as_json:
        print_json(values)
    else:
        print_fields((name.replace("_", " "), value) for name, value in values.items())


why.add_to_bookings(group)
