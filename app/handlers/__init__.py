"""The kinds this build knows: ours in one explicit dict, and those of the modules that HANDLER_MODULES names.

    HANDLERS (ours) + shop.jobs.HANDLERS + ... -> load_kinds -> Services.kinds

Copy `booking_reminder.py` to begin one of your own.
"""

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

from app.bookings.reminders import KIND as REMINDER
from app.channels import check_email_url
from app.config import Settings
from app.errors import ConfigError
from app.handlers import booking_reminder
from app.jobs import Kind

HANDLERS = {REMINDER: booking_reminder.KIND}
OUR_SHARE = 0.6


def prepare(settings: Settings, *, is_bounded: bool = True) -> dict[str, Kind]:
    """Return every kind of a process that starts; raise ConfigError with all that is wrong with mail and handlers."""
    problems: list[str] = []
    kinds: dict[str, Kind] = {}
    try:
        check_email_url(settings)
    except ConfigError as error:
        problems += error.problems
    try:
        kinds = load_kinds(settings, is_bounded=is_bounded)
    except ConfigError as error:
        problems += error.problems
    if problems:
        raise ConfigError(problems)
    return kinds


def load_kinds(settings: Settings, *, is_bounded: bool = True) -> dict[str, Kind]:
    """Return every kind by name; raise ConfigError naming each module, kind or timeout that does not fit.

    A kind given twice is refused, and so is a timeout over the budget unless the runner, not *is_bounded*, has none.
    """
    kinds: dict[str, Kind] = dict(HANDLERS)
    problems: list[str] = []
    budget = settings.tick_budget_seconds
    for name in settings.handler_modules:
        problems += _add(kinds, name)
    if is_bounded:
        problems += [
            f"kind {name}: its timeout of {kind.timeout:g} s exceeds TICK_BUDGET_SECONDS ({budget:g})"
            for name, kind in kinds.items()
            if kind.timeout > budget and name not in HANDLERS
        ]
    if problems:
        raise ConfigError(problems)
    return fit_ours(kinds, budget)


def fit_ours(kinds: Mapping[str, Kind], seconds: float) -> dict[str, Kind]:
    """Return *kinds* with the timeouts of ours held to six tenths of a budget of *seconds*, so that they ever start."""
    return {
        name: replace(kind, timeout=min(kind.timeout, seconds * OUR_SHARE)) if name in HANDLERS else kind
        for name, kind in kinds.items()
    }


def _add(kinds: dict[str, Kind], module_name: str) -> list[str]:
    """Add the kinds of one module; return what is wrong with it."""
    try:
        found: Any = getattr(import_module(module_name), "HANDLERS", None)
    except Exception as error:  # noqa: BLE001 - a user's module may raise anything while it is imported
        return [f"HANDLER_MODULES: {module_name} cannot be imported ({type(error).__name__}: {error})"]
    if not isinstance(found, dict):
        return [f"HANDLER_MODULES: {module_name} has no dict named HANDLERS"]
    problems = []
    for name, kind in found.items():
        if not isinstance(name, str) or not isinstance(kind, Kind):
            problems.append(f"HANDLER_MODULES: {module_name}.HANDLERS[{name!r}] must be a text and a Kind")
        elif name in kinds:
            problems.append(f"HANDLER_MODULES: {module_name} gives kind {name} a second time")
        else:
            kinds[name] = kind
    return problems
