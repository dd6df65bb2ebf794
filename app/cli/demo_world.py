"""What happens in the demo's database: an app's own table, a signup, and bookings around the world."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from app.bookings.book import Booking, NewBooking, put_booking
from app.cli.demo_jobs import Avatar, Welcome
from app.db import Connection
from app.jobs import enqueue

PICTURE = (1600, 1200)
UPLOAD_BYTES = 3 * PICTURE[0] * PICTURE[1]
EMAIL = "somchai@example.com"
NAME = "Somchai"


@dataclass(frozen=True)
class Signup:
    """What the signup left: the user's id and how long its transaction took."""

    user_id: int
    milliseconds: float


# title, attendee, zone, locale, hours from now
BOOKINGS = (
    ("นัดตรวจฟัน", "คุณมะลิ", "Asia/Bangkok", "th", 3),
    ("Dental check-up", "Asha", "Asia/Kathmandu", "en", 6),
    ("Haircut", "Robin", "America/New_York", "en", 20),
    ("Bike repair", "Kim", "Europe/Berlin", "en", 23),
    ("Massage", "Lou", "Australia/Lord_Howe", "en", 72),
)
CANCELLED = ("Yoga class", "Sam", "Europe/London", "en", 5)

MAKE_USERS = """
    CREATE TABLE IF NOT EXISTS demo_users (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        email text NOT NULL,
        name text NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now()
    )
"""

LAST_USER = """
    SELECT max(id)
    FROM demo_users
"""


async def last_user(connection: Connection) -> int:
    """Return the id of this run's user."""
    return int(await connection.fetchval(LAST_USER))


COUNT_USERS = """
    SELECT count(*)
    FROM demo_users
"""

# What earlier runs booked is still ahead, perhaps: cancelled, it is not reminded among this run's.
CANCEL_EARLIER = """
    UPDATE bookings
    SET status = 'cancelled'
    WHERE id LIKE 'demo-%' AND status = 'confirmed' AND starts_at > now()
    RETURNING id
"""


async def prepare(connection: Connection) -> int:
    """Make the app's own table and close what earlier runs left open; return how many of them there were."""
    await connection.execute(MAKE_USERS)
    await connection.fetch(CANCEL_EARLIER)
    return int(await connection.fetchval(COUNT_USERS))


def save_upload(home: Path, run: str) -> str:
    """Write the picture that the user uploads, 1600 by 1200, and return its file's name."""
    width, height = PICTURE
    row = bytearray(3 * width)
    row[0::3] = bytes(255 * x // width for x in range(width))
    lines = []
    for y in range(height):
        row[2::3] = bytes([255 * y // height]) * width
        lines.append(bytes(row))
    folder = home / "uploads"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{run}.ppm").write_bytes(b"P6 %d %d 255\n" % PICTURE + b"".join(lines))
    return f"{run}.ppm"


INSERT_USER = """
    INSERT INTO demo_users (email, name)
    VALUES ($1, $2)
    RETURNING id
"""


async def sign_up(connection: Connection, upload: str) -> Signup:
    """Save a user and enqueue their two jobs, in one transaction: all that the request waits for."""
    began = time.perf_counter()
    async with connection.transaction():
        user_id = await connection.fetchval(INSERT_USER, EMAIL, NAME)
        await enqueue(connection, "welcome.email", Welcome(user_id, NAME, EMAIL), dedupe_key=f"welcome:{user_id}")
        await enqueue(connection, "avatar.resize", Avatar(user_id, upload))
    return Signup(user_id, 1000 * (time.perf_counter() - began))


COUNT_WELCOMES = """
    SELECT count(*)
    FROM jobs
    WHERE dedupe_key = $1
"""


async def sign_up_and_fail(connection: Connection) -> int:
    """Enqueue a job in a transaction that then fails, and return how many such jobs there are: none."""
    key = f"welcome:never-{time.time_ns()}"
    transaction = connection.transaction()
    await transaction.start()
    await enqueue(connection, "welcome.email", Welcome(0, NAME, EMAIL), dedupe_key=key)
    await transaction.rollback()
    return int(await connection.fetchval(COUNT_WELCOMES, key))


async def book_around_the_world(connection: Connection, run: str) -> list[Booking]:
    """Put this *run*'s bookings, the last of them cancelled, and return them."""
    start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    rows = []
    for number, (title, name, zone, locale, hours) in enumerate((*BOOKINGS, CANCELLED), 1):
        booking = NewBooking(
            id=f"demo-{run}-{number}",
            title=title,
            starts_at=start + timedelta(hours=hours - 1),
            ends_at=start + timedelta(hours=hours),
            status="cancelled" if title == CANCELLED[0] else "confirmed",
            attendee_name=name,
            attendee_email=f"guest{number}@example.com",
            time_zone=zone,
            locale=locale,
            location="https://example.com/room",
        )
        rows.append((await put_booking(connection, booking))[0])
    return rows
