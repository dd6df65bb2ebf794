"""/api/bookings: put, read, cancel and page through, under the producer's own ids."""

from typing import Any

import httpx
import pytest

from tests.web.conftest import API

BOOKINGS = "/api/bookings"
FULL = {
    "title": "Massage",
    "starts_at": "2030-03-29T02:00:00+00:00",
    "ends_at": "2030-03-29T03:00:00+00:00",
    "status": "confirmed",
    "attendee_name": "สมชาย",
    "attendee_email": "guest@example.com",
    "attendee_line_id": "U1",
    "time_zone": "Asia/Bangkok",
    "locale": "th-TH",
    "location": "Room 2",
    "remind_before": ["24h", "90m"],
}
SMALL = {"starts_at": "2030-03-29T09:00:00+07:00"}


async def put(client: httpx.AsyncClient, booking_id: str, body: Any) -> httpx.Response:
    url = httpx.URL("http://test").copy_with(raw_path=f"{BOOKINGS}/{booking_id}".encode())
    return await client.put(url, headers=API, json=body)


async def test_a_booking_reads_back_as_it_was_put(client: httpx.AsyncClient) -> None:
    created = await put(client, "b-1", FULL)
    read = await client.get(f"{BOOKINGS}/b-1", headers=API)

    assert (created.status_code, read.status_code) == (201, 200)
    assert read.json() == created.json()
    assert read.json() | FULL | {"id": "b-1"} == read.json()


async def test_a_put_replaces_all_of_it(client: httpx.AsyncClient) -> None:
    await put(client, "b-1", FULL)

    replaced = await put(client, "b-1", SMALL)

    booking = replaced.json()
    assert replaced.status_code == 200
    assert (booking["title"], booking["attendee_email"], booking["remind_before"]) == ("", None, None)
    assert booking["starts_at"] == "2030-03-29T02:00:00+00:00"


async def test_no_offsets_means_no_reminder_and_is_not_the_same_as_none_named(client: httpx.AsyncClient) -> None:
    answer = await put(client, "b-1", SMALL | {"remind_before": []})

    assert answer.json()["remind_before"] == []


async def test_a_booking_is_cancelled_once_or_more(client: httpx.AsyncClient) -> None:
    await put(client, "b-1", SMALL)

    answers = [await client.delete(f"{BOOKINGS}/b-1", headers=API) for _ in range(2)]

    assert [(answer.status_code, answer.json()["status"]) for answer in answers] == [(200, "cancelled")] * 2


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_booking_that_is_not_there_gets_404(client: httpx.AsyncClient, method: str) -> None:
    answer = await client.request(method, f"{BOOKINGS}/nothing", headers=API)

    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


@pytest.mark.parametrize("method", ["POST", "PATCH", "OPTIONS"])
async def test_a_booking_takes_three_methods(client: httpx.AsyncClient, method: str) -> None:
    answer = await client.request(method, f"{BOOKINGS}/b-1", headers=API)

    assert (answer.status_code, answer.headers["allow"]) == (405, "DELETE, GET, PUT")


async def test_a_naive_time_is_never_taken_as_anybody_s(client: httpx.AsyncClient, conn: Any) -> None:
    answer = await put(client, "b-1", {"starts_at": "2030-03-29T09:00:00"})

    assert answer.status_code == 422
    assert "offset" in answer.json()["detail"]
    assert await conn.fetchval("SELECT count(*) FROM bookings") == 0


@pytest.mark.parametrize(
    "zone",
    ["", "Mars/Base", "europe/berlin", "../../etc/passwd", "/etc/localtime", "localtime", "UTC+2", "right/UTC",
     "posix/Europe/Berlin", "America", "Europe/", "Europe/Berlin/x/y/z", "E" * 300, 7, "Europe/Berlin\n"],
)  # fmt: skip
async def test_a_zone_that_nobody_knows_is_refused_by_name(client: httpx.AsyncClient, zone: Any) -> None:
    answer = await put(client, "b-1", SMALL | {"time_zone": zone})

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "body.time_zone"


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu", "America/Argentina/Ushuaia", "Etc/GMT+12", "EST5EDT", None])
async def test_a_zone_of_the_database_of_zones_is_taken(client: httpx.AsyncClient, zone: str | None) -> None:
    answer = await put(client, "b-1", SMALL | {"time_zone": zone})

    assert (answer.status_code, answer.json()["time_zone"]) == (201, zone)


