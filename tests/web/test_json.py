"""JSON that no table and no other reader could hold is refused with 4xx, in one sentence."""

import json

import pytest

from tests.web.toy import send_json

BAD = {
    "NaN": b'{"x": NaN}',
    "Infinity": b'{"x": Infinity}',
    "minus Infinity": b"[-Infinity]",
    "an infinite float": b'{"x": 1e999}',
    "a long infinite float": b"[" + b"9" * 400 + b".5]",
    "2^63": b'{"x": 9223372036854775808}',
    "-2^63-1": b'{"x": -9223372036854775809}',
    "400 digits": b'{"x": ' + b"1" * 400 + b"}",
    "5,000 digits": b'{"x": ' + b"1" * 5_000 + b"}",
    "a NUL in a value": rb'{"x": "a\u0000b"}',
    "a NUL in a key": rb'{"\u0000": 1}',
    "a NUL after a backslash": rb'{"x": "\\\u0000"}',
    "a high surrogate": rb'{"x": "\ud800"}',
    "a low surrogate": rb'{"x": "\udc00"}',
    "a surrogate in a key": rb'{"\uDFFF": 1}',
    "two high surrogates": rb'["\ud800\ud800\udc00"]',
    "a surrogate and a letter": rb'["\ud83da"]',
    "the same key twice": b'{"x": 1, "x": 2}',
    "the same key twice, written apart": rb'{"x": 1, "\u0078": 2}',
    "the same key twice, deep": b'[{"a": {"x": 1, "x": 1}}]',
    "33 levels": b"[" * 33 + b"]" * 33,
    "33 levels of objects": b'{"a":' * 33 + b"1" + b"}" * 33,
    "900 levels": b"[" * 900 + b"]" * 900,
    "100,000 levels": b"[" * 100_000 + b"]" * 100_000,
    "1,001 keys": json.dumps(dict.fromkeys(map(str, range(1001)))).encode(),
}
NOT_JSON = {
    "text": b"hello",
    "an open object": b"{",
    "an open string": b'"abc',
    "an open escape": b'"abc\\',
    "a comma too many": b"[1,]",
    "two values": b"{} {}",
    "single quotes": b"{'a': 1}",
    "a raw NUL": b'"\x00"',
    "a raw line break in a string": b'"a\nb"',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "latin-1": b'"caf\xe9"',
    "a raw surrogate": b'"\xed\xa0\x80"',
    "an overlong slash": b'"\xc0\xaf"',
    "a wrong closer": b"[}",
    "closers first": b"]" * 50 + b"[" * 50,
    "white space": b"   ",
    "a form": b"a=1&b=2",
    "hexadecimal": b"0x10",
    "a leading zero": b"01",
    "undefined": b"undefined",
}
GOOD = {
    "2^63-1": (b"9223372036854775807", 2**63 - 1),
    "-2^63": (b"-9223372036854775808", -(2**63)),
    "2^53+1": (b"9007199254740993", 2**53 + 1),
    "a large float": (b"1e308", 1e308),
    "a tiny float": (b"1e-999", 0.0),
    "32 levels": (b"[" * 32 + b"]" * 32, None),
    "brackets in a string": (b'"' + b"[{" * 100 + b'"', "[{" * 100),
    "a quote and brackets in a string": (b'"\\"' + b"[" * 100 + b'"', '"' + "[" * 100),
    "a written backslash before u0000": (rb'"\\u0000"', "\\u0000"),
    "a written backslash before ud800": (rb'"\\ud800"', "\\ud800"),
    "a pair": (rb'"\ud83d\ude00"', "\U0001f600"),
    "a pair in capitals": (rb'"\uD83D\uDE00\uD83D\uDE00"', "\U0001f600\U0001f600"),
    "raw emoji": ('"\U0001f600"'.encode(), "\U0001f600"),
    "the word NaN": (b'"NaN"', "NaN"),
    "null": (b"null", None),
}


@pytest.mark.parametrize("body", BAD.values(), ids=BAD)
async def test_json_that_nobody_could_keep_gets_422(body: bytes) -> None:
    got = await send_json(body)

    assert (got.status, got.headers["content-type"]) == (422, "application/problem+json")
    assert got.json["detail"]


@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON)
async def test_what_is_no_json_gets_400(body: bytes) -> None:
    got = await send_json(body)

    assert (got.status, got.headers["content-type"]) == (400, "application/problem+json")


@pytest.mark.parametrize(("body", "value"), GOOD.values(), ids=GOOD)
async def test_json_at_the_edge_is_read_as_it_is(body: bytes, value: object) -> None:
    got = await send_json(body)

    assert got.status == 200
    assert value is None or got.json["parsed"] == value
