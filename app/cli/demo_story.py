"""The demo as its reader sees it: short headings, what happens and why, and real output."""

import asyncio
import email
import email.policy
import json
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import asyncpg

from app.cli import demo_world, exits
from app.cli.demo_server import Answer, Service, running_service
from app.cli.embedded import embedded_postgres
from app.cli.exits import say_aside
from app.cli.home import kept_secret
from app.cli.output import console, print_table, visible
from app.errors import DormouseError
from app.jobs.lists import Filter, list_jobs
from app.migrate import HEAD, migrate

Result = TypeVar("Result")

TICK_PATH = "/api/cron/tick"
INLINE_MILLISECONDS = 2040
WINDOW_HOURS = 24
SECRET_FILE = "cron_secret"  # noqa: S105 - the file's name


def tell(home: Path, run: str, port: int, *, once: bool) -> int:
    """Play the demo in *home* and return the exit code; unless *once*, it goes on until a signal ends it."""
    began = time.monotonic()
    heading("A database")
    with embedded_postgres(home, "demo") as dsn:
        applied = asyncio.run(migrate(dsn))
        say(f"PostgreSQL from a wheel, its data in {home}/postgres, up in {time.monotonic() - began:.1f} s.")
        say(f"Migrated to revision {HEAD}." if applied else f"Its schema is at revision {HEAD} from an earlier run.")
        if earlier := on_database(dsn, demo_world.prepare):
            say(f"Users of earlier runs: {earlier}. Their bookings are cancelled now, and this run adds its own.")
        heading("The service")
        with running_service(service_settings(home, dsn), port, home / "server.log") as service:
            say(f"`dormouse serve` answers on {service.url}, {service.started_in:.1f} s after its start.")
            is_good = play(home, run, dsn, service)
            if not once:
                stay(home, dsn, service)
    return exits.OK if is_good else exits.ATTENTION


def service_settings(home: Path, dsn: str) -> dict[str, str]:
    """Return the environment of the demo's server."""
    return {
        "DATABASE_URL": dsn,
        "CRON_SECRET": kept_secret(home, SECRET_FILE),
        "HANDLER_MODULES": "app.cli.demo_jobs",
        "OUTBOX_DIR": str(home / "outbox"),
        "REMINDER_CALENDAR": "buddhist",
    }


def play(home: Path, run: str, dsn: str, service: Service) -> bool:
    """Tell the story from the signup to the second tick; return whether all went as told."""
    old = outbox_files(home)
    show_signup(home, run, dsn)
    show_bookings(run, dsn)
    heading("The first tick")
    first = show_tick(home, service)
    heading("What came of it")
    show_results(home, dsn, new := outbox_files(home) - old)
    heading("The second tick")
    second = show_tick(home, service)
    return judge(first, second, sent=len(new), sent_twice=len(outbox_files(home) - old - new))


def show_signup(home: Path, run: str, dsn: str) -> None:
    heading("A signup")
    upload = demo_world.save_upload(home, run)
    signup = on_database(dsn, lambda connection: demo_world.sign_up(connection, upload))
    say(f"One transaction saved user {signup.user_id} and enqueued two jobs. The request took", end="")
    say(f" {signup.milliseconds:.1f} ms. With SMTP and the picture inside it would take {INLINE_MILLISECONDS:,} ms.")
    left = on_database(dsn, demo_world.sign_up_and_fail)
    say(f"A second signup failed before its commit: its jobs are gone with it ({left} left).")
    rows = on_database(dsn, lambda connection: list_jobs(connection, Filter(status="ready"), limit=10)).rows
    cells = [(row.id, row.kind, row.status, row.payload) for row in reversed(rows)]
    print_table(("job", "kind", "status", "payload"), cells, "")


