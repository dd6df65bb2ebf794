"""`dormouse tick`: the same function that POST /api/cron/tick calls, without HTTP."""

import asyncio
from typing import Annotated, Any

import typer

from app.cli import exits
from app.cli.output import print_fields, print_json
from app.cli.session import open_services
from app.config import Settings, load_settings
from app.errors import BadInput
from app.summary import Budget
from app.tick import run

commands = typer.Typer()


@commands.command()
def tick(
    *,
    jobs: Annotated[int | None, typer.Option(help="Most jobs; without it TICK_JOBS.", min=0)] = None,
    reminders: Annotated[int | None, typer.Option(help="Most reminders; without it TICK_REMINDERS.", min=0)] = None,
    budget_seconds: Annotated[float | None, typer.Option(help="Time; without it TICK_BUDGET_SECONDS.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what is due; nothing is run or sent.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Do one bounded batch of what is due: the tick, without HTTP. For a system cron beside the database.

    Exit codes: 0 the summary says ok · 1 it does not: a person is needed · 2 wrong input or settings · 3
    the database cannot be reached · 4 the schema is behind.
    """
    settings = load_settings("DATABASE_URL")
    budget = _budget(settings, jobs, reminders, budget_seconds, dry_run=dry_run)
    summary = asyncio.run(_run(settings, budget))
    if as_json:
        print_json(summary)
    else:
        print_fields(fields_of(summary))
    raise typer.Exit(exits.OK if summary["ok"] else exits.ATTENTION)


async def _run(settings: Settings, budget: Budget) -> dict[str, Any]:
    async with open_services(settings) as services:
        return (await run(services, budget, source="cli")).as_dict()


def _budget(
    settings: Settings, jobs: int | None, reminders: int | None, seconds: float | None, *, dry_run: bool
) -> Budget:
    given: dict[str, tuple[float | None, float, float]] = {
        "--jobs": (jobs, 0, settings.tick_jobs),
        "--reminders": (reminders, 0, settings.tick_reminders),
        "--budget-seconds": (seconds, 1, settings.tick_budget_seconds),
    }
    for name, (value, least, most) in given.items():
        if value is not None and not least <= value <= most:
            raise BadInput(f"{name} is from {least:g} to {most:g}, which a setting decides.")
    return Budget(
        jobs=settings.tick_jobs if jobs is None else jobs,
        reminders=settings.tick_reminders if reminders is None else reminders,
        seconds=settings.tick_budget_seconds if seconds is None else seconds,
        is_dry_run=dry_run,
    )


def fields_of(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the summary as names and short texts: numbers that are 0 are left out."""
    return [(name.replace("_", " "), _short(value)) for name, value in summary.items() if _short(value)]


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return "  ".join(f"{name} {text}" for name, part in value.items() if (text := _short(part)))
    if isinstance(value, list):
        return ", ".join(str(part) for part in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value in {None, 0} else str(value)
