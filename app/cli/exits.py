"""How a command ends: the exit codes, and the one place where an expected error becomes a sentence.

    0    done
    1    something needs a person: a tick that is not ok, a finding of the doctor, a server that cannot start
    2    the command line, the input or the settings are wrong
    3    the database cannot be reached
    4    the schema is behind: run `dormouse migrate`
    5    there is no such row, or its state does not allow this
    130  interrupted (Ctrl-C); a server, a worker or a demo that a signal ends is done: 0

Each command's --help says which of them it may end with.
"""

import sys
from collections.abc import Callable

from app.errors import BadInput, ConfigError, Conflict, DatabaseUnavailable, DormouseError, NotFound, SchemaBehind

OK = 0
ATTENTION = 1
WRONG_INPUT = 2
UNREACHABLE = 3
BEHIND = 4
REFUSED = 5
INTERRUPTED = 130

BY_ERROR: tuple[tuple[type[Exception] | tuple[type[Exception], ...], int], ...] = (
    ((ConfigError, BadInput), WRONG_INPUT),
    (DatabaseUnavailable, UNREACHABLE),
    (SchemaBehind, BEHIND),
    ((NotFound, Conflict), REFUSED),
    (DormouseError, ATTENTION),
)


def exit_with(command: Callable[[], int | None]) -> int:
    """Run *command* and return its exit code; an expected error is told on standard error, not raised."""
    try:
        return command() or OK
    except KeyboardInterrupt:
        return INTERRUPTED
    except DormouseError as error:
        say_aside(str(error))
        return next(code for kinds, code in BY_ERROR if isinstance(error, kinds))
    except Exception as error:  # noqa: BLE001 - raised again by the judge, when it is not the database's
        from app.cli.sentences import judge_database_error  # noqa: PLC0415 - a good start pays for no asyncpg

        sentence, code = judge_database_error(error)
        say_aside(sentence)
        return code


def say_aside(text: str) -> None:
    """Write each line of *text* to standard error, so that a script's output stays clean."""
    for line in text.splitlines():
        sys.stderr.write(f"dormouse: {line}\n")
    sys.stderr.flush()
