"""What goes wrong, as RFC 9457 tells it: one judge, from an exception to the answer's status and sentence.

    Refused                       as it says              BadInput          422
    RequestValidationError        422, fields named       NotFound          404
    HTTPException                 its own status          Conflict          409
    the database is away          503 + Retry-After       SchemaBehind      503
    anything else                 500, a fixed sentence and an id that the log has too

An answer never holds a value that was sent, a path of ours, SQL or an address.
"""

import json
import secrets
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from app.db import is_transient
from app.errors import BadInput, Conflict, DatabaseUnavailable, NotFound, SchemaBehind
from app.log import get_logger

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_SECONDS = 5
FIELDS_SHOWN = 20
FIELD_CHARS = 100
FRAMES_LOGGED = 8
TITLES = {status.value: status.phrase for status in HTTPStatus}
UNFORESEEN = "Something went wrong on our side; the log tells more under this id."
SENTENCES = {404: "There is nothing at this address.", 405: "This address does not take this method."}

# What PostgreSQL says of itself, by class: connection, login, no such database, resources, operator, I/O.
AWAY = ("08", "28", "3D", "53", "57", "58")
SCHEMA_MISSING = ("42P01", "42703", "42883")
VALUE_REFUSED = ("22", "23")


# What OpenAPI says of every route, instead of FastAPI's own form of 422.
PROBLEM_SCHEMA = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "maxLength": 100},
        "title": {"type": "string", "maxLength": 100},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": {"type": "string", "maxLength": 1000},
    },
}
RESPONSES: dict[int | str, dict[str, Any]] = {
    "default": {"description": "A problem, as RFC 9457 tells it.", "content": {MEDIA_TYPE: {"schema": PROBLEM_SCHEMA}}}
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One answer that is an error; *more* holds members beside those of RFC 9457."""

    status: int
    detail: str
    headers: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)

    def as_bytes(self) -> bytes:
        """Return the body; pure ASCII, so that no character in it can fail to encode."""
        title = TITLES.get(self.status, "Error")
        members = {"type": "about:blank", "title": title, "status": self.status, "detail": self.detail}
        return json.dumps(members | dict(self.more)).encode()

    def as_response(self) -> Response:
        """Return the answer, ready to send."""
        return Response(self.as_bytes(), self.status, dict(self.headers), MEDIA_TYPE)


class Refused(Exception):
    """End this request with a problem."""

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.problem = Problem(status, detail, named)
        super().__init__(detail)


def _unavailable(sentence: str) -> Problem:
    return Problem(503, sentence, {"Retry-After": str(RETRY_AFTER_SECONDS)})


STOPPED = _unavailable("This process is stopping: try again.")


async def answer_problem(_request: Request, error: Exception) -> Response:
    """Answer *error* within FastAPI: the handler of what it would otherwise answer itself."""
    return problem_for(error).as_response()


def problem_for(error: Exception) -> Problem:
    """Judge *error*; what nobody foresaw is logged under the id that the answer holds."""
    if isinstance(error, Refused):
        return error.problem
    if isinstance(error, RequestValidationError):
        return _invalid(error.errors())
    if isinstance(error, HTTPException):
        sentence = SENTENCES.get(error.status_code) or str(error.detail) or "The request was refused."
        return Problem(error.status_code, sentence, error.headers or {})
    return _foreseen(error) or _of_the_database(error) or _unforeseen(error)


def _foreseen(error: Exception) -> Problem | None:
    for kind, status in ((BadInput, 422), (NotFound, 404), (Conflict, 409), (SchemaBehind, 503)):
        if isinstance(error, kind):
            return Problem(status, str(error))
    return _unavailable(str(error)) if isinstance(error, DatabaseUnavailable) else None


def _of_the_database(error: Exception) -> Problem | None:
    state = str(getattr(error, "sqlstate", None) or "")
    if state in SCHEMA_MISSING:
        return Problem(503, SchemaBehind.__doc__ or "")
    if is_transient(error) or state.startswith(AWAY):
        return _unavailable("The database cannot serve this now: try again.")
    if state.startswith(VALUE_REFUSED):
        rule = str(getattr(error, "constraint_name", None) or "").replace("_", " ")
        return Problem(422, f"The database refused a value: {rule or 'it does not fit its column'}.")
    return None


def _unforeseen(error: Exception) -> Problem:
    name = secrets.token_hex(8)
    # Not the exception's text: it may repeat a payload. Its type and the way to it are what a person needs.
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES_LOGGED:]
    where = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    get_logger().error("request.failed", error_id=name, error=type(error).__name__, where=where)
    return Problem(500, UNFORESEEN, more={"id": name})


def _invalid(errors: Iterable[Any]) -> Problem:
    fields = [_field(item) for item, _ in zip(errors, range(FIELDS_SHOWN), strict=False)]
    if not fields:
        return Problem(422, "The request does not fit.")
    first = fields[0]
    detail = f"{first['field']}: {first['message']}"
    return Problem(422, detail, more={"errors": fields})


def _field(item: Mapping[str, Any]) -> dict[str, str]:
    path = ".".join(str(part) for part in item.get("loc", ())) or "body"
    message = str(item.get("msg", "does not fit")).removeprefix("Value error, ")
    return {"field": path[:FIELD_CHARS], "message": message[: 2 * FIELD_CHARS]}