def show_bookings(run: str, dsn: str) -> None:
    heading("Bookings")
    say("Each attendee has a zone and a language. Due: confirmed, and starting within the next 24 hours.")
    rows = on_database(dsn, lambda connection: demo_world.book_around_the_world(connection, run))
    cells = []
    for row in rows:
        zone = row.time_zone or "UTC"
        local = row.starts_at.astimezone(ZoneInfo(zone))
        cells.append((row.title, row.attendee_name, f"{local:%a %d %b %H:%M}", zone, row.locale, row.status))
    print_table(("booking", "attendee", "starts (theirs)", "zone", "locale", "status"), cells, "")


def show_tick(home: Path, service: Service) -> Any:
    say(f'$ curl -X POST -H "Authorization: Bearer $(cat {home}/{SECRET_FILE})" {service.url}{TICK_PATH}')
    answer: Answer = service.call("POST", TICK_PATH, kept_secret(home, SECRET_FILE))
    say(f"HTTP/1.1 {answer.status} {answer.reason}")
    say(drawn(answer.body))
    if answer.status != HTTPStatus.OK:
        raise DormouseError(f"the tick was refused: the server's log is {home}/server.log.")
    return answer.body


def drawn(summary: dict[str, Any]) -> str:
    """Return *summary* as JSON with one line a field: the form in which the manual draws it."""
    lines = (f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in summary.items())
    return "{\n" + ",\n".join(lines) + "\n}"


def show_results(home: Path, dsn: str, files: set[Path]) -> None:
    messages = [(path, read_headers(path)) for path in sorted(files)]
    rows = [(message["to"], message["subject"], path.name) for path, message in messages]
    say(f"{len(rows)} messages: the welcome, and a reminder for each booking that was due, in its zone and language.")
    print_table(("to", "subject", f"file in {home}/outbox/"), sorted(rows), "No message.")
    user_id = on_database(dsn, demo_world.last_user)
    for path in sorted((home / "avatars" / str(user_id)).glob("[!.]*")):
        size = path.stat().st_size
        say(f"The picture, {demo_world.UPLOAD_BYTES:,} bytes when it was uploaded, is {path} now: {size:,} bytes.")
        if path.suffix != ".webp":
            say("It was kept as it is: shrinking it needs Pillow (pip install pillow).")


def judge(first: Any, second: Any, *, sent: int, sent_twice: int) -> bool:
    """Say whether both ticks did what the demo promises."""
    reminders = sum(1 for booking in demo_world.BOOKINGS if booking[-1] < WINDOW_HOURS)
    good = (
        first["ok"] is True
        and second["ok"] is True
        and sent >= reminders + 1
        and sent_twice == 0
        and second["reminders"]["sent"] == 0
    )
    if good:
        say(f"Nothing was due any more: {sent} messages before, the same {sent} now. Nothing was sent twice.")
    else:
        say_aside("this is not what the demo promises: see the summaries above and .dormouse/server.log.")
    return good


def stay(home: Path, dsn: str, service: Service) -> None:
    """Say what there is to look at and wait for a signal, or for the server's end."""
    heading("Still up")
    say(f"  curl {service.url}/readyz")
    say(f"  ls {home}/outbox/")
    say(f"  DATABASE_URL='{dsn}' dormouse jobs list")
    say("Ctrl-C ends the service and the database. Run it again: it adds a new user and new bookings.")
    service.process.wait()


def heading(text: str) -> None:
    console().print(f"\n[bold]{text}[/bold]\n[dim]{'─' * len(text)}[/dim]")


def say(text: str, end: str = "\n") -> None:
    console().print(visible(text), markup=False, soft_wrap=True, end=end)


def on_database(dsn: str, work: Callable[[Any], Awaitable[Result]]) -> Result:
    """Return what *work* returns on a connection of the app's own."""

    async def connect_and_work() -> Result:
        connection = await asyncpg.connect(dsn, statement_cache_size=0)
        try:
            return await work(connection)
        finally:
            await connection.close()

    return asyncio.run(connect_and_work())


def outbox_files(home: Path) -> set[Path]:
    return set((home / "outbox").glob("*.eml"))


def read_headers(path: Path) -> Any:
    return email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
