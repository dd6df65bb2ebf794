"""A parent that has imported everything and forks processes that work: a new one costs milliseconds, not a second.

    fork {"role": ...}   ->   started PID  ...  ended PID STATUS            (lines on standard input and output)

STATUS is the exit code, negative for a signal. At the end of its input it kills what still runs: nothing outlives it.
"""

import contextlib
import gc
import importlib
import json
import os
import selectors
import signal
import sys
import traceback
from typing import Any, NoReturn

from tests.evidence.kills.roles import ROLES

CONTROL_READ, CONTROL_WRITE = 0, 1


def main() -> None:
    """Import what the arguments name, and fork what is asked for until the input ends."""
    for module in sys.argv[1:]:
        importlib.import_module(module)
    heard, woken = os.pipe()
    for end in (heard, woken):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    gc.collect()
    gc.freeze()
    living: set[int] = set()
    with selectors.DefaultSelector() as selector:
        selector.register(CONTROL_READ, selectors.EVENT_READ)
        selector.register(heard, selectors.EVENT_READ)
        text = b""
        while True:
            ready = {key.fd for key, _ in selector.select()}
            if heard in ready:
                with contextlib.suppress(BlockingIOError):  # read by an earlier turn
                    os.read(heard, 65536)
                _reap(living)
            if CONTROL_READ in ready:
                piece = os.read(CONTROL_READ, 65536)
                if not piece:
                    break
                *lines, text = (text + piece).split(b"\n")
                for line in lines:
                    _fork(json.loads(line), living)
    _end(living)


def _fork(asked: dict[str, Any], living: set[int]) -> None:
    pid = os.fork()
    if pid == 0:
        _be(asked)
    living.add(pid)
    _say(f"started {pid}")


def _be(asked: dict[str, Any]) -> NoReturn:
    """Live the life of a child: its role, on standard streams of its own, and never the parent's code after it."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        log = os.open(asked.get("log", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for number, end in ((0, nothing), (1, log), (2, log)):
            os.dup2(end, number)
        os.environ.update(asked.get("environment", {}))
        code = ROLES[asked["role"]](asked)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    except BaseException:  # noqa: BLE001 - told in the log, and by the code
        traceback.print_exc()
    finally:
        os._exit(code)


def _reap(living: set[int]) -> None:
    while living:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        living.discard(pid)
        _say(f"ended {pid} {os.waitstatus_to_exitcode(status)}")


def _end(living: set[int]) -> None:
    for pid in living:
        os.kill(pid, signal.SIGKILL)
    for pid in living:
        os.waitpid(pid, 0)


def _say(line: str) -> None:
    with contextlib.suppress(BrokenPipeError):  # who asked has gone: nobody listens
        os.write(CONTROL_WRITE, f"{line}\n".encode())


if __name__ == "__main__":
    main()
