"""An exit code means something, and an expected error is a sentence without traceback or secret."""

import pytest

from app import errors
from app.cli import exits
from app.cli.program import MODULES

DEAD_DSN = "postgresql://keeper:hunter2-canary@127.0.0.1:1/dormouse"


@pytest.mark.parametrize(
    "error",
    [
        (errors.ConfigError(["X is wrong"]), 2),
        (errors.BadInput("no"), 2),
        (errors.DatabaseUnavailable(), 3),
        (errors.SchemaBehind(), 4),
        (errors.NotFound(), 5),
        (errors.Conflict(), 5),
        (errors.DormouseError("odd"), 1),
        (KeyboardInterrupt(), 130),
    ],
    ids=repr,
)
def test_each_error_of_ours_has_its_code(error: tuple[BaseException, int]) -> None:
    def fail() -> None:
        raise error[0]

    assert exits.exit_with(fail) == error[1]


def test_every_problem_has_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise errors.ConfigError(["first", "second"])

    exits.exit_with(fail)

    assert capsys.readouterr().err == "dormouse: first\ndormouse: second\n"


def test_a_bug_is_not_hidden() -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        exits.exit_with(fail)


@pytest.mark.parametrize(
    "arguments",
    ["migrate", "tick", "enqueue x", "jobs list", "bookings list"],
)
async def test_an_unreachable_database_is_3_without_a_password(dormouse, arguments: str) -> None:
    ended = await dormouse(*arguments.split(), DATABASE_URL=DEAD_DSN, CONNECT_TIMEOUT_SECONDS="0.5")

    assert ended.code == 3, ended
    assert "cannot be reached" in ended.err or "could not be reached" in ended.err
    assert "Traceback" not in ended.err
    assert "hunter2" not in ended.out + ended.err


@pytest.mark.parametrize("arguments", ["migrate", "tick", "worker", "enqueue x", "jobs list", "bookings list"])
async def test_without_an_address_each_command_says_what_to_set(dormouse, arguments: str) -> None:
    ended = await dormouse(*arguments.split())

    assert ended.code == 2
    assert ended.err.startswith("dormouse: DATABASE_URL is not set")
    assert ended.out == ""


@pytest.mark.parametrize(
    "url", ["postgresql://keeper:hunter2-canary@[::1", "mysql://x", "postgresql://h:hunter2-canary/x"]
)
async def test_an_address_that_cannot_be_read_is_2(dormouse, url: str) -> None:
    ended = await dormouse("jobs", "list", DATABASE_URL=url)

    assert ended.code == 2, ended
    assert ended.err.startswith("dormouse: DATABASE_URL")
    assert "hunter2" not in ended.err


async def test_a_wrong_argument_is_2(dormouse) -> None:
    assert (await dormouse("jobs", "show", "x")).code == 2
    assert (await dormouse("nonsense")).code == 2


async def test_help_names_every_command_and_the_codes(dormouse) -> None:
    ended = await dormouse("--help")

    assert ended.code == 0
    assert all(name in ended.out for name in MODULES)
    assert "4 schema behind" in " ".join(ended.out.split())


@pytest.mark.parametrize("name", MODULES)
async def test_each_command_explains_itself(dormouse, name: str) -> None:
    ended = await dormouse(name, "--help")

    assert ended.code == 0
    assert "Usage: dormouse" in ended.out


async def test_the_version_is_told(dormouse) -> None:
    ended = await dormouse("--version")

    assert ended.code == 0
    assert ended.out.startswith("dormouse ")
