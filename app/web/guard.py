"""What stands before every route, in plain ASGI: it refuses early, answers every error, logs every request.

    headers small -> path sane -> address known -> token -> method -> body read, counted, parsed -> the route

The token comes before the first byte of the body, and all of this before the database. A body is parsed here
once; routes of the class GuardedRoute take the value over.
"""

import asyncio
import re
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.log import get_logger
from app.web.bodies import BODY_BYTES, Gone, check_type, parse_json, read_body
from app.web.forms import FORM_BYTES, check_form_type, parse_form
from app.web.gates import Place, check_same_origin, find_place
from app.web.problems import MEDIA_TYPE, STOPPED, Problem, Refused, problem_for

HEADER_BYTES = 65_536
BODY_METHODS = ("POST", "PUT", "PATCH")
PARSED = "dormouse.body"
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
ALWAYS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))


class Guard:
    """The outermost application of ours: *places* are the addresses it lets through, and how.

    A request that the server cuts off because the process is *stopping* gets a 503, not a connection that breaks.
    """

    def __init__(self, app: ASGIApp, places: Sequence[Place], stopping: asyncio.Event) -> None:
        self._app = app
        self._places = places
        self._stopping = stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request; anything else but the lifespan is closed."""
        if scope["type"] == "http":
            await self._serve(scope, receive, _Answer(send))
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self._app(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        started, template = time.perf_counter(), "unmatched"
        try:
            _check_headers(scope)
            place = find_place(self._places, _sane_path(scope))
            template = place.template
            _check_right(place, scope)
            if scope["method"] in BODY_METHODS:
                receive = await _take_body(place, scope, receive)
            await self._app(scope, receive, answer)
        except Gone:
            pass  # nobody is left to answer
        except asyncio.CancelledError:
            if answer.status is not None or not self._stopping.is_set():
                raise
            await answer.problem(STOPPED)
        except Exception as error:  # noqa: BLE001 - the last one who can answer: judged and logged by problem_for
            await answer.problem(problem_for(error))
        finally:
            took = round((time.perf_counter() - started) * 1000, 1)
            get_logger().info("request.finished", method=scope["method"], route=template, status=answer.status, ms=took)


class _Answer:
    """The way back: it notes the status and sets the headers that every answer has."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status: int | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message.get("headers", ()))
            names = {name for name, _ in headers}
            headers += [header for header in ALWAYS if header[0] not in names]
            message = {**message, "headers": headers}
        await self._send(message)

    async def problem(self, problem: Problem) -> None:
        """Send *problem*, unless an answer has begun: then only closing the connection can tell."""
        if self.status is not None:
            raise RuntimeError("an answer failed half-way")
        headers = [(name.lower().encode(), value.encode()) for name, value in problem.headers.items()]
        body = problem.as_bytes()
        headers += [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
        ]
        await self({"type": "http.response.start", "status": problem.status, "headers": headers})
        await self({"type": "http.response.body", "body": body})


def _check_headers(scope: Scope) -> None:
    if sum(len(name) + len(value) for name, value in scope["headers"]) > HEADER_BYTES:
        raise Refused(431, f"The headers are over {HEADER_BYTES} bytes.")


def _sane_path(scope: Scope) -> str:
    """Return the path that routing will see; raise Refused when it or the query is no clean text."""
    for part in (scope.get("raw_path") or scope["path"].encode(), scope.get("query_string", b"")):
        try:
            text = unquote_to_bytes(part).decode()
        except UnicodeDecodeError:
            raise Refused(400, "The address is not UTF-8.") from None
        if CONTROL.search(text):
            raise Refused(400, "The address holds a control character.")
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


def _check_right(place: Place, scope: Scope) -> None:
    """Token first: who may not enter learns nothing of the methods."""
    if place.gate is not None:
        place.gate.check(scope["headers"])
    if scope["method"] not in place.methods:
        raise Refused(405, "This address does not take this method.", Allow=", ".join(sorted(place.methods)))
    if place.is_page and scope["method"] in BODY_METHODS:
        check_same_origin(scope["headers"])


async def _take_body(place: Place, scope: Scope, receive: Receive) -> Receive:
    """Read and parse the body, keep its value in *scope*, and return a receive that gives its bytes again."""
    headers = dict(scope["headers"])
    limit, check, parse = (
        (FORM_BYTES, check_form_type, parse_form) if place.is_page else (BODY_BYTES, check_type, parse_json)
    )
    body = await read_body(receive, headers.get(b"content-length"), limit)
    if body:
        check(headers.get(b"content-type"))
        scope[PARSED] = parse(body)
    replayed = False

    async def replay() -> Message:
        nonlocal replayed
        if replayed:
            return await receive()
        replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


class _GuardedRequest(Request):
    async def json(self) -> Any:
        """Return what the guard parsed."""
        return self.scope[PARSED]


class GuardedRoute(APIRoute):
    """A route that takes its body from the guard instead of parsing it again."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap FastAPI's handler."""
        handle = super().get_route_handler()

        async def handle_guarded(request: Request) -> Response:
            return await handle(_GuardedRequest(request.scope, request.receive))

        return handle_guarded
