"""`dormouse serve` ends within 9 seconds of SIGTERM, with code 0, whatever it is in the middle of.

Six situations: idle, connections kept alive, half a header, half a body, a job that does not end, and a database that
has fallen silent. Hosts kill after 10 seconds.
"""

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.evidence.kills.deeds import ENDLESS, OUTSIDE, read_marks
from tests.evidence.kills.nursery import last_words, nursery
from tests.evidence.kills.roles import SECRET, SERVER
from tests.evidence.kills.seeds import draw
from tests.evidence.stops.servers import Scene, Serving, Start, fork_from, serving, spawn
from tests.servers import Server
from tests.web.serving import request

LIMIT_SECONDS = 9.0
AT_ONCE = 30
CRON = f"Authorization: Bearer {SECRET}"
TICK = request("POST", "/api/cron/tick", CRON)
LIVE = request("GET", "/livez")
HALF_HEADER = b"POST /api/cron/tick HTTP/1.1\r\nHost: test\r\nX-Half: "
HALF_BODY = request("POST", "/api/cron/tick", CRON, "Content-Type: application/json", "Content-Length: 90", body=b"{")
# What some statement of a tick has in its text and no other has.
SILENT_AT = (b"has_leases_over", b"WITH configured", b"fence = fence + 1", b"SET status = 'done'", b"INSERT INTO ticks")
UNFAIR = "SELECT id, status, attempts FROM jobs WHERE kind = $1 AND (status <> 'ready' OR attempts > 0)"


async def _idle(_serving: Serving) -> None:
    return


async def _kept_alive(serving: Serving) -> None:
    for _ in range(3):
        await serving.send(LIVE, has_answer=True)


async def _half_header(serving: Serving) -> None:
    await serving.send(HALF_HEADER)


async def _half_body(serving: Serving) -> None:
    await serving.send(HALF_BODY)


async def _mid_tick(serving: Serving) -> None:
    job = await serving.enqueue(ENDLESS)
    await serving.send(TICK)
    async with asyncio.timeout(20):
        while job not in read_marks(serving.scene.marks):  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.02)


async def _silent_database(serving: Serving) -> None:
    await serving.enqueue(OUTSIDE)
    serving.hole.trigger = serving.scene.chance.choice(SILENT_AT)
    await serving.send(TICK)
    async with asyncio.timeout(20):
        await serving.hole.went_dark()


SITUATIONS: dict[str, Callable[[Serving], Awaitable[None]]] = {
    "idle": _idle,
    "connections kept alive": _kept_alive,
    "half a header": _half_header,
    "half a body": _half_body,
    "in mid-tick": _mid_tick,
    "the database silent": _silent_database,
}


class Ended(NamedTuple):
    """How a server ended."""

    situation: str
    code: int | None
    seconds: float
    log: str


async def _stop_one(scene: Scene, number: int, start: Start) -> Ended:
    """Bring a server into the situation that *number* says, stop it, and time its end."""
    situation = list(SITUATIONS)[number % len(SITUATIONS)]
    pause = scene.chance.uniform(0, 0.2)
    async with serving(scene, number, start) as one:
        await SITUATIONS[situation](one)
        await asyncio.sleep(pause)
        began = time.monotonic()
        one.child.signal(signal.SIGTERM)
        try:
            code = await one.child.wait(2 * LIMIT_SECONDS)
        except TimeoutError:
            code = None
        return Ended(situation, code, time.monotonic() - began, last_words(one.log))


async def _stop_many(scene: Scene, stops: int, spawned: int = 0) -> list[Ended]:
    """Stop so many servers, the first *spawned* of them the program itself, the others forked."""
    async with nursery(*SERVER) as born:
        return await _stop_in_turn(scene, [spawn] * spawned + [fork_from(born)] * (stops - spawned))


async def _stop_in_turn(scene: Scene, starts: Sequence[Start]) -> list[Ended]:
    ended: list[Ended] = []
    for first in range(0, len(starts), AT_ONCE):
        some = enumerate(starts[first : first + AT_ONCE], first)
        async with asyncio.TaskGroup() as group:
            stopping = [group.create_task(_stop_one(scene, number, start)) for number, start in some]
        ended += [task.result() for task in stopping]
    return ended


async def _judge(scene: Scene, ended: list[Ended]) -> None:
    slowest = {name: max((end.seconds for end in ended if end.situation == name), default=0) for name in SITUATIONS}
    print(f"{len(ended)} ends; slowest: {', '.join(f'{name} {took:.1f} s' for name, took in slowest.items())}")  # noqa: T201 - the figure of the nightly form
    assert [end for end in ended if end.code != 0 or end.seconds >= LIMIT_SECONDS] == [], scene.chance
    assert [end.log for end in ended if "Traceback" in end.log] == [], scene.chance
    assert await scene.conn.fetch(UNFAIR, ENDLESS) == [], scene.chance


@pytest.fixture
def scene(server: Server, dsn: str, conn: Any, tmp_path: Path) -> Scene:
    return Scene(server, dsn, conn, tmp_path, draw())


async def test_30_servers_end_in_time_in_six_situations(scene: Scene) -> None:
    ended = await _stop_many(scene, 30, spawned=len(SITUATIONS))

    await _judge(scene, ended)


@pytest.mark.nightly
async def test_1_000_servers_end_in_time_in_six_situations(scene: Scene) -> None:
    ended = await _stop_many(scene, 1_000)

    await _judge(scene, ended)
