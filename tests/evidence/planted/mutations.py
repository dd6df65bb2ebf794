"""Bugs that queues have shipped, planted into the running code: each is one rule taken away, and nothing else.

A statement is changed in its constant, a function in its module; what is changed must be there, so that a planted bug
cannot fade when the code is rewritten.
"""

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable, Iterable
from types import ModuleType
from typing import Any

import pytest

from app.bookings import record, reminders
from app.handlers import booking_reminder
from app.jobs import crew, operate, queue, runner, sweep
from app.jobs.settler import Settler
from tests.evidence.explorer.explore import Explorer
from tests.evidence.explorer.gated import GatedConnection

# The package's own name for it is the function.
enqueue = sys.modules["app.jobs.enqueue"]
LOCK = r"FOR NO KEY UPDATE SKIP LOCKED"
SETTLES = ("SETTLE", "SETTLE_DONE")
CLAIMS = ("CLAIM", "CLAIM_REMINDERS", "CLAIM_SUSPECT")
APP_CLOCK_SECONDS = -600.0
Plant = Callable[[pytest.MonkeyPatch, Explorer], Awaitable[None] | None]


def edit(patch: pytest.MonkeyPatch, module: ModuleType, name: str, pattern: str, by: str = "") -> None:
    """Replace what *pattern* finds in the statement *name* of *module*; it must find something."""
    text, found = re.subn(pattern, by, getattr(module, name))
    assert found, f"{module.__name__}.{name} no longer holds {pattern}: plant this bug anew"
    patch.setattr(module, name, text)


def claim_without_a_lock(patch: pytest.MonkeyPatch, _explorer: Explorer) -> None:
    """Two ticks pick the same rows."""
    for name in CLAIMS:
        edit(patch, queue, name, LOCK)


def the_fence_stays_when_claimed(patch: pytest.MonkeyPatch, _explorer: Explorer) -> None:
    """The second claim of a job looks like the first."""
    for name in CLAIMS:
        edit(patch, queue, name, r"fence = fence \+ 1, ")


def settle_by_id_only(patch: pytest.MonkeyPatch, _explorer: Explorer) -> None:
    """Whoever once held a job may end it."""
    for name in SETTLES:
        edit(patch, queue, name, r"((?:JOIN jobs ON|WHERE) jobs\.id = item\.id) AND .*", r"\1")


def settle_without_a_look_at_the_state(patch: pytest.MonkeyPatch, _explorer: Explorer) -> None:
    """A job that was rescued, and waits, is ended by the one that lost it."""
    for name in SETTLES:
        edit(patch, queue, name, r" AND jobs\.status(?: \|\| '')? = 'running'")


def attempts_are_counted_on_failure(patch: pytest.MonkeyPatch, _explorer: Explorer) -> None:
    """A job that kills its process never runs out of attempts."""
    for name in CLAIMS:
        edit(patch, queue, name, r"attempts = attempts \+ 1, ")
    change = r"attempts = attempts - CASE WHEN outcome IN \('snoozed', 'released'\)"
    edit(patch, queue, "SETTLE", change, "attempts = attempts + CASE WHEN outcome IN ('retried', 'dead')")


