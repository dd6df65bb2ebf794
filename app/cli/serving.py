"""The server: uvicorn on a socket of ours, with every wait bounded. No command line is imported here.

    settings -> socket -> application -> serve until SIGTERM or SIGINT -> exit 0

A wrong setting is told before FastAPI is loaded. The socket listens before the application is ready: during
a cold start callers wait in the queue instead of being refused.
"""

import os
import signal
import socket
from types import FrameType
from typing import NoReturn

from app.config import load_settings
from app.errors import ConfigError
from app.heap import freeze_start_up

ALL_ADDRESSES = "0.0.0.0"  # noqa: S104 - a container is reached from outside
BACKLOG = 2048
GRACE_SECONDS = 8  # hosts kill after 10
KEEP_ALIVE_SECONDS = 5
CONNECTIONS_MAX = 500  # above, uvicorn answers 503: sockets held open cannot use up the file descriptors


def serve(host: str = ALL_ADDRESSES, port: int | None = None) -> int:
    """Serve until a signal and return the exit code; the settings come from the environment.

    Raises ConfigError for settings that do not do, or a port that is taken.
    """
    end_on_signals()
    settings = load_settings("DATABASE_URL", "CRON_SECRET")
    with listen(host, settings.port if port is None else port) as listener:
        return run_server(listener)


def run_server(listener: socket.socket) -> int:
    """Answer what comes to *listener* until a signal and return the exit code."""
    import uvicorn  # noqa: PLC0415 - after the settings are known to be right

    config = uvicorn.Config(
        "app.main:create_app",
        factory=True,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        limit_concurrency=CONNECTIONS_MAX,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    config.load()  # here rather than in `run`, so that what start-up makes can be frozen
    freeze_start_up()
    server = uvicorn.Server(config)
    server.run(sockets=[listener])
    return 0 if server.started else 1


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on *host* and *port*; raise ConfigError when it cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG, dualstack_ipv6=both)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise ConfigError([f"PORT: cannot listen on {host} port {port}: {reason.lower()}."]) from None


def end_on_signals() -> None:
    """Let SIGTERM and SIGINT end the process with code 0 by unwinding, so that every `with` block cleans up.

    uvicorn puts its own handlers in front while it serves, and raises the signal once more when it is done.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)


def _leave(_number: int, _frame: FrameType | None) -> NoReturn:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # a second Ctrl-C must not cut the cleaning short
    raise SystemExit(0)
