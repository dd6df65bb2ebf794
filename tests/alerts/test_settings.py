"""Addresses are judged at start-up: a wrong one is named by its setting, and its value is repeated nowhere."""

import importlib.util
from typing import Any

import pytest

from app import tick
from app.config import load_settings, split_urls
from app.errors import ConfigError
from app.jobs import enqueue
from app.sinks import sinks_of
from app.tick import Budget

CANARY = "c4n4ry"


@pytest.mark.parametrize("name", ["heartbeat_url", "public_url"])
@pytest.mark.parametrize(
    "value",
    [
        CANARY,
        f"ftp://{CANARY}.example.com/x",
        f"https:///{CANARY}",
        f"https://user:{CANARY}@example.com/",
        f"https://h/{CANARY} x",
    ],
)
def test_an_address_that_is_none_is_refused_by_the_name_of_its_setting(name: str, value: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_settings(**{name: value})

    assert str(refused.value).startswith(f"{name.upper()}: ")
    assert CANARY not in str(refused.value)


@pytest.mark.parametrize("value", [CANARY, f"tgram://a/b,{CANARY}://", f"slack:{CANARY}"])
def test_an_alert_address_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_settings(alert_urls=value)

    assert str(refused.value).startswith("ALERT_URLS: address ")
    assert CANARY not in str(refused.value)


def test_without_apprise_an_alert_address_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_nothing(_name: str) -> None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", find_nothing)

    with pytest.raises(ConfigError, match=r"ALERT_URLS: needs apprise.*dormouse\[alerts\]"):
        load_settings(alert_urls="json://127.0.0.1/")


def test_a_public_address_has_no_question_and_loses_its_last_slash() -> None:
    assert load_settings(public_url="https://jobs.example.com/base/").public_url == "https://jobs.example.com/base"
    with pytest.raises(ConfigError, match="PUBLIC_URL"):
        load_settings(public_url="https://jobs.example.com/?a=b")


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("json://a/x, slack://b/y", ["json://a/x", "slack://b/y"]),
        ("json://a/x\n  slack://b/y\n", ["json://a/x", "slack://b/y"]),
        (
            "mailto://u:p@h?to=a@example.com,b@example.com,json://a/x",
            ["mailto://u:p@h?to=a@example.com,b@example.com", "json://a/x"],
        ),
        ("tgram://bot/1,2", ["tgram://bot/1,2"]),
    ],
)
def test_a_comma_parts_addresses_only_where_a_new_one_begins(text: str, urls: list[str]) -> None:
    assert split_urls(text) == urls


def test_an_address_given_twice_is_told_once_and_every_one_is_a_secret() -> None:
    settings = load_settings(alert_urls=f"json://a/{CANARY}, json://a/{CANARY}, json://b/x")

    sinks = sinks_of(settings)

    assert [sink.url.get_secret_value() for sink in sinks] == [f"json://a/{CANARY}", "json://b/x"]
    assert {f"json://a/{CANARY}", "json://b/x"} <= set(settings.secret_values())
    assert CANARY not in f"{sinks} {settings!r}"


async def test_no_token_of_an_address_reaches_log_table_or_answer(
    services: Any, conn: Any, capfd: pytest.CaptureFixture[str]
) -> None:

    urls = f"json://127.0.0.1:1/{CANARY}?cto=1, tgram://{CANARY}, nonsense://{CANARY}"
    made = services(alert_urls=urls, heartbeat_url=f"http://127.0.0.1:1/{CANARY}")
    await enqueue(conn, "nobody.knows")

    summary = await tick.run(made, Budget(1, 1, 25))

    rows = await conn.fetch("SELECT alerts::text FROM alerts")
    told = capfd.readouterr()
    assert len(rows) == 3
    assert CANARY not in f"{summary.as_dict()} {rows} {told.out} {told.err}"
