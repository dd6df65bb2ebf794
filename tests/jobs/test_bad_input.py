"""What no row may hold is refused as BadInput, by either way in, and never as an error of the driver."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import BadInput
from app.jobs import Job, Kind, NewJob, enqueue, enqueue_many
from app.jobs.enqueue import PAYLOAD_BYTES, payload_text
from tests.jobs.rows import statuses, tick_once

Put = Callable[..., Awaitable[Any]]
ALOFT = timezone(timedelta(hours=14))
BELOW = timezone(timedelta(hours=-12))


class Opaque(pydantic.BaseModel):
    held: bytes = b"\xff\xfe"


@dataclass
class Handle:
    held: object


def nested(levels: int) -> dict[str, Any]:
    payload: dict[str, Any] = {}
    for _ in range(levels):
        payload = {"x": payload}
    return payload


PAYLOADS = {
    "a list": [1],
    "a text": "x",
    "a number": 1,
    "a class": Opaque,
    "a NUL": {"x": "a\x00b"},
    "a NUL in a key": {"a\x00b": 1},
    "a NUL behind backslashes": {"x": "\\\\\x00"},
    "a lone surrogate": {"x": "\ud800"},
    "a lone surrogate in a key": {"\udfff": 1},
    "NaN": {"x": float("nan")},
    "infinity": {"x": [float("-inf")]},
    "bytes": {"x": b"x"},
    "an object": {"x": object()},
    "a key that is no text": {(1, 2): 1},
    "a model that cannot be written": Opaque(),
    "a dataclass of what is not JSON": Handle(object()),
    "too much": {"x": "x" * PAYLOAD_BYTES},
    "too much in bytes": {"x": "\u0e01" * (PAYLOAD_BYTES // 3)},
    "too deep": nested(100_000),
    "too many digits": {"x": 10**5000},
}

FIELDS: list[dict[str, Any]] = [
    {"kind": ""},
    {"kind": "k" * 201},
    {"kind": "a\x00b"},
    {"kind": "\ud800"},
    {"kind": None},
    {"kind": 7},
    {"queue": ""},
    {"queue": "q" * 201},
    {"queue": "\x00"},
    {"queue": "\udc00"},
    {"queue": None},
    {"dedupe_key": ""},
    {"dedupe_key": "d" * 501},
    {"dedupe_key": "a\x00"},
    {"dedupe_key": "\ud800"},
    {"dedupe_key": 5},
    {"priority": 2},
    {"priority": -2},
    {"priority": 2**15},
    {"priority": 2**63},
    {"priority": "high"},
    {"priority": None},
    {"max_attempts": 0},
    {"max_attempts": -1},
    {"max_attempts": 2**31},
    {"max_attempts": 2**63},
    {"max_attempts": 10**400},
    {"max_attempts": None},
    {"run_at": datetime(2031, 1, 1)},  # noqa: DTZ001 - a time without a zone is what is refused
    {"expires_at": datetime(2031, 1, 1)},  # noqa: DTZ001 - the same
    {"run_at": datetime.max.replace(tzinfo=UTC)},
    {"run_at": datetime.min.replace(tzinfo=ALOFT)},
    {"run_at": datetime.max.replace(tzinfo=BELOW)},
    {"expires_at": datetime.max.replace(tzinfo=BELOW)},
    {"run_at": "2031-01-01T00:00:00Z"},
    {"run_at": date(2031, 1, 1)},
    {"run_at": 1_700_000_000},
]


async def put_one(conn: Any, **fields: Any) -> None:
    await enqueue(conn, fields.pop("kind", "toy"), fields.pop("payload", None), **fields)


async def put_many(conn: Any, **fields: Any) -> None:
    await enqueue_many(conn, [NewJob("toy"), NewJob(**{"kind": "toy"} | fields)])


@pytest.mark.parametrize("put", [put_one, put_many])
async def test_no_impossible_field_gets_in_and_none_raises_a_drivers_error(conn, put: Put):
    for fields in FIELDS:
        with pytest.raises(BadInput) as refused:
            await put(conn, **fields)
        assert str(refused.value)

    assert await statuses(conn) == {}


@pytest.mark.parametrize("name", PAYLOADS)
def test_no_impossible_payload_gets_in(name):
    with pytest.raises(BadInput):
        payload_text(PAYLOADS[name])


async def test_the_largest_payload_that_is_taken_is_stored(conn):
    text = "x" * (PAYLOAD_BYTES - len('{"x":""}'))

    await enqueue(conn, "toy", {"x": text})
    await enqueue_many(conn, [NewJob("toy", {"x": text})])

    assert await statuses(conn) == {"ready": 2}


async def test_a_refused_batch_leaves_nothing_behind(conn):
    with pytest.raises(BadInput, match="priority is low normal or high"):
        await enqueue_many(conn, [NewJob("toy"), NewJob("toy", priority=5), NewJob("toy")])

    assert await statuses(conn) == {}


async def test_a_refusal_names_the_rule_and_not_the_value(conn):
    with pytest.raises(BadInput) as refused:
        await enqueue(conn, "toy", dedupe_key="secret-" * 100)

    assert str(refused.value) == "jobs dedupe key is short"


@pytest.mark.parametrize("levels", [*range(190, 215), 300, 900])
async def test_a_depth_that_passes_our_door_passes_the_databases_and_the_handlers(conn, services, levels):
    read = []

    async def deep(job: Job) -> None:
        read.append(job.payload)

    payload, refusal = nested(levels), None
    try:
        await enqueue(conn, "toy", payload)
    except BadInput as refused:
        refusal = str(refused)

    if refusal is not None:
        assert levels > 190
        assert refusal == "the payload is nested so deeply that no handler could read it"
        return
    assert levels < 300
    assert (await tick_once(services({"toy": Kind(deep)})))["jobs"]["done"] == 1
    assert read == [payload]


def test_many_brackets_that_are_not_deep_are_taken():
    payload = {"x": [{}] * 500, "text": "[[[[" * 200}

    assert json.loads(payload_text(payload)) == payload


TEXT = st.text(st.characters(codec=None), max_size=8)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=100, deadline=None, database=None)
@given(payloads=st.lists(st.dictionaries(TEXT, ANYTHING, max_size=3), min_size=20, max_size=20))
def test_a_payload_is_refused_or_read_back_the_same(payloads):
    for payload in payloads:
        try:
            text = payload_text(payload)
        except BadInput:
            continue
        assert "\x00" not in text
        assert json.loads(text) == payload
        text.encode()


async def test_whatever_our_door_lets_through_the_database_takes(conn):
    @settings(max_examples=1, deadline=None, database=None, derandomize=True)
    @given(payloads=st.lists(st.dictionaries(TEXT, ANYTHING, max_size=3), min_size=300, max_size=300))
    def gather(payloads: list[dict[str, Any]]) -> None:
        found.extend(payloads)

    found: list[dict[str, Any]] = []
    gather()
    accepted = []
    for payload in found:
        try:
            accepted.append(NewJob("toy", payload))
        except BadInput:
            continue

    results = await enqueue_many(conn, accepted)

    assert len(results) == len(accepted)
