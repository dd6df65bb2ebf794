"""A page's form, as strict as JSON: what no browser of ours sends is refused, and the order of the guard holds."""

import asyncio
import re
from typing import Any

import pytest

from app.web.forms import FIELDS, FORM_BYTES, parse_form
from app.web.gates import Gate, Place, digests_of
from app.web.guard import PARSED, Guard
from app.web.problems import Refused

TOKEN = "admin-" + "a" * 40
PAGES = Gate("/admin", digests_of(TOKEN), is_of_pages=True)
PLACES = (
    Place("/admin", re.compile("^/admin$"), frozenset({"GET", "HEAD"}), PAGES),
    Place("/admin/login", re.compile("^/admin/login$"), frozenset({"POST"}), PAGES),
)
FORM = (b"content-type", b"application/x-www-form-urlencoded")
SAME = (b"sec-fetch-site", b"same-origin")
HOST = (b"host", b"dormouse.example")


async def send(*headers: tuple[bytes, bytes], body: bytes = b"a=1", path: str = "/admin/login") -> tuple[int, Any, int]:
    """Send a form through the guard; return the status, what was parsed, and how much of the body was asked for."""
    seen: list[Any] = []
    statuses: list[int] = []
    received = 0

    async def receive() -> dict[str, Any]:
        nonlocal received
        received += 1
        return {"type": "http.request", "body": body, "more_body": False}

    async def answer(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    async def note(scope: Any, _receive: Any, reply: Any) -> None:
        seen.append(scope.get(PARSED))
        await reply({"type": "http.response.start", "status": 200, "headers": []})

    method = "POST" if path == "/admin/login" else "GET"
    scope = {"type": "http", "method": method, "path": path, "headers": list(headers), "query_string": b""}
    await Guard(note, PLACES, asyncio.Event())(scope, receive, answer)
    return statuses[0], seen[0] if seen else None, received


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (b"a=1", {"a": "1"}),
        (b"a=&b=2", {"a": "", "b": "2"}),
        (b"a=1+2%2B3%26%3D", {"a": "1 2+3&="}),
        (b"name=%E0%B8%81%F0%9F%90%AD", {"name": "ก🐭"}),
        (b"text=one%0D%0Atwo%09three", {"text": "one\r\ntwo\tthree"}),
        (b"a=b=c", None),
        (b"a", None),
        (b"=1", None),
        (b"", None),
        (b"a=1&", None),
        (b"a=1&a=2", None),
        (b"a=%", None),
        (b"a=%zz", None),
        (b"a=%ff", None),
        (b"a=%ed%a0%80", None),
        (b"a=%00", None),
        (b"a=%1b", None),
        (b"a=\xc3\xa9", None),
        (b"a=<script>", None),
        (b"&".join(b"f%d=" % number for number in range(FIELDS + 1)), None),
    ],
)
def test_a_form_is_read_to_the_letter_or_refused(body: bytes, fields: dict[str, str] | None) -> None:
    if fields is None:
        with pytest.raises(Refused):
            parse_form(body)
    else:
        assert parse_form(body) == fields


async def test_a_form_of_the_same_origin_reaches_its_page() -> None:
    assert await send(FORM, SAME) == (200, {"a": "1"}, 1)


@pytest.mark.parametrize(
    "headers",
    [
        (FORM, (b"sec-fetch-site", b"cross-site")),
        (FORM, (b"sec-fetch-site", b"same-site")),
        (FORM, (b"sec-fetch-site", b"none")),
        (FORM, (b"sec-fetch-site", b"")),
        (FORM, (b"sec-fetch-site", b"cross-site"), HOST, (b"origin", b"https://dormouse.example")),
        (FORM, HOST),
        (FORM, HOST, (b"origin", b"null")),
        (FORM, HOST, (b"origin", b"https://evil.example")),
        (FORM, HOST, (b"origin", b"https://dormouse.example.evil.example")),
        (FORM, (b"origin", b"")),
        (FORM, (b"origin", b""), (b"host", b"")),
    ],
)
async def test_a_form_from_anywhere_else_is_refused_unread(headers: tuple[tuple[bytes, bytes], ...]) -> None:
    assert await send(*headers) == (403, None, 0)


async def test_a_browser_without_sec_fetch_names_our_host_as_origin() -> None:
    status, fields, _ = await send(FORM, HOST, (b"origin", b"https://dormouse.example"))

    assert (status, fields) == (200, {"a": "1"})


@pytest.mark.parametrize("kind", [None, b"text/plain", b"application/json", b"multipart/form-data; boundary=x", b"*/*"])
async def test_a_body_that_is_not_called_a_form_gets_415(kind: bytes | None) -> None:
    headers = [] if kind is None else [(b"content-type", kind)]

    status, fields, _ = await send(*headers, SAME)

    assert (status, fields) == (415, None)


async def test_a_form_over_the_cap_is_refused_unread_when_it_says_so_and_counted_when_it_lies() -> None:
    declared = (b"content-length", str(FORM_BYTES + 1).encode())
    long = b"a=" + b"x" * FORM_BYTES

    assert await send(FORM, SAME, declared, body=long) == (413, None, 0)
    assert (await send(FORM, SAME, body=long))[0] == 413


async def test_pages_do_not_exist_without_an_admin_token() -> None:
    off = Gate("/admin", (), is_of_pages=True)

    with pytest.raises(Refused) as refusal:
        off.check([(b"authorization", f"Bearer {TOKEN}".encode())])

    assert refusal.value.problem.status == 404


async def test_a_page_asks_for_no_bearer() -> None:
    assert (await send(path="/admin"))[0] == 200
