"""The guard's order and limits: headers, path, address, token, method, body."""

import asyncio
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send
from structlog.testing import capture_logs

from app.web import bodies
from app.web.guard import Guard
from tests.web.toy import JSON, PLACES, bearer, call, echo, send_json

CAP = bodies.BODY_BYTES


async def test_headers_over_64_kib_get_431() -> None:
    got = await call(headers=[bearer(), (b"x-long", b"x" * 65_536)])

    assert got.status == 431


async def test_headers_below_64_kib_pass() -> None:
    got = await call(headers=[bearer(), (b"x-long", b"x" * 60_000)])

    assert got.status == 200


@pytest.mark.parametrize("raw", [b"/open%00", b"/op%0aen", b"/open%1b[31m", b"/open%7f", b"/open%ff", b"/%ed%a0%80"])
async def test_a_path_that_is_no_clean_text_gets_400(raw: bytes) -> None:
    got = await call("GET", "/open", raw_path=raw)

    assert got.status == 400


@pytest.mark.parametrize("query", [b"x=%00", b"%0d%0a", b"x=%ff"])
async def test_a_query_that_is_no_clean_text_gets_400(query: bytes) -> None:
    got = await call("GET", "/open", query=query)

    assert got.status == 400


async def test_an_unknown_address_gets_404_without_a_look_at_its_body() -> None:
    got = await call(path="/nothing", headers=[bearer()], body=[b"x"])

    assert (got.status, got.received) == (404, 0)


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "DELETE", "TRACE", "BREW"])
async def test_a_method_that_is_not_taken_gets_405_and_the_list(method: str) -> None:
    got = await call(method, headers=[bearer()])

    assert got.status == 405
    assert got.headers["allow"] == "POST, PUT"


async def test_every_answer_forbids_storing_and_sniffing() -> None:
    answers = [await call("GET", "/open"), await call("GET", "/nothing"), await call(headers=[bearer()])]

    assert [got.headers["cache-control"] for got in answers] == ["no-store"] * 3
    assert [got.headers["x-content-type-options"] for got in answers] == ["nosniff"] * 3


async def test_a_body_declared_over_the_cap_is_refused_unread() -> None:
    got = await call(headers=[bearer(), JSON, (b"content-length", str(CAP + 1).encode())], body=[b"{}"])

    assert (got.status, got.received) == (413, 0)


@pytest.mark.parametrize("length", [None, b"2"])
async def test_a_body_over_the_cap_is_counted_whatever_was_declared(length: bytes | None) -> None:
    declared = [] if length is None else [(b"content-length", length)]

    got = await call(headers=[bearer(), JSON, *declared], body=[b"x" * 65_536] * 100)

    assert got.status == 413
    assert got.received == 5


async def test_a_body_at_the_cap_passes() -> None:
    got = await send_json(b'"' + b"x" * (CAP - 2) + b'"')

    assert got.json["length"] == CAP


@pytest.mark.parametrize("length", [b"-1", b"1e3", b"", b"9" * 30, "٣".encode()])
async def test_a_length_that_is_no_number_gets_400(length: bytes) -> None:
    got = await call(headers=[bearer(), (b"content-length", length)], body=[b"{}"])

    assert got.status == 400


async def test_a_body_that_does_not_arrive_gets_408_and_the_connection_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bodies.read_body, "__defaults__", (CAP, 0.01))

    got = await call(headers=[bearer(), JSON], body=[b'{"half":'], never_ends=True)

    assert got.status == 408
    assert got.headers["connection"] == "close"


async def test_a_client_that_hangs_up_is_not_answered() -> None:
    got = await call(headers=[bearer(), JSON], body=[])

    assert got.status == 0


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        b"text/plain",
        b"application/x-www-form-urlencoded",
        b"multipart/form-data; boundary=x",
        b"text/json",
        b"application/jsonp",
        b"application/json5",
        b"xapplication/json",
        b"*/*",
        b"\xff",
    ],
)
async def test_a_body_that_is_not_called_json_gets_415_and_what_to_send(content_type: bytes | None) -> None:
    headers = [] if content_type is None else [(b"content-type", content_type)]

    got = await call(headers=[bearer(), *headers], body=[b"{}"])

    assert got.status == 415
    assert "Content-Type: application/json" in got.json["detail"]


