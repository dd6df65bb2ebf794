"""What the manual says about GitHub's schedule: minutes that add up, the way back after 60 days, the grace."""

import math
import re

from tests.readme.manual import ROOT, page, table

PRICE = 0.006
QUOTAS = {"Free": 2_000, "Pro, Team": 3_000}


def test_the_minutes_of_each_cadence_add_up() -> None:
    for cadence, minutes, free, team, overage in table("cadence"):
        a_day = 24 * 60 // int(re.findall(r"\d+", cadence)[0])
        months = [30 * a_day, 31 * a_day]
        assert [int(number.replace(",", "")) for number in re.findall(r"[\d,]+", minutes)] == months, cadence
        assert day_when_gone(free) == last_day(QUOTAS["Free"], a_day), cadence
        assert day_when_gone(team) == last_day(QUOTAS["Pro, Team"], a_day), cadence
        paid = [max(0, month - QUOTAS["Free"]) * PRICE for month in months]
        told = [float(number) for number in re.findall(r"[\d.]+", overage)]
        assert [f"{number:.2f}" for number in told] == [f"{number:.2f}" for number in (paid if any(paid) else [0])]


def last_day(quota: int, a_day: int) -> int | None:
    """Return the day of a 30-day month on which *quota* minutes are used up, None when they last."""
    day = math.ceil(quota / a_day)
    return day if day <= 30 else None


def day_when_gone(cell: str) -> int | None:
    found = re.search(r"gone on day (\d+)", cell)
    return int(found[1]) if found else None


def test_the_cadence_in_force_is_the_one_that_it_speaks_of() -> None:
    cron = re.search(r'cron: "(.+)"', (ROOT / ".github/workflows/cron-tick.yml").read_text())

    assert cron is not None
    assert f"(`{cron[1]}`)" in page()
    assert next(cadence for cadence, *_ in table("cadence") if "**" in cadence) == "**15 min**"


def test_the_way_back_after_60_quiet_days_is_named() -> None:
    notes = page().partition("## Who calls the tick")[2].partition("\n## ")[0]

    assert "60 days without activity" in notes
    assert "`gh workflow enable cron-tick.yml`" in notes


def test_a_dead_mans_switch_is_given_hours() -> None:
    grace = re.search(r"grace of (\d+) hours or more", page())

    assert grace is not None
    assert int(grace[1]) >= 3
