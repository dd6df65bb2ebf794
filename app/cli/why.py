"""`dormouse jobs why` and `dormouse bookings why`: every rule that decides, its result, and what to do."""

from typing import Annotated, Any

import typer

from app import desk
from app.cli.output import console, print_json, print_table, visible
from app.cli.remote import Call, Url, ask, piece
from app.config import load_settings
from app.handlers import load_kinds
from app.jobs.why import WHAT_TO_DO

COLUMNS = ("", "rule", "result")


def add_to_jobs(group: typer.Typer) -> None:
    """Give *group* the command `why` for a job."""

    @group.command("why")
    def why_job(
        job_id: Annotated[int, typer.Argument(help="The job's id.", min=1, max=2**63 - 1)],
        *,
        url: Url = None,
        as_json: Annotated[bool, typer.Option("--json", help="Answer in JSON.")] = False,
    ) -> None:
        """Say why a job has not run, or how it ended: every rule, and what to do. Exit code 5 when there is none.

        At the database, the kinds and queues are those of this environment (HANDLER_MODULES, QUEUES).
        """
        _show(
            ask(url, Call("GET", f"/jobs/{job_id}/why"), lambda connection: _job(connection, job_id)), as_json=as_json
        )


async def _job(connection: Any, job_id: int) -> dict[str, Any]:
    settings = load_settings("DATABASE_URL")
    return await desk.why_job(connection, job_id, settings, load_kinds(settings, is_bounded=False))


def add_to_bookings(group: typer.Typer) -> None:
    """Give *group* the command `why` for a booking."""

    @group.command("why")
    def why_booking(
        booking_id: Annotated[str, typer.Argument(help="The booking's id.")],
        *,
        url: Url = None,
        as_json: Annotated[bool, typer.Option("--json", help="Answer in JSON.")] = False,
    ) -> None:
        """Say why a booking was reminded of, or not yet, or never. Exit code 5 when there is none."""
        call = Call("GET", f"/bookings/{piece(booking_id)}/why")
        _show(ask(url, call, lambda connection: _booking(connection, booking_id)), as_json=as_json)


async def _booking(connection: Any, booking_id: str) -> dict[str, Any]:
    return await desk.why_booking(connection, booking_id, load_settings("DATABASE_URL"))


def _show(answer: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    rules = [rule for rule in answer["rules"] if rule["rule"] != WHAT_TO_DO]
    print_table(COLUMNS, [("!" if rule["is_blocking"] else "", rule["rule"], rule["result"]) for rule in rules], "")
    for rule in answer["rules"]:
        if rule["rule"] == WHAT_TO_DO:
            console().print(visible(f"What to do: {rule['result']}"), markup=False, soft_wrap=True)
