"""What an error of the database means for the one at the keyboard.

The server's own words may repeat a user, a host or a value, so only the error's class is told.
"""

import asyncpg

from app.cli import exits
from app.config import DSN_FORM
from app.db import is_transient

RIGHTS = "the database user lacks a right: grant it the tables of Dormouse, or migrate as their owner."

# The first class that fits counts: special cases stand before the general ones.
SENTENCES: tuple[tuple[type[Exception], str, int], ...] = (
    (asyncpg.UndefinedTableError, "the schema is behind this build: run `dormouse migrate`.", exits.BEHIND),
    (asyncpg.UndefinedColumnError, "the schema is behind this build: run `dormouse migrate`.", exits.BEHIND),
    (
        asyncpg.UndefinedFunctionError,
        "the schema is behind this build: run `dormouse migrate`.",
        exits.BEHIND,
    ),
    (
        asyncpg.InvalidAuthorizationSpecificationError,
        "the database refused the user or the password of DATABASE_URL.",
        exits.UNREACHABLE,
    ),
    (asyncpg.IntegrityConstraintViolationError, "the database refused these values.", exits.WRONG_INPUT),
    (asyncpg.DataError, "a value does not fit its column.", exits.WRONG_INPUT),
    (
        asyncpg.InvalidCatalogNameError,
        "the server has no database of the name in DATABASE_URL: create it first.",
        exits.UNREACHABLE,
    ),
    (asyncpg.InsufficientPrivilegeError, RIGHTS, exits.REFUSED),
    (
        asyncpg.ReadOnlySQLTransactionError,
        "the database is read-only: DATABASE_URL must name the primary.",
        exits.UNREACHABLE,
    ),
    (
        asyncpg.ClientConfigurationError,
        f"DATABASE_URL cannot be read: its form is {DSN_FORM}.",
        exits.WRONG_INPUT,
    ),
    (
        asyncpg.ProtocolViolationError,
        "the pooler refused the connection: let it ignore the start-up parameters that it does not know.",
        exits.UNREACHABLE,
    ),
)


def judge_database_error(error: Exception) -> tuple[str, int]:
    """Return the sentence and the exit code for *error*; raise it again when it is none of the database's."""
    for kind, sentence, code in SENTENCES:
        if isinstance(error, kind):
            return sentence, code
    ours = isinstance(error, (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError))
    if (ours or isinstance(error, (ConnectionError, TimeoutError))) and is_transient(error):
        return f"the database cannot be reached ({type(error).__name__}).", exits.UNREACHABLE
    if isinstance(error, asyncpg.PostgresError):
        return f"the database refused this ({type(error).__name__}).", exits.ATTENTION
    raise error
