"""What the doctor can tell without the database: settings, secrets, kinds, the mail channel."""

import asyncio
import importlib.util
import os
from pathlib import Path

from app.channels import check_channel, check_email_url
from app.cli.findings import Finding
from app.config import SECRETS, Settings, load_settings
from app.errors import ConfigError, SendError
from app.handlers import load_kinds

DISTINCT_MIN = 12  # a random hex secret of 32 characters has fewer once in some ten thousand
TIMEOUT_SHARE_MAX = 0.8
CHANNEL_SECONDS = 20
DEFAULT_SENDER = "@example.com"


def check_settings() -> tuple[Settings | None, list[Finding]]:
    """Read the settings and judge each; the settings are None when no other check makes sense."""
    try:
        settings = load_settings("DATABASE_URL")
    except ConfigError as error:
        advice = "Set it in the environment of the service; README lists every setting."
        return None, [Finding("settings", "fail", problem, advice) for problem in error.problems]
    return settings, [
        Finding("settings", "ok", "every setting can be read"),
        *check_secrets(settings),
        *check_kinds(settings),
        *check_alerts(settings),
    ]


def check_secrets(settings: Settings) -> list[Finding]:
    """Judge the tokens: there, long enough, and not made by a finger on one key."""
    found = [_judge_secret(name, settings) for name in SECRETS if getattr(settings, name) is not None]
    if settings.cron_secret is None:
        advice = "Make one with openssl rand -hex 32; set it here and as the scheduler's secret CRON_SECRET."
        found.append(Finding("CRON_SECRET", "fail", "is not set: `dormouse serve` will not start", advice))
    if settings.cron_secret_previous is not None:
        advice = "Remove it when every scheduler has the new token."
        found.append(Finding("CRON_SECRET_PREVIOUS", "note", "a second token is accepted", advice))
    if settings.api_token is None:
        found.append(Finding("API_TOKEN", "note", "is not set: /api/jobs and /api/bookings are off"))
    return found


def _judge_secret(name: str, settings: Settings) -> Finding:
    secret = getattr(settings, name).get_secret_value()
    if len(set(secret)) < DISTINCT_MIN:
        advice = "Make a random one with openssl rand -hex 32."
        return Finding(name.upper(), "warn", f"has only {len(set(secret))} different characters", advice)
    return Finding(name.upper(), "ok", f"{len(secret)} characters")


def check_kinds(settings: Settings) -> list[Finding]:
    """Load every handler module and hold each kind's timeout against the budget of a tick."""
    try:
        kinds = load_kinds(settings)
    except ConfigError as error:
        advice = "HANDLER_MODULES names modules with a HANDLERS dict, found from the folder the service starts in."
        return [Finding("kinds", "fail", problem, advice) for problem in error.problems]
    budget = settings.tick_budget_seconds
    tight = sorted(name for name, kind in kinds.items() if kind.timeout > TIMEOUT_SHARE_MAX * budget)
    advice = "Lower the kind's timeout or raise TICK_BUDGET_SECONDS (and the host's own time limit)."
    return [
        Finding("kinds", "ok", f"{len(kinds)} known: {', '.join(sorted(kinds))}"),
        *(
            Finding("kinds", "warn", f"{name} needs nearly the whole budget of {budget:g} s to be started", advice)
            for name in tight
        ),
    ]


def check_alerts(settings: Settings) -> list[Finding]:
    """Say whether alerts could go out."""
    if settings.alert_urls is None or importlib.util.find_spec("apprise"):
        return []
    advice = "pip install 'dormouse[alerts]'"
    return [Finding("ALERT_URLS", "fail", "is set, but apprise is not installed: no alert can be sent", advice)]


async def check_mail(settings: Settings) -> list[Finding]:
    """Try the mail channel as far as is possible without sending anything."""
    if settings.email_url is None:
        return [_check_outbox(Path(settings.outbox_dir))]
    try:
        check_email_url(settings)
        async with asyncio.timeout(CHANNEL_SECONDS):
            says = await check_channel(settings)
    except ConfigError as error:
        return [Finding("mail", "fail", str(error), "README shows the forms that EMAIL_URL may have.")]
    except SendError as error:
        return [Finding("mail", "fail", str(error), "Check host, port, user and password in EMAIL_URL.")]
    except TimeoutError:
        advice = "Many hosts close port 25; use 465 (smtps://), 587 (smtp://) or resend://."
        return [Finding("mail", "fail", f"no answer within {CHANNEL_SECONDS} s", advice)]
    return [Finding("mail", "ok", says), *_check_sender(settings)]


def _check_outbox(folder: Path) -> Finding:
    place = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not (place.is_dir() and os.access(place, os.W_OK | os.X_OK)):
        return Finding("mail", "fail", f"the outbox {folder} cannot be written", "Set OUTBOX_DIR, or EMAIL_URL.")
    advice = "Set EMAIL_URL (smtps://, smtp:// or resend://) where real people are to be reminded."
    return Finding("mail", "note", f"reminders become .eml files in {folder}: nobody is mailed", advice)


def _check_sender(settings: Settings) -> list[Finding]:
    if DEFAULT_SENDER not in settings.email_from:
        return []
    advice = "Set EMAIL_FROM to a sender of a domain that your provider lets you use."
    return [Finding("mail", "fail", "EMAIL_FROM is still the example address", advice)]
