"""Every error is problem+json, says what to do, and repeats neither what was sent nor what we are made of."""

import json

import asyncpg
import pytest
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from app.errors import BadInput, Conflict, DatabaseUnavailable, LeaseLost, NotFound, SchemaBehind
from app.web.problems import FIELDS_SHOWN, Refused, problem_for

CANARY = "canary-7f3a"


def database_error(kind: type[asyncpg.PostgresError], **fields: str) -> asyncpg.PostgresError:
    error = kind(f'relation "{CANARY}" at /usr/lib/{CANARY} postgresql://u:{CANARY}@host/name')
    for name, value in fields.items():
        setattr(error, name, value)
    return error


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (BadInput("no"), 422),
        (NotFound(), 404),
        (Conflict(), 409),
        (SchemaBehind(), 503),
        (DatabaseUnavailable(), 503),
        (Refused(415, "no"), 415),
        (HTTPException(404), 404),
        (HTTPException(405, headers={"Allow": "POST"}), 405),
        (HTTPException(499, ""), 499),
        (ConnectionRefusedError(CANARY), 503),
        (TimeoutError(CANARY), 503),
        (database_error(asyncpg.TooManyConnectionsError), 503),
        (database_error(asyncpg.InvalidPasswordError), 503),
        (database_error(asyncpg.InvalidCatalogNameError), 503),
        (database_error(asyncpg.DiskFullError), 503),
        (database_error(asyncpg.AdminShutdownError), 503),
        (database_error(asyncpg.SerializationError), 503),
        (database_error(asyncpg.UndefinedTableError), 503),
        (database_error(asyncpg.UndefinedColumnError), 503),
        (database_error(asyncpg.CheckViolationError, constraint_name="jobs_kind_is_named"), 422),
        (database_error(asyncpg.CharacterNotInRepertoireError), 422),
        (database_error(asyncpg.NumericValueOutOfRangeError), 422),
        (asyncpg.DataError(CANARY), 422),
        (database_error(asyncpg.InsufficientPrivilegeError), 500),
        (database_error(asyncpg.PostgresSyntaxError), 500),
        (asyncpg.InterfaceError(CANARY), 500),
        (LeaseLost(CANARY), 500),
        (ValueError(CANARY), 500),
        (KeyError(CANARY), 500),
        (UnicodeEncodeError("utf-8", CANARY, 0, 1, CANARY), 500),
    ],
)
def test_each_error_has_its_status_and_tells_no_secret(error: Exception, status: int) -> None:
    problem = problem_for(error)

    body = json.loads(problem.as_bytes())
    assert (problem.status, body["status"]) == (status, status)
    assert body["detail"]
    assert CANARY not in problem.as_bytes().decode()


@pytest.mark.parametrize("error", [DatabaseUnavailable(), ConnectionResetError(), asyncpg.TooManyConnectionsError()])
def test_a_database_that_is_away_says_when_to_return(error: Exception) -> None:
    assert int(problem_for(error).headers["Retry-After"]) > 0


def test_a_check_that_refuses_shows_its_sentence() -> None:
    error = database_error(asyncpg.CheckViolationError, constraint_name="jobs_kind_is_named")

    assert "jobs kind is named" in problem_for(error).detail


@pytest.mark.parametrize(
    "item",
    [
        {"type": "x", "loc": ("body", "x"), "msg": "bad", "input": CANARY, "ctx": {"error": ValueError(CANARY)}},
        {"loc": ("body", "\ud800", 3), "msg": "\udfff bad", "input": float("nan")},
        {"loc": (), "msg": "bad", "input": object()},
        {"msg": "bad"},
        {},
        {"loc": ("body", "k" * 100_000), "msg": "m" * 100_000, "input": {CANARY: [float("inf")] * 3}},
    ],
)
def test_a_field_that_does_not_fit_is_named_whatever_it_held(item: dict[str, object]) -> None:
    body = problem_for(RequestValidationError([item])).as_bytes()

    answer = json.loads(body)
    assert answer["status"] == 422
    assert len(answer["errors"]) == 1
    assert CANARY not in body.decode()
    assert len(body) < 2_000


def test_a_thousand_wrong_fields_make_a_short_answer() -> None:
    items = [{"loc": ("body", number), "msg": "bad"} for number in range(1000)]

    answer = json.loads(problem_for(RequestValidationError(items)).as_bytes())

    assert len(answer["errors"]) == FIELDS_SHOWN
