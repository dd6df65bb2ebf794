"""`dormouse doctor`: looks at all that a tick needs, changes nothing, says what to do about each finding."""

import asyncio
from typing import Annotated

import typer

from app.cli import exits
from app.cli.check_database import check_database
from app.cli.check_settings import check_mail, check_settings
from app.cli.findings import Finding
from app.cli.output import print_json, print_line, print_table

commands = typer.Typer()


@commands.command()
def doctor(*, as_json: Annotated[bool, typer.Option("--json", help="Answer in JSON.")] = False) -> None:
    """Check settings, secrets, kinds, database, pooler, clock, schema, mail and last tick; change nothing.

    Exit codes: 0 nothing is broken (there may be warnings) · 1 something is: each line says what to do.
    """
    findings = asyncio.run(examine())
    is_ok = all(finding.level != "fail" for finding in findings)
    if as_json:
        print_json({"ok": is_ok, "findings": [finding.as_json() for finding in findings]})
    else:
        _show(findings)
    raise typer.Exit(exits.OK if is_ok else exits.ATTENTION)


async def examine() -> list[Finding]:
    """Return every finding, in the order in which to mend them."""
    settings, findings = check_settings()
    if settings is None:
        return findings
    return [*findings, *await check_database(settings), *await check_mail(settings)]


def _show(findings: list[Finding]) -> None:
    rows = [(finding.level, finding.check, finding.says, finding.advice) for finding in findings]
    print_table(("", "check", "finding", "what to do"), rows, empty="")
    counts = {level: sum(finding.level == level for finding in findings) for level in ("fail", "warn")}
    print_line(f"{counts['fail']} to mend, {counts['warn']} to think about.")
