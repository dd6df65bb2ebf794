"""`dormouse jobs`: look at jobs, send a dead one round again, stop one that is ready."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Annotated

import typer

from app.cli.output import print_fields, print_json, print_line, print_table
from app.cli.session import on_connection
from app.db import Connection
from app.errors import NotFound
from app.jobs import browse, lists, operate

commands = typer.Typer()
group = typer.Typer(help="Look at jobs; requeue or cancel them.", no_args_is_help=True)
commands.add_typer(group, name="jobs")

COLUMNS = ("id", "kind", "status", "queue", "attempts", "run at", "last error")
ERROR_WIDTH = 60
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
    status: Annotated[Status | None, typer.Option(help="Only these.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only this kind.")] = None,
    queue: Annotated[str | None, typer.Option(help="Only this queue.")] = None,
    before_id: Annotated[int | None, typer.Option(help="Only older than this id: the next page.", min=1)] = None,
    limit: Annotated[int, typer.Option(help="Most rows.", min=1, max=1000)] = 50,
    *,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first. Exit code 0, also when there are none."""
    wanted = lists.Filter(status=status, kind=kind, queue=queue)
    page = on_connection(lambda connection: lists.list_jobs(connection, wanted, before_id=before_id, limit=limit))
    if as_json:
        print_json({"jobs": [row.as_json() for row in page.rows], "next_before_id": page.next_id})
        return
    print_table(COLUMNS, [_cells(row) for row in page.rows], empty="No job fits.")
    if page.next_id is not None:
        print_line(f"There may be more: --before-id {page.next_id}")


def _cells(row: browse.JobRow) -> tuple[object, ...]:
    error = (row.last_error or "").partition("\n")[0][:ERROR_WIDTH]
    return (row.id, row.kind, row.status, row.queue, f"{row.attempts}/{row.max_attempts}", row.run_at, error)


@group.command()
def show(job_id: JobId, *, as_json: AsJson = False) -> None:
    """Show one job whole, with its payload and the errors of its attempts. Exit code 5 when there is none."""
    row = on_connection(lambda connection: browse.get_job(connection, job_id))
    if row is None:
        raise NotFound(f"there is no job {job_id}.")
    if as_json:
        print_json(row.as_json())
    else:
        print_fields((name.replace("_", " "), value) for name, value in row.as_json().items())


@group.command()
def requeue(job_id: JobId, *, as_json: AsJson = False) -> None:
    """Send a dead job round again, with its attempts counted anew.

    Exit code 5 when there is no such job, or its state does not allow it.
    """
    _change(job_id, operate.requeue, "requeued", as_json=as_json)


@group.command()
def cancel(job_id: JobId, *, as_json: AsJson = False) -> None:
    """Stop a job that is ready. Exit code 5 when there is no such job, or it is not ready any more."""
    _change(job_id, operate.cancel, "cancelled", as_json=as_json)


def _change(job_id: int, work: Callable[[Connection, int], Awaitable[None]], word: str, *, as_json: bool) -> None:
    on_connection(lambda connection: work(connection, job_id))
    if as_json:
        print_json({"id": job_id, "result": word})
    else:
        print_line(f"job {job_id} {word}")