@pytest.mark.parametrize(
    "change",
    [{"starts_at": None}, {"ends_at": "2030-03-29T01:59:59Z"}, {"status": "gone"}, {"title": "t" * 1001},
     {"attendee_email": "nobody"}, {"attendee_email": "a b@example.com"}, {"attendee_email": ""},
     {"attendee_email": "a@example.com\nBcc: b@example.com"}, {"locale": "x"}, {"locale": "en_US.UTF-8"},
     {"remind_before": "24h"}, {"remind_before": [24]}, {"remind_before": ["24"]}, {"remind_before": ["0h"]},
     {"remind_before": ["-1h"]}, {"remind_before": ["367d"]}, {"remind_before": ["1h,2h"]},
     {"remind_before": ["1h"] * 11}, {"remind_before": [None]}, {"id": "other"},
     {"created_at": "2030-03-29T02:00:00Z"}],
)  # fmt: skip
async def test_a_booking_that_does_not_fit_gets_422(client: httpx.AsyncClient, change: dict[str, Any]) -> None:
    answer = await put(client, "b-1", SMALL | change)

    assert answer.status_code == 422


@pytest.mark.parametrize(
    ("raw", "stored"),
    [("2026%2F7", "2026/7"), ("a%20b", "a b"), ("%E2%82%AC", "€"), ("%F0%9F%98%80" * 200, "\U0001f600" * 200),
     ("a%3Fb%23c", "a?b#c"), ("'%20OR%201=1", "' OR 1=1"), ("%25", "%"), ("..x", "..x")],
)  # fmt: skip
async def test_any_clean_text_of_200_characters_is_an_id(
    client: httpx.AsyncClient, conn: Any, raw: str, stored: str
) -> None:
    answer = await put(client, raw, SMALL)

    assert (answer.status_code, answer.json()["id"]) == (201, stored)
    assert await conn.fetchval("SELECT id FROM bookings") == stored


@pytest.mark.parametrize(
    "raw", ["", "x" * 201, "a%00b", "a%0Ab", "%7F", "%FF", "%ED%A0%80", "%C0%AF", "%1B%5B31m", "%F0%9F%98%80" * 201]
)
async def test_an_id_that_is_none_gets_4xx(client: httpx.AsyncClient, raw: str) -> None:
    answer = await put(client, raw, SMALL)

    assert 400 <= answer.status_code < 500


async def test_pages_show_each_booking_once_in_the_order_of_the_start(client: httpx.AsyncClient) -> None:
    for number in range(7):
        await put(client, f"b-{number}", {"starts_at": f"2030-03-2{number // 3}T09:00:00Z"})

    seen: list[str] = []
    after: dict[str, str] = {}
    pages = 0
    while pages == 0 or after:
        answer = await client.get(BOOKINGS, headers=API, params={"limit": "3"} | after)
        seen += [booking["id"] for booking in answer.json()["bookings"]]
        after = {"after": answer.json()["next"]} if answer.json()["next"] else {}
        pages += 1

    assert (pages, seen) == (3, [f"b-{number}" for number in range(7)])


async def test_a_page_is_never_over_a_hundred(client: httpx.AsyncClient, conn: Any) -> None:
    await conn.execute("INSERT INTO bookings (starts_at) SELECT now() FROM generate_series(1, 101)")

    answer = await client.get(BOOKINGS, headers=API)

    assert len(answer.json()["bookings"]) == 100
    assert answer.json()["next"]


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=101", "limit=1000000000", "limit=-1", "limit=x", "limit=1.5", "limit=nan", "limit=", "after=x",
     "after=", "after=bnVsbA", "after=W10", "after=WzEsMl0", "after=" + "A" * 3000, "after=%F0%9F%98%80",
     "after=WyIyMDMwLTAxLTAxVDAwOjAwOjAwWiIsIlx1MDAwMCJd", "after=WyIyMDMwLTAxLTAxVDAwOjAwOjAwWiIsIlx1ZDgwMCJd",
     "after=W1tbW1tbW1tbW1tbW1tbW1tbW1tbW1tbW1tbW1tbW1tbW1tbW1tbW1tbW1tbW1tbW1tb"],
)  # fmt: skip
async def test_a_page_that_cannot_be_gets_422(client: httpx.AsyncClient, query: str) -> None:
    answer = await client.get(f"{BOOKINGS}?{query}", headers=API)

    assert answer.status_code == 422


async def test_an_id_at_its_longest_still_makes_a_cursor(client: httpx.AsyncClient) -> None:
    for number in range(2):
        await put(client, "%F0%9F%98%80" * 199 + str(number), SMALL)

    first = await client.get(BOOKINGS, headers=API, params={"limit": "1"})
    second = await client.get(BOOKINGS, headers=API, params={"limit": "1", "after": first.json()["next"]})

    assert second.json()["bookings"][0]["id"].endswith("1")


async def test_rows_that_came_by_sql_are_shown_as_they_are(client: httpx.AsyncClient, conn: Any) -> None:
    await conn.execute(
        "INSERT INTO bookings (id, starts_at, ends_at, time_zone, attendee_email, remind_before) "
        "VALUES ('odd', '9999-12-31 23:59:58+00', '9999-12-31 23:59:59+00', "
        "'../../etc/passwd', 'x', '{36 hours, 90 seconds}')"
    )

    answer = await client.get(f"{BOOKINGS}/odd", headers=API)

    assert answer.status_code == 200
    assert answer.json()["time_zone"] == "../../etc/passwd"
