"""The answer to COMMIT is lost: the caller hears 503, repeats the call, and finds its row there, once."""

from typing import Any

import pytest

from tests.evidence.faults.clients import open_client
from tests.evidence.faults.proxy import Fault, proxy
from tests.servers import Server

COUNT = """
    SELECT (SELECT count(*) FROM jobs) AS jobs, (SELECT count(DISTINCT dedupe_key) FROM jobs) AS keys,
        (SELECT count(*) FROM bookings) AS bookings
"""


async def _play(server: Server, dsn: str, conn: Any, times: int) -> None:
    first: list[int] = []
    again: list[tuple[int, Any]] = []
    async with proxy(server, at="COMMIT", is_repeated=True) as between, open_client(between.dsn(dsn)) as client:
        for number in range(times):
            call, name = (client.enqueue, client.book)[number % 2], f"n{number}"
            between.fault = Fault.RESET_AFTER
            first.append((await call(name)).status_code)
            between.fault = None
            answer = await call(name)
            again.append((answer.status_code, answer.json().get("is_new")))
        strikes = between.strikes

    row = await conn.fetchrow(COUNT)
    print(f"{strikes} lost answers to COMMIT: {row['jobs']} jobs of {row['keys']} keys, {row['bookings']} bookings")  # noqa: T201 - nightly's figure
    assert strikes == times
    assert set(first) == {503}
    assert set(again) == {(200, False), (200, None)}
    assert tuple(row) == (times // 2, times // 2, times // 2)


async def test_100_lost_commits_double_no_job_and_no_booking(server: Server, dsn: str, conn: Any) -> None:
    await _play(server, dsn, conn, 100)


@pytest.mark.nightly
async def test_2_000_lost_commits_double_no_job_and_no_booking(server: Server, dsn: str, conn: Any) -> None:
    await _play(server, dsn, conn, 2_000)