def run_before_the_claim_commits(patch: pytest.MonkeyPatch, explorer: Explorer) -> None:
    """A process that dies then has sent what was never claimed."""
    stock = explorer.stage.stock

    def early(claim: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def claim_and_run(_connection: Any, *args: Any) -> Any:
            connection = GatedConnection(stock, await stock.take())
            transaction = connection.transaction()
            await transaction.__aenter__()
            rows = await claim(connection, *args)
            _later.add(asyncio.create_task(_commit(transaction, connection)))
            return rows

        return claim_and_run

    async def _commit(transaction: Any, connection: GatedConnection) -> None:
        await transaction.__aexit__(None, None, None)
        stock.give_back(connection.raw)

    _later: set[asyncio.Task[None]] = set()
    for name in ("claim", "claim_reminders", "claim_suspect"):
        patch.setattr(queue, name, early(getattr(queue, name)))


def leases_by_the_clock_of_the_app(patch: pytest.MonkeyPatch, _explorer: Explorer) -> None:
    """Where the app's clock is ten minutes behind, a lease is over when it begins."""

    def skewed(claim: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def claim_by_app_clock(*args: Any) -> Any:
            *rest, lease = args
            return await claim(*rest, lease + APP_CLOCK_SECONDS)

        return claim_by_app_clock

    for name in ("claim", "claim_reminders", "claim_suspect"):
        patch.setattr(queue, name, skewed(getattr(queue, name)))


LOOK_FIRST = """LOOP
        SELECT jobs.id INTO enqueue_job.id FROM jobs WHERE jobs.dedupe_key = enqueue_job.dedupe_key;
        is_new := enqueue_job.id IS NULL;
        IF NOT is_new THEN RETURN; END IF;"""


async def a_key_without_a_unique_index(patch: pytest.MonkeyPatch, explorer: Explorer) -> None:
    """Look whether the key is there, and insert when it is not."""
    admin = explorer.stage.admin
    text = await admin.fetchval("SELECT pg_get_functiondef('enqueue_job'::regproc)")
    text, conflicts = re.subn(r"ON CONFLICT \(dedupe_key\) DO NOTHING", "", text)
    text, loops = re.subn(r"LOOP", LOOK_FIRST, text, count=1)
    assert (conflicts, loops) == (1, 1)
    edit(patch, enqueue, "ENQUEUE_MANY", r"ON CONFLICT \(dedupe_key\) DO NOTHING")
    await admin.execute("ALTER TABLE jobs DROP CONSTRAINT jobs_one_row_per_dedupe_key")
    await admin.execute(text)


async def plan_without_a_unique_index(patch: pytest.MonkeyPatch, explorer: Explorer) -> None:
    """Look which reminders are on record, and insert the others."""
    edit(patch, reminders, "PLAN", r"(?s)ON CONFLICT \(booking_id, .*?(?=RETURNING)")
    await explorer.stage.admin.execute(
        "ALTER TABLE reminders DROP CONSTRAINT reminders_one_per_start_offset_and_channel"
    )


def except_exception_around_a_job(patch: pytest.MonkeyPatch, _explorer: Explorer) -> None:
    """What is no Exception ends the tick's task instead of the job."""

    async def perform(job: Any, kind: Any, text: str) -> BaseException | None:
        try:
            job.payload = runner.decode(kind, text)
            await kind.handler(job)
        except Exception as error:  # noqa: BLE001 - this is the planted bug
            return error
        return None

    patch.setattr(crew, "perform", perform)


def mark_before_send(patch: pytest.MonkeyPatch, _explorer: Explorer) -> None:
    """What was marked and then not sent is lost."""
    send = booking_reminder._send  # noqa: SLF001 - a mutation of this very function

    async def mark_and_send(job: Any, key: Any, *rest: Any) -> None:
        async with job.services.database.acquire() as connection:
            await record.mark_sent(connection, [(key, None)])
        await send(job, key, *rest)

    patch.setattr(booking_reminder, "_send", mark_and_send)


def send_without_a_second_look(patch: pytest.MonkeyPatch, _explorer: Explorer) -> None:
    """What was cancelled or moved after the first look is sent."""
    edit(
        patch, record, "FREEZE", r"AND bookings\.status = 'confirmed'\s+AND bookings\.starts_at = reminders\.starts_at"
    )


def send_beside_another_attempt(patch: pytest.MonkeyPatch, _explorer: Explorer) -> None:
    """A process that stood still sends what must be held, beside its successor."""
    edit(patch, record, "FREEZE", r"\(\$6 OR ", "($6 OR TRUE OR ")


def rescue_without_a_second_look(patch: pytest.MonkeyPatch, _explorer: Explorer) -> None:
    """A job that ended a moment ago is brought back."""
    edit(patch, sweep, "RESCUE", LOCK)


def heartbeat_without_the_fence(patch: pytest.MonkeyPatch, _explorer: Explorer) -> None:
    """The one that lost a job is told that it still holds it."""
    edit(patch, queue, "HEARTBEAT", r" AND jobs\.fence = lease\.fence")


def requeue_whatever_its_state(patch: pytest.MonkeyPatch, _explorer: Explorer) -> None:
    """Pressed twice, a running job is made ready."""
    edit(patch, operate, "REQUEUE", r" AND found\.status = 'dead'")


def cancel_whatever_its_state(patch: pytest.MonkeyPatch, _explorer: Explorer) -> None:
    """A job that runs, or is done, is cancelled."""
    edit(patch, operate, "CANCEL", r" AND found\.status = 'ready'")


def complete_without_a_lease(patch: pytest.MonkeyPatch, _explorer: Explorer) -> None:
    """The effect of a run that lost its lease is committed beside that of its successor."""
    settle = queue.settle

    async def settle_anyway(connection: Any, verdicts: Iterable[Any]) -> set[int]:
        await settle(connection, list(verdicts))
        return {verdict.id for verdict in verdicts}

    patch.setattr(crew, "settle", settle_anyway)


def count_before_the_write(patch: pytest.MonkeyPatch, _explorer: Explorer) -> None:
    """What was lost is counted as done."""
    settle = Settler._settle  # noqa: SLF001 - a mutation of this very method

    async def settle_and_count(self: Settler[Any], verdicts: list[Any]) -> set[int]:
        await settle(self, verdicts)
        return {verdict.id for verdict in verdicts}

    patch.setattr(Settler, "_settle", settle_and_count)


PLANTED: tuple[Plant, ...] = (
    claim_without_a_lock,
    the_fence_stays_when_claimed,
    settle_by_id_only,
    settle_without_a_look_at_the_state,
    attempts_are_counted_on_failure,
    run_before_the_claim_commits,
    leases_by_the_clock_of_the_app,
    a_key_without_a_unique_index,
    plan_without_a_unique_index,
    except_exception_around_a_job,
    mark_before_send,
    send_without_a_second_look,
    send_beside_another_attempt,
    rescue_without_a_second_look,
    heartbeat_without_the_fence,
    requeue_whatever_its_state,
    cancel_whatever_its_state,
    complete_without_a_lease,
    count_before_the_write,
)
