"""`why` shows every rule with its result, and ends in what to do; `-many` and `channels` change what they say."""

from typing import Any

from tests.cli.conftest import Dormouse
from tests.operator.rows import add_job


async def test_why_a_job_has_not_run_is_a_table_and_a_sentence(dormouse: Dormouse, conn: Any) -> None:
    job = await add_job(conn, "nobody.knows")

    ended = await dormouse("jobs", "why", str(job))
    missing = await dormouse("jobs", "why", "999")

    assert "nobody.knows is unknown to this build" in ended.out
    assert "there was never a tick" in ended.out
    assert ended.out.rstrip().splitlines()[-1].startswith("What to do: Deploy a build")
    assert missing.code == 5


async def test_why_a_booking_has_no_reminder(dormouse: Dormouse, conn: Any) -> None:
    await conn.execute("INSERT INTO bookings (id, starts_at, status) VALUES ('b-1', '2030-01-31T09:00Z', 'cancelled')")

    ended = await dormouse("bookings", "why", "b-1")
    missing = await dormouse("bookings", "why", "b-2")

    assert "cancelled: nobody is reminded of it" in ended.out
    assert missing.code == 5


async def test_many_jobs_are_changed_only_by_a_filter_or_all(dormouse: Dormouse, conn: Any) -> None:
    for kind in ("a", "a", "b"):
        await add_job(conn, kind)

    unsaid = await dormouse("jobs", "cancel-many")
    both = await dormouse("jobs", "cancel-many", "--all", "--kind", "a")
    dry = await dormouse("jobs", "cancel-many", "--kind", "a", "--dry-run")
    done = await dormouse("jobs", "cancel-many", "--kind", "a", "--json")

    assert (unsaid.code, both.code) == (2, 2)
    assert dry.out.splitlines() == ["2 jobs would be cancelled", "newest first: 2, 1"]
    assert done.json == {"result": "cancelled", "dry_run": False, "count": 2, "ids": [2, 1]}
    assert await conn.fetchval("SELECT count(*) FROM jobs WHERE status = 'ready'") == 1


async def test_a_suspended_channel_is_listed_and_resumed(dormouse: Dormouse, conn: Any) -> None:
    empty = await dormouse("channels", "list")
    await conn.execute(
        "INSERT INTO channels (name, suspended_until, reason) VALUES ('email', 'infinity', 'login refused')"
    )

    listed = await dormouse("channels", "list")
    resumed = await dormouse("channels", "resume", "email")
    again = await dormouse("channels", "resume", "email")

    assert empty.out == "No channel was ever suspended.\n"
    assert "login refused" in listed.out
    assert (resumed.code, resumed.out) == (0, "channel email resumed\n")
    assert again.code == 5
