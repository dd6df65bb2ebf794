"""`dormouse jobs requeue-many` and `cancel-many`: all that fit a filter, step by step, or a dry run of it."""

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any

import typer

from app import desk
from app.cli.output import print_json, print_line
from app.cli.remote import Call, Url, ask
from app.cli.times import read_instant
from app.errors import BadInput
from app.jobs.lists import Filter
from app.jobs.operate import BULK

IDS_SHOWN = 20
WORDS = {"requeue": "requeued", "cancel": "cancelled"}

Kind = Annotated[str | None, typer.Option(help="Only this kind.")]
Queue = Annotated[str | None, typer.Option(help="Only this queue.")]
ErrorText = Annotated[str | None, typer.Option("--error", help="Only with this text in the last error.")]
Since = Annotated[str | None, typer.Option(help="Only changed at this time or later: 2030-01-31T09:00+07:00.")]
Until = Annotated[str | None, typer.Option(help="Only changed before this time.")]
Everything = Annotated[bool, typer.Option("--all", help="No filter: every one of them.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only count and name them.")]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]


def add_to_jobs(group: typer.Typer) -> None:
    """Give *group* the commands that change many jobs."""

    @group.command("requeue-many")
    def requeue_many(
        *,
        kind: Kind = None,
        queue: Queue = None,
        error: ErrorText = None,
        since: Since = None,
        until: Until = None,
        everything: Everything = False,
        dry_run: DryRun = False,
        url: Url = None,
        as_json: AsJson = False,
    ) -> None:
        """Send all dead jobs that fit round again. Exit code 2 without a filter or --all."""
        wanted = read_filter(kind, queue, error, since, until)
        _change("requeue", wanted, is_all=everything, is_dry_run=dry_run, url=url, as_json=as_json)

    @group.command("cancel-many")
    def cancel_many(
        *,
        kind: Kind = None,
        queue: Queue = None,
        error: ErrorText = None,
        since: Since = None,
        until: Until = None,
        everything: Everything = False,
        dry_run: DryRun = False,
        url: Url = None,
        as_json: AsJson = False,
    ) -> None:
        """Stop all ready jobs that fit. Exit code 2 without a filter or --all."""
        wanted = read_filter(kind, queue, error, since, until)
        _change("cancel", wanted, is_all=everything, is_dry_run=dry_run, url=url, as_json=as_json)


def read_filter(
    kind: str | None, queue: str | None, error: str | None, since: str | None, until: str | None, **more: Any
) -> Filter:
    """Return the filter that the options name; raise BadInput for a time that is none."""
    return Filter(
        kind=kind,
        queue=queue,
        error=error,
        since=None if since is None else read_instant(since),
        until=None if until is None else read_instant(until),
        **more,
    )


def query_of(wanted: Filter) -> dict[str, Any]:
    """Return *wanted* as the API takes it, without what is not named."""
    values = {"kind": wanted.kind, "queue": wanted.queue, "error": wanted.error}
    times = {"since": wanted.since, "until": wanted.until}
    values |= {name: moment.isoformat() if moment else None for name, moment in times.items()}
    return {name: value for name, value in values.items() if value is not None}


def _change(verb: str, wanted: Filter, *, is_all: bool, is_dry_run: bool, url: str | None, as_json: bool) -> None:
    if wanted.is_empty != is_all:
        raise BadInput("name a filter (--kind, --queue, --error, --since, --until), or say --all.")
    ids = [job_id for step in _steps(verb, wanted, is_dry_run=is_dry_run, url=url) for job_id in step["ids"]]
    if as_json:
        print_json({"result": WORDS[verb], "dry_run": is_dry_run, "count": len(ids), "ids": ids})
        return
    would = "would be " if is_dry_run else ""
    print_line(f"{len(ids)} {'job' if len(ids) == 1 else 'jobs'} {would}{WORDS[verb]}")
    if ids:
        rest = f" and {len(ids) - IDS_SHOWN} more" if len(ids) > IDS_SHOWN else ""
        print_line(f"newest first: {', '.join(map(str, ids[:IDS_SHOWN]))}{rest}")


def _steps(verb: str, wanted: Filter, *, is_dry_run: bool, url: str | None) -> Iterator[dict[str, Any]]:
    """Go on until no step is left: each is a transaction of its own."""
    before: int | None = None
    while True:
        body = {"filter": query_of(wanted), "all": wanted.is_empty, "dry_run": is_dry_run, "before_id": before}
        work = partial(desk.change_many, verb=verb, wanted=wanted, before_id=before, limit=BULK, is_dry_run=is_dry_run)
        step = ask(url, Call("POST", f"/jobs/{verb}", body=body), work)
        yield step
        if (before := step["next"]) is None:
            return
