"""`dormouse jobs` shows what is there, and changes only what its state allows."""

from typing import Any

from tests.cli.conftest import Dormouse

INSERT = "INSERT INTO jobs (kind, payload) VALUES ($1, $2) RETURNING id"
BURY = "UPDATE jobs SET status = 'dead', finished_at = now(), attempts = 8, last_error = 'SMTP said 550' WHERE id = $1"
STATUS = "SELECT status FROM jobs WHERE id = $1"


async def test_the_list_is_newest_first_filtered_and_paged(dormouse: Dormouse, conn: Any) -> None:
    ids = [await conn.fetchval(INSERT, kind, "{}") for kind in ("a", "b", "a")]
    await conn.execute(BURY, ids[1])

    everything = await dormouse("jobs", "list", "--json")
    dead = await dormouse("jobs", "list", "--status", "dead", "--json")
    page = await dormouse("jobs", "list", "--kind", "a", "--limit", "1", "--before-id", str(ids[2]), "--json")

    assert [row["id"] for row in everything.json["jobs"]] == ids[::-1]
    assert [row["id"] for row in dead.json["jobs"]] == [ids[1]]
    assert [row["id"] for row in page.json["jobs"]] == [ids[0]]


async def test_the_table_is_for_people_and_names_the_next_page(dormouse: Dormouse, conn: Any) -> None:
    for kind in ("first", "second"):
        await conn.fetchval(INSERT, kind, "{}")

    ended = await dormouse("jobs", "list", "--limit", "1")

    assert "second" in ended.out
    assert "--before-id 2" in ended.out
    assert ended.err == ""


async def test_an_empty_list_says_so(dormouse: Dormouse, dsn: str) -> None:
    ended = await dormouse("jobs", "list")

    assert (ended.code, ended.out) == (0, "No job fits.\n")


async def test_a_job_cannot_draw_on_the_terminal(dormouse: Dormouse, conn: Any) -> None:
    job = await conn.fetchval(INSERT, "\x1b[2J[bold]kind\u202e", '{"x": "\\u001b]0;title\\u0007"}')

    listed = await dormouse("jobs", "list")
    shown = await dormouse("jobs", "show", str(job))

    for ended in (listed, shown):
        assert "\x1b" not in ended.out
        assert "\u202e" not in ended.out
    assert "[bold]kind" in listed.out


async def test_show_has_everything_and_no_row_is_5(dormouse: Dormouse, conn: Any) -> None:
    job = await conn.fetchval(INSERT, "a", '{"user_id": 7}')

    shown = await dormouse("jobs", "show", str(job))
    in_json = await dormouse("jobs", "show", str(job), "--json")
    missing = await dormouse("jobs", "show", "999999")

    assert '{"user_id": 7}' in shown.out
    assert in_json.json["payload"] == {"user_id": 7}
    assert (missing.code, missing.err) == (5, "dormouse: there is no job 999999.\n")


async def test_a_dead_job_goes_round_again_and_a_ready_one_does_not(dormouse: Dormouse, conn: Any) -> None:
    dead = await conn.fetchval(INSERT, "a", "{}")
    ready = await conn.fetchval(INSERT, "a", "{}")
    await conn.execute(BURY, dead)

    good = await dormouse("jobs", "requeue", str(dead))
    refused = await dormouse("jobs", "requeue", str(ready))

    assert (good.code, good.out) == (0, f"job {dead} requeued\n")
    assert await conn.fetchval(STATUS, dead) == "ready"
    assert refused.code == 5
    assert "is ready" in refused.err


async def test_a_ready_job_is_cancelled_once(dormouse: Dormouse, conn: Any) -> None:
    job = await conn.fetchval(INSERT, "a", "{}")

    first = await dormouse("jobs", "cancel", str(job), "--json")
    second = await dormouse("jobs", "cancel", str(job))

    assert first.json == {"id": job, "result": "cancelled"}
    assert await conn.fetchval(STATUS, job) == "cancelled"
    assert second.code == 5
