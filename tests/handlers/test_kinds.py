"""Kinds come from our own dict and the modules that HANDLER_MODULES names; what does not fit is refused by name."""

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.bookings.reminders import KIND as REMINDER
from app.config import Settings
from app.errors import ConfigError
from app.handlers import fit_ours, load_kinds

GOOD = "from app.jobs import Kind\nasync def run(job): ...\n"


@dataclass
class Shop:
    """Modules of a user's own."""

    folder: Path

    def add(self, name: str, text: str) -> str:
        """Write one and return its name."""
        (self.folder / f"{name}.py").write_text(GOOD + text)
        return name


@pytest.fixture
def shop(tmp_path, monkeypatch, request):
    monkeypatch.syspath_prepend(tmp_path)
    return Shop(tmp_path)


def kinds_of(*modules: str, is_bounded: bool = True, **settings: Any):
    return load_kinds(Settings(handler_modules=modules, **settings), is_bounded=is_bounded)


def problems_of(*modules: str, **settings: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        kinds_of(*modules, **settings)
    return caught.value.problems


def test_a_module_adds_its_kinds_to_ours(shop):
    name = shop.add("shop_good", "HANDLERS = {'avatar.resize': Kind(run, timeout=3)}")

    kinds = kinds_of(name)

    assert set(kinds) == {REMINDER, "avatar.resize"}
    assert kinds["avatar.resize"].timeout == 3


def test_a_kind_given_twice_is_refused(shop):
    first = shop.add("shop_first", "HANDLERS = {'avatar.resize': Kind(run)}")
    second = shop.add("shop_second", "HANDLERS = {'avatar.resize': Kind(run)}")

    assert problems_of(first, second) == ["HANDLER_MODULES: shop_second gives kind avatar.resize a second time"]


def test_a_kind_of_ours_cannot_be_replaced(shop):
    name = shop.add("shop_ours", "HANDLERS = {'booking.reminder': Kind(run)}")

    assert problems_of(name) == ["HANDLER_MODULES: shop_ours gives kind booking.reminder a second time"]


def test_a_timeout_over_the_budget_is_refused(shop):
    name = shop.add("shop_slow", "HANDLERS = {'film.cut': Kind(run, timeout=26)}")

    assert problems_of(name) == ["kind film.cut: its timeout of 26 s exceeds TICK_BUDGET_SECONDS (25)"]


def test_a_worker_has_no_budget_for_timeouts(shop):
    name = shop.add("shop_film", "HANDLERS = {'film.cut': Kind(run, timeout=3600)}")

    assert kinds_of(name, is_bounded=False)["film.cut"].timeout == 3600


def test_a_timeout_of_just_the_budget_is_taken(shop):
    name = shop.add("shop_just", "HANDLERS = {'film.cut': Kind(run, timeout=25)}")

    assert kinds_of(name)["film.cut"].timeout == 25


def test_a_module_that_is_not_there_is_named():
    (problem,) = problems_of("no_such_module_here")

    assert problem.startswith("HANDLER_MODULES: no_such_module_here cannot be imported (ModuleNotFoundError")


@pytest.mark.parametrize("text", ["", "HANDLERS = None", "HANDLERS = [Kind(run)]", "HANDLERS = Kind(run)"])
def test_a_module_without_a_dict_is_named(shop, text):
    name = shop.add(f"shop_{secrets.token_hex(4)}", text)

    assert problems_of(name) == [f"HANDLER_MODULES: {name} has no dict named HANDLERS"]


@pytest.mark.parametrize("entry", ["'a': run", "'a': None", "1: Kind(run)", "'a': Kind"])
def test_what_is_no_kind_is_named(shop, entry):
    name = shop.add(f"shop_{secrets.token_hex(4)}", f"HANDLERS = {{{entry}}}")

    (problem,) = problems_of(name)

    assert problem.endswith("must be a text and a Kind")


@pytest.mark.parametrize("text", ["1 / 0", "def (", "Kind(None)", "Kind(run, timeout=0)"])
def test_a_module_that_fails_while_it_is_imported_is_named(shop, text):
    name = shop.add(f"shop_{secrets.token_hex(4)}", text)

    (problem,) = problems_of(name)

    assert problem.startswith(f"HANDLER_MODULES: {name} cannot be imported (")


def test_every_problem_is_told_at_once(shop):
    slow = shop.add("shop_one", "HANDLERS = {'film.cut': Kind(run, timeout=26), 'b': 3}")
    empty = shop.add("shop_two", "")

    assert len(problems_of(slow, empty, "no_such_module_here")) == 4


@pytest.mark.parametrize("seconds", [1, 2, 5, 25, 3000])
def test_our_own_kind_fits_any_budget(seconds):
    kinds = kinds_of(tick_budget_seconds=seconds)

    assert kinds[REMINDER].timeout <= min(15, 0.6 * seconds)


def test_a_smaller_budget_shortens_our_kinds_only(shop):
    kinds = kinds_of(shop.add("shop_kept", "HANDLERS = {'film.cut': Kind(run, timeout=20)}"))

    fitted = fit_ours(kinds, 5)

    assert (fitted[REMINDER].timeout, fitted["film.cut"].timeout) == (3, 20)