@pytest.mark.parametrize(
    "content_type", [b"application/json", b"Application/JSON; charset=utf-8", b"application/vnd.api+json"]
)
async def test_a_body_that_is_called_json_is_read(content_type: bytes) -> None:
    got = await call(headers=[bearer(), (b"content-type", content_type)], body=[b'{"a"', b": 1}"])

    assert got.json == {"parsed": {"a": 1}, "length": 8}


async def test_an_empty_body_needs_no_type() -> None:
    got = await call(headers=[bearer()])

    assert got.json == {"parsed": None, "length": 0}


async def test_an_error_that_nobody_foresaw_is_a_500_with_an_id_and_without_its_text() -> None:
    with capture_logs() as lines:
        got = await call(headers=[bearer()], app=_fail)

    assert got.status == 500
    assert "canary" not in got.body.decode() + str(lines)
    assert [line["error_id"] for line in lines if line["event"] == "request.failed"] == [got.json["id"]]


async def _fail(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise ValueError("canary /etc/passwd postgresql://user:canary@host/name SELECT 1")


async def test_an_answer_that_fails_half_way_closes_the_connection() -> None:
    async def fail_late(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ValueError

    with pytest.raises(RuntimeError, match="half-way"):
        await call(headers=[bearer()], app=fail_late)


async def test_each_request_is_one_line_without_its_address_query_or_token() -> None:
    with capture_logs() as lines:
        await call("GET", "/open", query=b"token=canary", headers=[bearer("canary")])
        await call("GET", "/canary%0afake", raw_path=b"/canary%0afake")

    assert [_without_ms(line) for line in lines] == [
        {"event": "request.finished", "log_level": "info", "method": "GET", "route": "/open", "status": 200},
        {
            "event": "request.finished",
            "log_level": "info",
            "method": "GET",
            "route": "unmatched",
            "status": 400,
        },
    ]
    assert "canary" not in str(lines)


def _without_ms(line: Any) -> dict[str, Any]:
    assert line["ms"] >= 0
    return {name: value for name, value in line.items() if name != "ms"}


async def test_a_cancelled_request_is_still_one_line() -> None:
    async def hang(_scope: Scope, _receive: Receive, _send: Send) -> None:
        entered.set()
        await asyncio.Event().wait()

    entered = asyncio.Event()
    with capture_logs() as lines:
        task = asyncio.create_task(call(headers=[bearer()], app=hang))
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert [(line["event"], line["status"]) for line in lines] == [("request.finished", None)]


async def test_a_request_that_is_cut_off_by_the_stop_is_told_to_come_again() -> None:
    async def hang(_scope: Scope, _receive: Receive, _send: Send) -> None:
        stopping.set()
        task.cancel()
        await asyncio.Event().wait()

    stopping = asyncio.Event()
    task = asyncio.create_task(call(headers=[bearer()], app=hang, stopping=stopping))
    got = await task

    assert got.status == 503
    assert int(got.headers["retry-after"]) > 0


async def test_a_web_socket_is_closed() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    await Guard(echo, PLACES, asyncio.Event())({"type": "websocket", "path": "/open"}, _silence, send)

    assert sent == [{"type": "websocket.close", "code": 1008}]


async def _silence() -> Message:
    return {"type": "websocket.disconnect"}


async def test_a_route_can_still_learn_that_its_client_has_gone() -> None:
    async def read_on(_scope: Scope, receive: Receive, send: Send) -> None:
        messages = [await receive(), await receive()]
        assert [message["type"] for message in messages] == ["http.request", "http.disconnect"]
        await echo({"type": "http"}, receive, send)

    got = await call(headers=[bearer()], app=read_on)

    assert got.status == 200
