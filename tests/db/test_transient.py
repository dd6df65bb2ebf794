"""Which errors come from the connection or the moment, so that the same call may work again."""

import asyncio
import socket

import asyncpg
import pytest

from app.db import is_transient
from app.errors import BadInput, DatabaseUnavailable

MOMENT = [
    asyncpg.ConnectionDoesNotExistError("x"),
    asyncpg.ConnectionFailureError("x"),
    asyncpg.PostgresConnectionError("x"),
    asyncpg.AdminShutdownError("x"),
    asyncpg.CrashShutdownError("x"),
    asyncpg.CannotConnectNowError("x"),
    asyncpg.TooManyConnectionsError("x"),
    asyncpg.SerializationError("x"),
    asyncpg.DeadlockDetectedError("x"),
    asyncpg.IdleSessionTimeoutError("x"),
    asyncpg.InterfaceError("connection is closed"),
    asyncpg.InterfaceError("pool is closing"),
    asyncpg.InternalClientError("got result for unknown protocol state"),
    asyncpg.ProtocolViolationError("query_wait_timeout"),
    ConnectionRefusedError("x"),
    ConnectionResetError("x"),
    BrokenPipeError("x"),
    socket.gaierror(-3, "x"),
    TimeoutError("x"),
    OSError(113, "no route to host"),
    DatabaseUnavailable("x"),
]

OURS = [
    asyncpg.ProtocolViolationError("unsupported startup parameter"),
    asyncpg.InvalidPasswordError("x"),
    asyncpg.InvalidCatalogNameError("x"),
    asyncpg.UndefinedTableError("x"),
    asyncpg.PostgresSyntaxError("x"),
    asyncpg.CheckViolationError("x"),
    asyncpg.UniqueViolationError("x"),
    asyncpg.DataError("x"),
    asyncpg.InsufficientPrivilegeError("x"),
    asyncpg.InterfaceError("another operation is in progress"),
    BadInput("x"),
    ValueError("x"),
    KeyError("x"),
    asyncio.CancelledError(),
    SystemExit(),
]


@pytest.mark.parametrize("error", MOMENT, ids=lambda error: f"{type(error).__name__}: {error}")
def test_an_error_of_the_moment_may_be_tried_again(error):
    assert is_transient(error)


@pytest.mark.parametrize("error", OURS, ids=lambda error: f"{type(error).__name__}: {error}")
def test_an_error_of_ours_would_be_the_same_again(error):
    assert not is_transient(error)
