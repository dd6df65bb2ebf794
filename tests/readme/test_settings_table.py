"""The settings table is the settings: names, defaults and sentences, and which of them do nothing yet."""

import re
from typing import Any

from app.config import Settings, parse_offsets
from tests.readme.manual import ROOT, page, plain, table

ABSENT = "-"
LISTS = ("handler_modules", "queues")


def test_every_setting_has_its_row_and_no_row_is_of_something_else() -> None:
    named = [plain(name).lower() for name, _, _ in table("name")]

    assert named == list(Settings.model_fields)


def test_each_row_tells_the_default_that_is_in_force() -> None:
    told = {
        plain(name).lower(): read_default(plain(name).lower(), plain(default)) for name, default, _ in table("name")
    }

    assert told == {name: field.default for name, field in Settings.model_fields.items()}


def read_default(name: str, text: str) -> Any:
    """Read a cell as the setting would, so that `25` is 25.0 where a number is meant."""
    kind = Settings.model_fields[name].annotation
    if text == ABSENT:
        return () if name in LISTS else None
    if name == "reminder_offsets":
        return parse_offsets(text)
    if name in LISTS:
        return tuple(text.split(","))
    if kind is bool:
        return {"true": True, "false": False}[text]
    return kind(text) if kind in {int, float} else text


def test_each_row_repeats_the_settings_own_sentence() -> None:
    told = {plain(name).lower(): sentence for name, _, sentence in table("name")}

    assert told == {name: field.description for name, field in Settings.model_fields.items()}


def test_the_settings_that_do_nothing_yet_are_the_ones_it_names() -> None:
    sentence = re.search(r"((?:`[A-Z_]+`(?:, | and )?)+) (?:is|are) read and checked, but nothing uses", page())
    said = set(re.findall(r"[A-Z_]+", sentence[1])) if sentence else set()
    not_uses = {ROOT / "app/config.py", ROOT / "app/cli/check_settings.py"}
    code = "\n".join(path.read_text() for path in (ROOT / "app").rglob("*.py") if path not in not_uses)

    unused = {name.upper() for name in Settings.model_fields if not re.search(rf"\.{name}\b", code)}

    assert said == unused - {"DATABASE_URL"}  # read through Settings.dsn


def test_every_capital_name_in_the_manual_is_a_setting_or_known_to_be_none() -> None:
    others = {"TICK_URL", "POSTGRES_PASSWORD", "PARTNER_URL", "PUBLIC_URL", "HANDLERS"}
    found = set(re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", page() + page("docs/deploy.md") + page("CHANGELOG.md")))

    assert found - {name.upper() for name in Settings.model_fields} - others == set()
