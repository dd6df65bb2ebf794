"""A token opens, anything else does not: 401 before the body is read, and never a 500."""

import ast
import contextlib
from pathlib import Path

import pytest

import app.web
from app.config import load_settings
from app.web.gates import Gate, make_gates
from app.web.problems import Refused
from tests.web.toy import JSON, TOKEN, bearer, call

SECRET = "s" * 40


@pytest.mark.parametrize(
    "header",
    [
        None,
        b"",
        b"Bearer",
        b"Bearer ",
        b"Bearer undefined",
        b"Bearer null",
        b"Bearer None",
        b"Bearer Bearer",
        b"Basic x",
        b"Basic " + TOKEN.encode(),
        TOKEN.encode(),
        b"Bearer " + TOKEN.encode()[:-1],
        b"Bearer " + TOKEN.encode() + b"x",
        b"Bearer " + TOKEN.upper().encode(),
        b"Bearer\x00" + TOKEN.encode(),
        b"BearerBearer " + TOKEN.encode(),
    ],
)
async def test_what_is_not_the_token_gets_401_with_a_challenge(header: bytes | None) -> None:
    headers = [] if header is None else [(b"authorization", header)]

    got = await call(headers=[*headers, JSON], body=[b"{}"])

    assert got.status == 401
    assert got.headers["www-authenticate"] == "Bearer"
    assert got.headers["content-type"] == "application/problem+json"
    assert got.received == 0


@pytest.mark.parametrize("byte", range(0x80, 0x100))
async def test_no_byte_beyond_ascii_in_a_token_is_an_error_of_ours(byte: int) -> None:
    got = await call(headers=[bearer(b"caf" + bytes([byte]))])

    assert got.status == 401


@pytest.mark.parametrize("scheme", [b"Bearer ", b"bearer ", b"BEARER ", b"Bearer  ", b" Bearer   "])
async def test_the_scheme_is_taken_in_any_case_and_with_any_spaces(scheme: bytes) -> None:
    got = await call(headers=[bearer(scheme=scheme)])

    assert got.status == 200


async def test_two_authorization_headers_open_nothing() -> None:
    got = await call(headers=[bearer(), bearer("wrong")])

    assert got.status == 401


@pytest.mark.parametrize("query", [b"token=", b"apiKey=", b"access_token=", b"authorization=Bearer+"])
async def test_a_token_in_the_address_is_not_read(query: bytes) -> None:
    got = await call(query=query + TOKEN.encode())

    assert got.status == 401


async def test_a_gate_without_a_token_is_no_address_at_all() -> None:
    got = await call(path="/api/off", headers=[bearer()])

    assert got.status == 404


async def test_who_may_not_enter_learns_nothing_of_the_methods() -> None:
    got = await call("GET")

    assert got.status == 401
    assert "allow" not in got.headers


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_secret_with_an_accent_opens_in_both_encodings_of_headers(encoding: str) -> None:
    secret = "é" * 40
    gate, *_ = make_gates(load_settings(cron_secret=secret))

    gate.check([bearer(secret.encode(encoding))])


def test_the_previous_secret_opens_the_tick_and_nothing_else_does() -> None:
    values = {"cron_secret": "a" * 40, "cron_secret_previous": "b" * 40, "api_token": "c" * 40}
    cron, jobs, bookings, *_ = make_gates(load_settings(**values))

    opened = {name: _opens(cron, value) for name, value in values.items()}

    assert opened == {"cron_secret": True, "cron_secret_previous": True, "api_token": False}
    assert [_opens(gate, values["cron_secret"]) for gate in (jobs, bookings)] == [False, False]
    assert [_opens(gate, values["api_token"]) for gate in (jobs, bookings)] == [True, True]


def _opens(gate: Gate, token: str) -> bool:
    with contextlib.suppress(Refused):  # the other answer
        gate.check([bearer(token)])
        return True
    return False


def test_white_space_around_a_secret_in_the_environment_is_not_part_of_it() -> None:
    gate, *_ = make_gates(load_settings(cron_secret=f"  {SECRET}\n"))

    gate.check([bearer(SECRET)])


def test_no_token_is_compared_with_an_equals_sign() -> None:
    folder = Path(app.web.__file__).parent

    found = [
        f"{path.name}:{node.lineno}"
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Compare)
        and any(isinstance(sign, ast.Eq | ast.NotEq) for sign in node.ops)
        and any(word in ast.unparse(node).lower() for word in ("token", "secret", "digest", "given"))
    ]

    assert found == []
