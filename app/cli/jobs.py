"""`dormouse jobs`: look at jobs, ask why, send dead ones round again, stop ready ones; here or at a service (--url)."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Annotated, Any

import typer

from app import desk
from app.cli import many, why
from app.cli.output import print_fields, print_json, print_line, print_table
from app.cli.remote import Call, Url, ask
from app.db import Connection

commands = typer.Typer()
group = typer.Typer(help="Look at jobs; requeue or cancel them.", no_args_is_help=True)
commands.add_typer(group, name="jobs")

COLUMNS = ("id", "kind", "status", "queue", "attempts", "run at", "last error")
ERROR_WIDTH = 60
PAGE_OF_API = 100
JobId = Annotated[int, typer.Argument(help="The job's id.", min=1, max=2**63 - 1)]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]


class Status(StrEnum):
    """What a job can be."""

    READY = "ready"
    RUNNING = "running"
    DONE = "done"
    DEAD = "dead"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


@group.command("list")
def list_jobs(
    *,
    status: Annotated[Status | None, typer.Option(help="Only these.")] = None,
    kind: many.Kind = None,
    queue: many.Queue = None,
    error: many.ErrorText = None,
    since: many.Since = None,
    until: many.Until = None,
    before_id: Annotated[int | None, typer.Option(help="Only older than this id: the next page.", min=1)] = None,
    limit: Annotated[int, typer.Option(help="Most rows; 100 with --url.", min=1, max=1000)] = 50,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first. Exit code 0, also when there are none."""
    named = None if status is None else status.value
    wanted = many.read_filter(kind, queue, error, since, until, status=named)
    query = many.query_of(wanted) | {"status": named, "before_id": before_id, "limit": min(limit, PAGE_OF_API)}
    answer = ask(
        url,
        Call("GET", "/jobs", query),
        lambda connection: desk.jobs_page(connection, wanted, before_id=before_id, limit=limit),
    )
    if as_json:
        print_json(answer)
        return
    print_table(COLUMNS, [_cells(row) for row in answer["jobs"]], empty="No job fits.")
    if answer["next"] is not None:
        print_line(f"There may be more: --before-id {answer['next']}")


def _cells(row: dict[str, Any]) -> tuple[object, ...]:
    error = (row["last_error"] or "").partition("\n")[0][:ERROR_WIDTH]
    attempts = f"{row['attempts']}/{row['max_attempts']}"
    return (row["id"], row["kind"], row["status"], row["queue"], attempts, _to_second(row["run_at"]), error)


def _to_second(moment: str) -> str:
    """Return an ISO 8601 text without the fraction, as other tables show times."""
    day, _, rest = moment.partition("T")
    time, sign, offset = rest.partition("+")
    return f"{day} {time.partition('.')[0]}{sign}{offset}"


@group.command()
def show(job_id: JobId, *, url: Url = None, as_json: AsJson = False) -> None:
    """Show one job whole, with its payload and the errors of its attempts. Exit code 5 when there is none."""
    answer = ask(url, Call("GET", f"/jobs/{job_id}"), lambda connection: desk.job(connection, job_id))
    if as_json:
        print_json(answer)
    else:
        print_fields((name.replace("_", " "), value) for name, value in answer.items())


@group.command()
def requeue(job_id: JobId, *, url: Url = None, as_json: AsJson = False) -> None:
    """Send a dead job round again, with its attempts counted anew.

    Exit code 5 when there is no such job, or its state does not allow it.
    """
    _change(job_id, "requeue", desk.requeue_job, url, as_json=as_json)


@group.command()
def cancel(job_id: JobId, *, url: Url = None, as_json: AsJson = False) -> None:
    """Stop a job that is ready. Exit code 5 when there is no such job, or it is not ready any more."""
    _change(job_id, "cancel", desk.cancel_job, url, as_json=as_json)


def _change(
    job_id: int,
    verb: str,
    work: Callable[[Connection, int], Awaitable[dict[str, Any]]],
    url: str | None,
    *,
    as_json: bool,
) -> None:
    answer = ask(url, Call("POST", f"/jobs/{job_id}/{verb}"), lambda connection: work(connection, job_id))
    if as_json:
        print_json(answer)
    else:
        print_line(f"job {job_id} {answer['result']}")


why.add_to_jobs(group)
many.add_to_jobs(group)
