"""What the server does with the very bytes of a connection: uvicorn with httptools, as the image runs it.

httptools is the stated parser. A request that it cannot read is its own 400, in plain text, before any of our code.
"""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.web.conftest import API_TOKEN, CRON_SECRET
from tests.web.serving import Serving, read_answer, request

TICK = "/api/cron/tick"
CRON = f"Authorization: Bearer {CRON_SECRET}"
API = f"Authorization: Bearer {API_TOKEN}"
TYPE = "Content-Type: application/json"
CHUNKED = "Transfer-Encoding: chunked"
JOB = b'{"kind": "k"}'
OTHERS_WAIT_SECONDS = 0.15
BOMBS = {
    "empty lists": b"[" + b"[]," * 87_000 + b"1]",
    "objects": b"[" + b'{"a":1},' * 32_000 + b"1]",
    "numbers": b"[" + b"1," * 130_000 + b"1]",
    "wrong jobs": b'{"jobs":[' + b",".join([b'{"kind":1,"q":2,"r":3,"s":4,"t":5,"u":6}'] * 1000) + b"]}",
    "wrong members": b'{"jobs":[' + b"{}," * 87_000 + b"1]}",
}

# Each request, and the status that is the answer to it; httptools decides most of them.
TABLE: list[tuple[bytes, int]] = [
    (request("GET", "/livez"), 200),
    (request("HEAD", "/livez", "Connection: close"), 200),
    (request("OPTIONS", "/livez"), 405),
    (request("GET", "/livez", body=b"x" * 1000), 200),
    (b"GET /livez HTTP/1.0\r\n\r\n", 200),
    (b"GET /livez HTTP/1.1\r\n\r\n", 200),
    (b"GET /livez HTTP/9.9\r\n\r\n", 400),
    (b"GET /livez\r\n\r\n", 200),
    (b"GET  /livez HTTP/1.1\r\n\r\n", 200),
    (b"GET /liv\x00ez HTTP/1.1\r\n\r\n", 400),
    (b"GET /liv\xffez HTTP/1.1\r\n\r\n", 400),
    (b"GET http://evil.example/livez HTTP/1.1\r\nHost: x\r\n\r\n", 200),
    (b"GET * HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    (b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    (b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    (b"BREW /livez HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    (b"get /livez HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    (b"GET /livez HTTP/1.1\r\nBad Header: x\r\n\r\n", 400),
    (b"GET /livez HTTP/1.1\r\nX: a\x00b\r\n\r\n", 400),
    (b"GET /livez HTTP/1.1\r\nX: a\r\n folded\r\n\r\n", 400),
    (b"GET /livez HTTP/1.1\nHost: x\n\n", 400),
    (request("POST", "/api/jobs", API, TYPE, "Content-Length: x"), 400),
    (request("POST", "/api/jobs", API, TYPE, "Content-Length: -1"), 400),
    (request("POST", "/api/jobs", API, TYPE, "Content-Length: 5", "Content-Length: 6"), 400),
    (request("POST", "/api/jobs", API, TYPE, "Content-Length: 99999999999999999999"), 400),
    (request("POST", "/api/jobs", API, TYPE, "Content-Length: 10000000000"), 413),
    (request("POST", "/api/jobs", API, TYPE, CHUNKED, "Content-Length: 5", body=b"0\r\n\r\n"), 400),
    (request("POST", "/api/jobs", API, TYPE, CHUNKED, body=b"zz\r\n"), 400),
    (request("POST", "/api/jobs", API, TYPE, CHUNKED, body=b"d\r\n" + JOB + b"\r\n0\r\n\r\n"), 201),
    (request("POST", "/api/jobs", API, TYPE, "Expect: 100-continue", body=JOB), 100),
    (request("POST", "/api/jobs", TYPE, "Expect: 100-continue", body=JOB), 401),
    (request("GET", "/livez", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: x"), 200),
    (request("GET", "/livez", "Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings"), 200),
]


@pytest.fixture
def running(served: Callable[..., Serving]) -> Iterator[Serving]:
    """A server that is still alive, and has not met an error of its own, when the test is over."""
    serving = served()
    yield serving
    assert serving.process.poll() is None
    assert "Traceback" not in serving.log_text()


def test_the_smallest_call_of_curl_ticks(running: Serving) -> None:
    answer = running.send(f"POST {TICK} HTTP/1.1\r\nHost: x\r\n{CRON}\r\n\r\n".encode())

    assert (answer.status, json.loads(answer.body)["ok"]) == (200, True)
    assert "server:" not in answer.head.lower()


def test_no_raw_byte_in_a_token_is_an_error_of_ours(running: Serving) -> None:
    start = f"POST {TICK} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer caf".encode()

    answers = {byte: running.send(start + bytes([byte]) + b"\r\n\r\n").status for byte in range(0x80, 0x100)}

    assert set(answers.values()) == {401}


def test_each_odd_request_has_its_stated_answer(running: Serving) -> None:
    answers = [(raw, running.send(raw).status) for raw, _ in TABLE]

    assert answers == TABLE


def test_headers_beyond_64_kib_are_refused(running: Serving) -> None:
    answers = [running.send(request("GET", "/livez", "X-Long: " + "x" * size)) for size in (60_000, 70_000, 1_000_000)]

    assert [answer.status for answer in answers] == [200, 431, 431]


def test_a_chunked_body_without_an_end_is_cut_at_the_cap(running: Serving) -> None:
    chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"

    answer = running.send(request("POST", "/api/jobs", API, TYPE, CHUNKED, body=chunk * 6))

    assert answer.status == 413
    assert "connection: close" in answer.head.lower()


def test_a_connection_stays_open_after_an_error_and_serves_the_next(running: Serving) -> None:
    with running.connect() as line:
        for raw, status in [
            (request("POST", TICK), 401),
            (request("POST", "/api/jobs", API, TYPE, body=b"{"), 400),
            (request("POST", "/api/jobs", API, TYPE, body=b'{"x": NaN}'), 422),
            (request("GET", "/nothing"), 404),
            (request("POST", "/api/jobs", API, TYPE, body=b"x" * 300_000), 413),
            (request("POST", "/api/jobs", API, TYPE, body=JOB), 201),
        ]:
            line.sendall(raw)

            assert read_answer(line).status == status


def test_a_body_without_a_token_costs_nobody_else_their_time(running: Serving) -> None:
    bomb = b"[" + b"[]," * 87_000 + b"1]"
    with running.connect() as line:
        line.sendall(request("POST", TICK, TYPE, f"Content-Length: {len(bomb)}") + bomb[:1000])

        assert read_answer(line).status == 401


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_the_worst_body_at_the_cap_does_not_hold_up_another_request(running: Serving, bomb: bytes) -> None:
    waits = []
    for _ in range(5):
        with running.connect() as line, running.connect() as other:
            line.sendall(request("POST", "/api/jobs", API, TYPE, body=bomb)[:-1])
            assert running.send(request("GET", "/livez")).status == 200
            started = time.perf_counter()
            line.sendall(bomb[-1:])
            other.sendall(request("GET", "/livez"))

            assert read_answer(other).status == 200
            waits.append(time.perf_counter() - started)
            assert read_answer(line).status == 422

    assert min(waits) < OTHERS_WAIT_SECONDS, waits


def test_many_half_sent_requests_do_not_slow_a_whole_one(running: Serving) -> None:
    halves = [request("POST", TICK, CRON, TYPE, "Content-Length: 10", body=b"{"), b"GET /livez HT"]
    with contextlib.ExitStack() as lines:
        for number in range(200):
            lines.enter_context(running.connect()).sendall(halves[number % 2])
        started = time.perf_counter()

        answer = running.send(request("GET", "/livez"))

        assert answer.status == 200
        assert time.perf_counter() - started < 0.5


def test_no_token_no_query_and_no_line_of_the_caller_s_reaches_the_log(served: Callable[..., Serving]) -> None:
    serving = served()
    path = "/canary-path%0a%1b[31mfake?token=canary-query"
    wrong = "Authorization: Bearer canary-token"

    serving.send(request("GET", path, wrong, "User-Agent: canary-agent"))
    serving.send(request("POST", f"{TICK}?token={CRON_SECRET}&x=canary-query", wrong))
    serving.send(request("POST", "/api/jobs?canary-query", API, TYPE, body=b'{"canary-body": "canary-body"}'))
    serving.send(request("POST", "/api/jobs", API, TYPE, body=b'{"kind": "k", "payload": {"a": "canary-body"}}'))
    serving.send(request("POST", TICK, CRON))
    serving.stop()

    text = serving.log_text()
    assert not [word for word in ("canary", CRON_SECRET, API_TOKEN) if word in text]
    assert text.count('"request.finished"') == 5


async def test_httpx_gets_the_same_summary_over_the_wire(served: Callable[..., Serving], conn: Any) -> None:
    serving = served()

    async with httpx.AsyncClient(base_url=serving.url, timeout=30) as client:
        answer = await client.post(TICK, headers={"Authorization": f"bearer {CRON_SECRET}"})

    assert answer.status_code == 200
    assert await conn.fetchval("SELECT count(*) FROM ticks") == 1
