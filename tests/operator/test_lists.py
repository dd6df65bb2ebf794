"""Lists of jobs: newest first, filtered, paged by id, bounded, and quick however many rows there are."""

import time
from datetime import timedelta
from typing import Any

import pytest

from app.jobs import lists
from app.jobs.lists import Filter, list_jobs
from tests.operator.rows import add_job

STATUSES = ("ready", "running", "done", "dead", "cancelled", "expired")


async def test_a_list_is_newest_first_and_pages_to_the_oldest(conn: Any) -> None:
    ids = [await add_job(conn) for _ in range(5)]

    first = await list_jobs(conn, limit=2)
    second = await list_jobs(conn, limit=2, before_id=first.next_id)
    third = await list_jobs(conn, limit=2, before_id=second.next_id)

    pages = [[row.id for row in page.rows] for page in (first, second, third)]
    assert pages == [ids[:2:-1], [ids[2], ids[1]], [ids[0]]]
    assert third.next_id is None


@pytest.mark.parametrize("status", STATUSES)
async def test_a_status_lists_its_own_rows_and_no_other(conn: Any, status: str) -> None:
    ids = {name: await add_job(conn, status=name) for name in STATUSES}

    page = await list_jobs(conn, Filter(status=status))

    assert [row.id for row in page.rows] == [ids[status]]


@pytest.mark.parametrize("status", ["ready", "dead", None])
async def test_every_filter_narrows_the_list_down(conn: Any, status: str | None) -> None:
    kept = {
        "status": status or "dead",
        "queue": "mail",
        "last_error": "SMTP said 550",
        "created_at": "2026-01-02T00:00:00Z",
    }
    kept |= {"finished_at": "2026-01-02T00:00:00Z"} if kept["status"] == "dead" else {}
    wanted = await add_job(conn, "mail.sent", **kept)
    await add_job(conn, "other", **kept)
    await add_job(conn, "mail.sent", **kept | {"queue": "default"})
    await add_job(conn, "mail.sent", **kept | {"last_error": "SMTP said 250"})
    late = {name: "2026-01-03T00:00:00Z" for name in kept if name.endswith("_at")}
    await add_job(conn, "mail.sent", **kept | late)
    row = (await list_jobs(conn, Filter(error="SAID 550", kind="mail.sent", queue="mail"))).rows[-1]
    since = row.finished_at or row.created_at

    page = await list_jobs(
        conn,
        Filter(
            status=status,
            kind="mail.sent",
            queue="mail",
            error="said 550",
            since=since,
            until=since + timedelta(days=1),
        ),
    )

    assert [row.id for row in page.rows] == [wanted]


async def test_a_wildcard_in_the_error_text_is_a_letter_like_any_other(conn: Any) -> None:
    wanted = await add_job(conn, status="dead", last_error="100 % full_up")
    await add_job(conn, status="dead", last_error="100 x fullxup")

    page = await list_jobs(conn, Filter(error="% FULL_"))

    assert [row.id for row in page.rows] == [wanted]


async def test_a_page_reads_a_window_and_names_where_the_next_begins(
    conn: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "WINDOW", 3)
    wanted = await add_job(conn, "rare", status="done")
    others = [await add_job(conn, status="done") for _ in range(5)]

    first = await list_jobs(conn, Filter(kind="rare"))
    second = await list_jobs(conn, Filter(kind="rare"), before_id=first.next_id)

    assert (first.rows, first.next_id) == ([], others[2])
    assert ([row.id for row in second.rows], second.next_id) == ([wanted], wanted)
    assert await list_jobs(conn, Filter(kind="rare"), before_id=wanted) == lists.Page([], None)


async def test_a_large_payload_is_left_out_of_a_list(conn: Any) -> None:
    await conn.execute(
        """
        INSERT INTO jobs (kind, payload)
        SELECT 'k', jsonb_build_object('n', array_agg(random())) FROM generate_series(1, 2000)
        """
    )

    page = await list_jobs(conn)

    assert page.rows[0].payload is None


async def test_no_list_takes_over_300_ms_with_many_rows(conn: Any) -> None:
    await _fill(conn, done=100_000, ready=10_000, dead=1_000)

    await _assert_quick(conn)


@pytest.mark.nightly
async def test_no_list_takes_over_300_ms_with_a_million_rows(conn: Any) -> None:
    await _fill(conn, done=1_000_000, ready=100_000, dead=10_000)

    await _assert_quick(conn)


FILL = """
    INSERT INTO jobs (kind, status, finished_at, last_error)
    SELECT $2 || n % 50, $3, CASE WHEN $3 <> 'ready' THEN now() - n * interval '1 second' END, 'error ' || n
    FROM generate_series(1, $1) AS n
"""


async def _fill(conn: Any, done: int, ready: int, dead: int) -> None:
    """Put the rows that are looked for at the oldest end, where a walk comes last."""
    for count, prefix, status in ((dead, "k", "dead"), (ready, "k", "ready"), (done, "d", "done")):
        await conn.execute(FILL, count, prefix, status, timeout=120)
    await conn.execute("VACUUM ANALYZE jobs")


async def _assert_quick(conn: Any) -> None:
    filters = [
        Filter(),
        Filter(kind="k7"),
        Filter(status="dead", error="error 777"),
        Filter(status="dead", error="none"),
    ]
    filters += [Filter(status=status, kind=kind) for status in STATUSES for kind in (None, "k7")]
    slow = {}
    for wanted in filters:
        took = []
        for _ in range(3):
            started = time.perf_counter()
            await list_jobs(conn, wanted, limit=100)
            took.append(time.perf_counter() - started)
        if min(took) > 0.3:
            slow[wanted] = took
    assert slow == {}
