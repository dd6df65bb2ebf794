"""The worst bodies at the cap cost little: nothing of ours is quadratic in the length of a body.

At most 40 ms were measured, and 150 ms is what another request may wait; one quadratic step would cost minutes. What is
measured is the processor's time, with all that other tests have left in memory kept out of collections, as a server's
start-up keeps its own: neither the neighbours of a busy machine nor they are the body's cost.
"""

import contextlib
import gc
import time
from collections.abc import Iterator

import pytest

from app.web.bodies import BODY_BYTES, parse_json
from app.web.problems import Refused

CAP = BODY_BYTES
OTHERS_WAIT_SECONDS = 0.15
BOMBS = {
    "empty lists": (b"[", b"[],", b"1]"),
    "empty objects": (b"[", b"{},", b"1]"),
    "objects": (b"[", b'{"a":1},', b"1]"),
    "lists 31 deep": (b"[", b"[" * 31 + b"]" * 31 + b",", b"1]"),
    "digits": (b"[", b"1,", b"1]"),
    "floats": (b"[", b"0.5,", b"1]"),
    "powers": (b"[", b"1e9,", b"1]"),
    "long integers": (b"[", b"9" * 4000 + b",", b"1]"),
    "one integer": (b"", b"1", b""),
    "one float": (b"", b"1", b".5"),
    "openers": (b"", b"[", b""),
    "unclosed strings of quotes": (b"", b'\\"', b""),
    "an unclosed string of quotes": (b'"', b'\\"', b"\\"),
    "quotes": (b"", b'"', b""),
    "backslashes": (b'"', b"\\\\", b'"'),
    "pairs": (b'"', rb"\ud83d\ude00", b'"'),
    "NULs": (b'"', rb"\u0000", b'"'),
    "spaces": (b"", b" ", b"1"),
    "empty strings": (b"[", b'"",', b"1]"),
}


@pytest.fixture(autouse=True)
def _collected_apart() -> Iterator[None]:
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize("shape", BOMBS.values(), ids=BOMBS)
def test_a_body_at_the_cap_blocks_nobody(shape: tuple[bytes, bytes, bytes]) -> None:
    assert _cost(shape) < OTHERS_WAIT_SECONDS


def _cost(shape: tuple[bytes, bytes, bytes]) -> float:
    """Return the processor seconds of the cheapest of three tries."""
    first, repeated, last = shape
    body = first + repeated * ((CAP - len(first) - len(last)) // len(repeated)) + last
    costs = []
    for _ in range(3):
        started = time.thread_time()
        with contextlib.suppress(Refused):  # a bomb may be refused: what it cost is asked
            parse_json(body)
        costs.append(time.thread_time() - started)
    return min(costs)
