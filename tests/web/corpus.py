"""Odd values, and every place that a request has for them.

A place is a way to build a request around one value. The corpus in every place, on every route, must never be answered
with a 5xx: what the value means there is the route's business, that it cannot break anything is ours.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import quote

from tests.web.conftest import API, CRON

# Written as JSON, because many of them are no value of Python's.
ODD_JSON = (
    "null", "true", "false", "0", "-0", "-1", "1", "2", "101", "32767", "32768", "-32769", "2147483647", "2147483648",
    "-2147483649", "9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "-9223372036854775809", "1" + "0" * 400, "1" * 5000, "0.1", "-0.0", "1e-999", "1e308", "1e309", "1e999", "-1e999",
    "NaN", "Infinity", "-Infinity", "0x10", "01", "[]", "{}", "[[]]", "[null]", "[{}]", '{"a":{"b":[]}}',
    "[" * 31 + "]" * 31, "[" * 33 + "]" * 33, "[" * 2000 + "]" * 2000, "[" * 100_000, '{"a":1,"a":2}', '{"":""}',
    '{"__proto__":{}}', '{"$ref":"#"}', '{"\\u0000":1}', '{"\\ud800":1}', '{"jobs":[]}', '{"kind":"k"}', '""', '" "',
    '"\\u0000"', '"a\\u0000b"', '"\\ud800"', '"\\udfff\\ud800"', '"\\ud83d\\ude00"', '"\\uffff"', '"\\ufeff"',
    '"\\u202e"',
    '"\\r\\nBcc: v@example.org"', '"\\u001b[31m"', '"%00"', '"%s%n{}{0}"', "\"' OR 1=1; --\"", '"${jndi:ldap://x}"',
    '"<script>alert(1)</script>"', '"../../etc/passwd"', '"nan"', '"inf"', '"-1"', '"1"', '"true"', '"null"',
    '"undefined"',
    '"2026-03-29T02:30:00"', '"2026-03-29T02:30:00Z"', '"0000-00-00T00:00:00Z"', '"0001-01-01T00:00:00+14:00"',
    '"9999-12-31T23:59:59-14:00"', '"294277-01-01T00:00:00Z"', '"infinity"', '"2026-03-29"', '"24h"', '"0h"',
    '"999999d"',
    '"Asia/Bangkok"', '"localtime"', '"' + "x" * 201 + '"', '"' + "x" * 70_000 + '"', '"' + "\u0301" * 500 + '"',
    '"' + "\\ud83d\\ude00" * 200 + '"', "{", '"', "\\", "", " ", "undefined", "\u00e9", "'x'", "1 2", "/* */ 1",
)  # fmt: skip
ODD_BYTES = (
    b"\x00", b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\xef\xbb\xbf{}",
    b"\xfe\xff\x00{",
)  # fmt: skip
JSON_TYPE = {"Content-Type": "application/json"}
BASES: dict[str, dict[str, object]] = {
    "tick": {"jobs": 1, "reminders": 1, "budget_seconds": 5, "dry_run": True},
    "job": {
        "kind": "k", "payload": {}, "dedupe_key": "d", "queue": "q", "priority": 0, "run_at": "2030-01-01T00:00:00Z",
        "delay_seconds": None, "expires_at": None, "max_attempts": 1,
    },
    "booking": {
        "title": "t", "starts_at": "2030-01-01T00:00:00Z", "ends_at": None, "status": "confirmed", "attendee_name": "n",
        "attendee_email": "a@example.com", "attendee_line_id": "u", "time_zone": "UTC", "locale": "en", "location": "l",
        "remind_before": ["24h"],
    },
}  # fmt: skip


@dataclass(frozen=True)
class Place:
    """Where a value goes: *build* gives path and body for a value written as JSON (or for bytes of any sort)."""

    name: str
    method: str
    headers: dict[str, str]
    build: Callable[[bytes], tuple[str, bytes]]


def places() -> Iterator[Place]:
    """Yield every place of every route."""
    yield from _fields("POST", "/api/cron/tick", CRON, BASES["tick"], b"%s")
    yield from _fields("POST", "/api/jobs", API, BASES["job"], b"%s")
    yield from _fields("POST", "/api/jobs", API, BASES["job"], b'{"jobs":[{"kind":"k"},%s]}')
    yield from _fields("PUT", "/api/bookings/b-1", API, BASES["booking"], b"%s")
    for method in ("GET", "PUT", "DELETE"):
        body = json.dumps(BASES["booking"]).encode()
        yield Place(
            f"{method} booking id",
            method,
            API | JSON_TYPE,
            _in_path("/api/bookings/", body if method == "PUT" else b""),
        )
    for name in ("limit", "after", "unknown"):
        yield Place(f"GET bookings {name}", "GET", API, _in_path(f"/api/bookings?{name}=", b""))
    yield Place("GET livez query", "GET", {}, _in_path("/livez?", b""))
    yield Place("path", "GET", {}, _in_path("/", b""))


def _fields(method: str, path: str, token: dict[str, str], base: dict[str, object], frame: bytes) -> Iterator[Place]:
    headers = token | JSON_TYPE
    yield Place(f"{method} {path} whole", method, headers, lambda value: (path, frame % value))
    yield Place(
        f"{method} {path} a key", method, headers, lambda value: (path, frame % (b'{"k":%s,%s:1}' % (value, value)))
    )
    for name in base:
        rest = {key: value for key, value in base.items() if key != name}
        yield Place(f"{method} {path} {name}", method, headers, _in_field(path, frame, name, rest))


def _in_field(path: str, frame: bytes, name: str, rest: dict[str, object]) -> Callable[[bytes], tuple[str, bytes]]:
    opened = json.dumps(rest).encode()[:-1]

    def build(value: bytes) -> tuple[str, bytes]:
        return path, frame % (b'%s, "%s": %s}' % (opened, name.encode(), value))

    return build


def _in_path(start: str, body: bytes) -> Callable[[bytes], tuple[str, bytes]]:
    def build(value: bytes) -> tuple[str, bytes]:
        return start + quote(_bare(value)[:8000], safe=""), body

    return build


def _bare(value: bytes) -> bytes:
    """Return the text inside a JSON string, with its escapes undone where that gives bytes at all."""
    try:
        text = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else value


def values() -> list[bytes]:
    """Return the whole corpus as bytes."""
    return [text.encode() for text in ODD_JSON] + list(ODD_BYTES)
