"""A request's body: read within limits, then parsed once, strictly.

    receive -> read_body (bytes counted, time limited) -> parse_json (depth, then values) -> a value

What passes here can be stored as jsonb, sent back as JSON and read by any other reader: no NaN, no infinity,
no number beyond 64 bits, no NUL, no lone surrogate, no key twice, nothing deeper than 32 levels. The cost is
linear in the length of a body; tests/web/test_json_bombs.py holds it to that at the cap.
"""

import asyncio
import json
import math
import re
from itertools import accumulate
from typing import Any

from starlette.types import Receive

from app.web.problems import Refused

BODY_BYTES = 262_144
BODY_SECONDS = 10.0
DEPTH = 32
KEYS = 1_000
DIGITS = 19
ACCEPT = "application/json"
LOWEST, HIGHEST = -(2**63), 2**63 - 1

JSON_TYPE = re.compile(rb"\s*application/(?:[a-z0-9.!#$&^_-]+\+)?json\s*(?:;|\Z)", re.IGNORECASE)
# Possessive, with an optional end: an unclosed string is eaten whole, and no input makes it start over.
STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
STEP = [1 if byte in b"[{" else -1 for byte in range(256)]
SURROGATE_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
UNSTORABLE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


class Gone(Exception):
    """The client closed the connection before its body was complete."""


async def read_body(
    receive: Receive, length: bytes | None, limit: int = BODY_BYTES, seconds: float = BODY_SECONDS
) -> bytes:
    """Return the whole body; raise Refused when it is over *limit* bytes or takes more than *seconds*.

    *length* is the Content-Length header: it can only refuse early, the bytes are counted whatever it says.
    Raise Gone when the client hangs up.
    """
    if length is not None and (not length.isdigit() or len(length) > DIGITS):
        raise Refused(400, "Content-Length is not a number.")
    if length is not None and int(length) > limit:
        raise _too_long(limit)
    try:
        async with asyncio.timeout(seconds):
            return await _read_counted(receive, limit)
    except TimeoutError:
        raise Refused(408, f"The body did not arrive within {seconds:g} seconds.", Connection="close") from None


async def _read_counted(receive: Receive, limit: int) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        body += message.get("body", b"")
        if len(body) > limit:
            raise _too_long(limit, Connection="close")
        if not message.get("more_body", False):
            return bytes(body)


def _too_long(limit: int, **headers: str) -> Refused:
    return Refused(413, f"The body is over {limit} bytes.", **headers)


def check_type(content_type: bytes | None) -> None:
    """Raise Refused unless *content_type* names JSON: a browser form or plain text is never read as JSON."""
    if content_type is None or not JSON_TYPE.match(content_type):
        raise Refused(415, "Send JSON with the header Content-Type: application/json.", Accept=ACCEPT)


def parse_json(body: bytes) -> Any:
    """Return the value of *body*; raise Refused: 400 for what is no JSON, 422 for what nobody could keep."""
    _check_depth(body)
    try:
        text = body.decode()
        _check_characters(text)
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_finite,
            parse_constant=_constant,
        )
    except UnicodeDecodeError:
        raise Refused(400, "The body is not UTF-8.") from None
    except json.JSONDecodeError as error:
        raise Refused(400, f"The body is not JSON: {error.msg} at character {error.pos}.") from None


def _check_depth(body: bytes) -> None:
    brackets = STRING.sub(b"", body).translate(None, NO_BRACKETS)
    if max(accumulate(map(STEP.__getitem__, brackets)), default=0) > DEPTH:
        raise Refused(422, f"The body is nested deeper than {DEPTH} levels.")


def _check_characters(text: str) -> None:
    """Refuse escapes of NUL and of half a character, in keys and values; raw ones are no JSON anyway."""
    if "\\u" not in text:
        return
    escapes = SURROGATE_PAIR.sub(" ", text.replace("\\\\", ""))
    if UNSTORABLE.search(escapes):
        raise Refused(422, "A string holds a NUL or half of a surrogate pair, which cannot be stored.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > KEYS:
        raise Refused(422, f"An object has more than {KEYS} keys.")
    value = dict(pairs)
    if len(value) != len(pairs):
        raise Refused(422, "An object has the same key twice.")
    return value


def _integer(digits: str) -> int:
    if len(digits) <= DIGITS + 1 and LOWEST <= (value := int(digits)) <= HIGHEST:
        return value
    raise Refused(422, "A whole number is beyond 64 bits.")


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isfinite(value):
        return value
    raise Refused(422, "A number is too large.")


def _constant(name: str) -> Any:
    raise Refused(422, f"{name} is not a number that JSON knows.")
