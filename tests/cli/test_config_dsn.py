"""An address of the database that cannot be read is refused at the start, and not repeated."""

import pytest

from app.config import load_settings
from app.errors import ConfigError


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:p@host/name",
        "postgresql://u:p@one:5432,two:5433/name",
        "postgresql://u:p@[::1]:5432/name?sslmode=require",
        "postgresql:///name?host=/tmp",
        "postgresql+asyncpg://u@host",
    ],
)
def test_forms_that_the_driver_knows_are_taken(url: str) -> None:
    assert load_settings(database_url=url).dsn.startswith("postgresql://")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:canary#x@host/name",
        "postgresql://u:canary/x@host/name",
        "postgresql://u:canary?x@host/name",
        "postgresql://u:canary@[::1/name",
        "postgresql://u:canary@host:port/name",
        "mysql://u:canary@host/name",
    ],
)
def test_a_form_that_it_does_not_know_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ConfigError, match="DATABASE_URL") as refused:
        load_settings(database_url=url)

    assert "canary" not in str(refused.value)
