"""A tick answers within its budget and a second, whatever befalls the database at whichever of its statements.

Every statement of a tick that has everything to do is struck with every fault of the proxy, each in a case of its own;
then, without the fault, all is completed once. Many cases run side by side: what the loop itself was late is measured
beside them and not held against the tick. A tick that a loaded machine kept from coming to the statement in its time
has shown nothing: such a case is played again, two side by side and with twice the time; every case strikes in the end.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from app import db, tick
from app.errors import DatabaseUnavailable
from app.tick import Budget
from tests.evidence.faults.proxy import Fault, proxy
from tests.evidence.faults.workload import Stage, open_stages
from tests.evidence.kills.seeds import Chance, draw
from tests.servers import Server

BUDGETS_SECONDS = (2.0, 4.0, 8.0)  # one after the other, for the cases that did not strike before
CLOSE_SECONDS = 2.5
SIDE_BY_SIDE = 10
BEAT_SECONDS = 0.01
IS_ALIVE = "SELECT 1"
# What each statement of a tick has in its text and no other has.
ALL_OF_A_TICK = (
    "has_leases_over", "WITH expired", "WITH late", "WITH configured", "jobs.queue = 'reminders'", "crashes > 0",
    "SET status = 'done'", "CASE WHEN outcome", "INSERT INTO effects", "BEGIN", "COMMIT", "WITH old AS",
    "INSERT INTO ticks", "was_sending",
)  # fmt: skip


@dataclass(eq=False)
class Case:
    """One fault at the statement that begins with *at*, or a cut anywhere when that is empty, and what came of it."""

    fault: Fault
    at: str
    cut_after: int = 20
    budget: float = 0.0
    has_struck: bool = False
    took: float = 0.0
    problems: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        what = "; ".join(self.problems) or "well"
        return f"{self.fault.name} at {self.at[:60] or self.cut_after}, {self.took:.2f} of {self.budget} s: {what}"


@dataclass(eq=False)
class Lag:
    """How late the loop was: *beats* are (when, how late)."""

    beats: list[tuple[float, float]] = field(default_factory=list)

    async def beat(self) -> None:
        """Measure until cancelled."""
        while True:
            due = time.monotonic() + BEAT_SECONDS
            await asyncio.sleep(BEAT_SECONDS)
            self.beats.append((due, time.monotonic() - due))

    def since(self, moment: float) -> float:
        """Return by how much all that waited in turn was late since *moment*; what is late by a beat does not count.

        Of a beat that was due before it and came after it, what lies after it counts.
        """
        late_ones = [(when, late) for when, late in self.beats[-1000:] if late > BEAT_SECONDS]
        return sum(min(late, when + late - moment) for when, late in late_ones if when + late > moment)


async def _play(case: Case, stage: Stage, server: Server, folder: Path, lag: Lag) -> None:
    """Play one case on one database."""
    await stage.fill(folder / f"{id(case)}-{case.budget}")
    async with proxy(server, case.fault, case.at, case.cut_after) as between:
        services = stage.services(between.dsn(stage.dsn))
        settings, began = services.settings, time.monotonic()
        try:
            await tick.run(services, Budget(settings.tick_jobs, settings.tick_reminders, case.budget), "fault")
        except DatabaseUnavailable:
            pass  # an answer too: 503
        except Exception as error:  # noqa: BLE001 - this is what the case is about
            case.problems.append(f"the tick raised {type(error).__name__}: {error}")
        case.took = time.monotonic() - began - lag.since(began + case.budget)
        ended = time.monotonic()
        await services.database.close()
        closed = time.monotonic() - ended - lag.since(ended)
    case.has_struck = between.strikes > 0
    if case.took >= case.budget + 1:
        case.problems.append(f"it took {case.took:.2f} s")
    if closed >= CLOSE_SECONDS:
        case.problems.append(f"closing took {closed:.2f} s")
    case.problems += await stage.finish()


async def _play_all(cases: Sequence[Case], stages: Sequence[Stage], server: Server, folder: Path) -> None:
    """Play all cases, as many side by side as there are databases; on two, and with more time, what did not strike."""
    waiting, lag = list[Case](), Lag()
    beating = asyncio.create_task(lag.beat())

    async def play_on(stage: Stage, budget: float) -> None:
        while waiting:
            case = waiting.pop()
            case.budget = budget
            await _play(case, stage, server, folder, lag)

    try:
        for budget in BUDGETS_SECONDS:
            waiting += reversed([case for case in cases if not (case.has_struck or case.problems)])
            async with asyncio.TaskGroup() as group:
                for stage in stages if budget == BUDGETS_SECONDS[0] else stages[:2]:
                    group.create_task(play_on(stage, budget))
    finally:
        beating.cancel()


async def _statements(stage: Stage, server: Server, folder: Path) -> tuple[list[str], int]:
    """Return the statements of a tick that nothing befalls, each once, and the bytes of their answers.

    Whether a connection lives is asked when it lay idle, which is a matter of the machine: that has a test of its own.
    """
    await stage.fill(folder / "whole")
    async with proxy(server) as between:
        services = stage.services(between.dsn(stage.dsn))
        await tick.run(services, Budget.from_settings(services.settings), "whole")
        await services.database.close()
    assert await stage.finish() == []
    return [text for text in dict.fromkeys(between.statements) if text != IS_ALIVE], between.passed


def _judge(cases: Sequence[Case], chance: Chance) -> None:
    slowest = max(cases, key=lambda case: case.took - case.budget)
    again = sum(case.budget > BUDGETS_SECONDS[0] for case in cases)
    figures = f"{len(cases)} cases, {again} played again; slowest answer {slowest.took:.2f} of {slowest.budget} s"
    print(figures)  # noqa: T201 - nightly's figure
    assert [case for case in cases if case.problems] == [], chance
    assert [case for case in cases if not case.has_struck] == [], chance


async def test_every_fault_at_every_statement_costs_no_more_than_the_budget(server: Server, tmp_path: Path) -> None:
    async with open_stages(server, SIDE_BY_SIDE) as stages:
        statements, _ = await _statements(stages[0], server, tmp_path)
        cases = [Case(fault, text) for text in statements for fault in Fault]

        await _play_all(cases, stages, server, tmp_path)

    assert [part for part in ALL_OF_A_TICK if not any(part in text for text in statements)] == []
    _judge(cases, draw())


async def test_every_fault_at_the_question_whether_a_connection_lives_costs_no_more_than_the_budget(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(db, "IDLE_CHECK_SECONDS", 0.0)
    cases = [Case(fault, IS_ALIVE) for fault in Fault]
    async with open_stages(server, len(cases)) as stages:
        await _play_all(cases, stages, server, tmp_path)

    _judge(cases, draw())


@pytest.mark.nightly
async def test_1_000_answers_cut_anywhere_cost_no_more_than_the_budget(server: Server, tmp_path: Path) -> None:
    chance = draw()
    async with open_stages(server, SIDE_BY_SIDE) as stages:
        _, passed = await _statements(stages[0], server, tmp_path)
        cases = [Case(Fault.CUT, "", chance.randint(0, int(0.9 * passed))) for _ in range(1_000)]

        await _play_all(cases, stages, server, tmp_path)

    _judge(cases, chance)
