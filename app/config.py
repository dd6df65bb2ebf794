"""Every setting: its name, its default, its bounds and the sentence that README repeats.

One frozen object, read once from the environment and passed down. Nothing else reads the environment.
"""

import importlib.util
import os
import re
from datetime import timedelta
from typing import Annotated, Any, Literal, Self
from urllib.parse import unquote

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app.errors import ConfigError

SECRET_MIN = 32
SECRET_WORD_MIN = 8
SECRET_PIECE_MIN = 12
PLACEHOLDERS = (
    "changeme",
    "changethis",
    "replaceme",
    "replacethis",
    "placeholder",
    "yoursecret",
    "insertyour",
    "undefined",
)
DSN_FORM = "postgresql://user:password@host:5432/name"
HOST = re.compile(r"(\[[0-9A-Fa-f:.]+(%\w+)?\]|[^\[\]:#@]*)(:\d{1,5})?")
OFFSET_UNITS = {"m": 60, "h": 3600, "d": 86400}
OFFSET_MAX = timedelta(days=366)
SECRETS = ("cron_secret", "cron_secret_previous", "admin_token", "api_token")
WEB_ADDRESS = re.compile(r"https?://[^\s/?#@]+(:\d{1,5})?(/[^\s]*)?", re.IGNORECASE)
ALERT_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/]\S*")
BETWEEN_URLS = re.compile(r"[\s,]+(?=[A-Za-z][A-Za-z0-9+.-]*://)")


class Settings(BaseSettings):
    """What one process runs with; see README for the table."""

    model_config = SettingsConfigDict(frozen=True, extra="ignore", env_ignore_empty=True, hide_input_in_errors=True)

    database_url: SecretStr | None = Field(
        None, description="PostgreSQL to keep everything in: postgresql://user:password@host/name."
    )
    cron_secret: SecretStr | None = Field(None, description="Bearer token of the tick, 32 characters or more.")
    cron_secret_previous: SecretStr | None = Field(
        None, description="A second accepted token while the first is rotated."
    )
    admin_token: SecretStr | None = Field(
        None, description="Opens the operator's pages and API; absent = they are off."
    )
    api_token: SecretStr | None = Field(None, description="Opens the producers' API; absent = those routes are off.")
    port: int = Field(8080, ge=1, le=65535, description="Port that `dormouse serve` listens on.")
    email_url: SecretStr | None = Field(
        None, description="Where mail goes: smtp://, smtps:// or resend://; absent = files in the outbox."
    )
    email_from: str = Field("Dormouse <reminders@example.com>", max_length=320, description="Sender of the reminders.")
    resend_base_url: str = Field("https://api.resend.com", description="Resend's API, for a proxy or a test.")
    outbox_dir: str = Field(".dormouse/outbox", description="Folder of the outbox channel's .eml files.")
    reminder_offsets: Annotated[tuple[timedelta, ...], NoDecode] = Field(
        (timedelta(hours=24),),
        description="How long before the start to remind: 24h, or 24h,1h (m, h and d are units).",
    )
    reminder_calendar: Literal["gregorian", "buddhist"] = Field(
        "gregorian", description="Years in Thai reminders: gregorian or buddhist."
    )
    ambiguous_send: Literal["retry", "hold"] = Field(
        "retry",
        description="When an answer was lost and the provider knows no key: retry, or hold for a person.",
    )
    tick_budget_seconds: float = Field(
        25,
        ge=1,
        le=3000,
        allow_inf_nan=False,
        description="A tick answers within this time, plus one second.",
    )
    tick_jobs: int = Field(100, ge=1, le=10_000, description="Most jobs of one tick.")
    tick_reminders: int = Field(100, ge=1, le=10_000, description="Most reminders of one tick.")
    job_concurrency: int = Field(10, ge=1, le=1000, description="Jobs that run side by side.")
    reminder_concurrency: int = Field(5, ge=1, le=1000, description="Reminders that are sent side by side.")
    lease_seconds: float = Field(
        60, ge=1, le=86_400, allow_inf_nan=False, description="How long a claim holds without a heartbeat."
    )
    max_crashes: int = Field(3, ge=1, le=100, description="Deaths of its process after which a job is dead.")
    done_retention_days: float = Field(
        7,
        ge=0,
        le=36_500,
        allow_inf_nan=False,
        description="Days that finished jobs are kept; dead ones stay.",
    )
    connect_timeout_seconds: float = Field(
        15, gt=0, le=120, allow_inf_nan=False, description="How long to wait for a waking database."
    )
    pool_max: int = Field(5, ge=2, le=100, description="Most database connections of one process.")
    handler_modules: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Modules of your own with a HANDLERS dict, separated by commas."
    )
    queues: Annotated[tuple[str, ...], NoDecode] = Field(
        ("default",), description="Queues that this instance serves beside `reminders`."
    )
    public_url: str | None = Field(None, description="Address of this service, for links in alerts.")
    alert_urls: SecretStr | None = Field(None, description="Where alerts go, as apprise URLs separated by commas.")
    heartbeat_url: SecretStr | None = Field(None, description="Dead-man's switch to call at each tick.")
    log_format: Literal["json", "console"] = Field("json", description="How log lines look: json or console.")
    openapi: bool = Field(default=False, description="Serve /openapi.json and /docs.")

    @field_validator("handler_modules", "queues", mode="before")
    @classmethod
    def _names(cls, value: Any) -> Any:
        if isinstance(value, str):
            return tuple(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))
        return value

    @field_validator("queues")
    @classmethod
    def _queues_beside_reminders(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise ValueError("name at least one queue")
        return tuple(name for name in value if name != "reminders")

    @field_validator("reminder_offsets", mode="before")
    @classmethod
    def _offsets(cls, value: Any) -> Any:
        return parse_offsets(value) if isinstance(value, str) else value

    @field_validator("database_url", *SECRETS, "email_url", "alert_urls", "heartbeat_url", mode="before")
    @classmethod
    def _stripped(cls, value: Any) -> Any:
        if isinstance(value, str):
            return value.strip() or None
        return value

    @field_validator("alert_urls")
    @classmethod
    def _alert_addresses(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None:
            return None
        for number, url in enumerate(split_urls(value.get_secret_value()), 1):
            if not ALERT_ADDRESS.fullmatch(url):
                raise ValueError(f"address {number} cannot be read: the form is service://…, with commas between them")
        if importlib.util.find_spec("apprise") is None:
            raise ValueError("needs apprise, which is not installed: pip install 'dormouse[alerts]'")
        return value

    @field_validator("heartbeat_url")
    @classmethod
    def _heartbeat_address(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            check_web_address(value.get_secret_value())
        return value

    @field_validator("public_url")
    @classmethod
    def _public_address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        check_web_address(value.strip())
        if "?" in value or "#" in value:
            raise ValueError("is the address of the service alone: no ? and no #")
        return value.strip().rstrip("/")

    @field_validator(*SECRETS)
    @classmethod
    def _strong(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            refuse_weak(value.get_secret_value())
        return value

    @field_validator("database_url")
    @classmethod
    def _postgres(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None:
            return None
        scheme, mark, rest = value.get_secret_value().partition("://")
        if not mark or scheme not in {"postgres", "postgresql", "postgresql+asyncpg"}:
            raise ValueError("must start with postgresql://")
        hosts = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]
        if not all(HOST.fullmatch(host) for host in hosts.split(",")):
            raise ValueError(f"cannot be read: its form is {DSN_FORM}, with %23 for # and %2F for / in a password")
        return SecretStr(f"postgresql://{rest}")

    @model_validator(mode="after")
    def _separate_tokens(self) -> Self:
        held = [token.get_secret_value() for name in SECRETS if (token := getattr(self, name)) is not None]
        if len(held) != len(set(held)):
            raise ValueError("CRON_SECRET, CRON_SECRET_PREVIOUS, ADMIN_TOKEN and API_TOKEN must differ from each other")
        return self

    @property
    def dsn(self) -> str:
        """The database's address, with its password: never log it."""
        if self.database_url is None:
            raise ConfigError(
                ["DATABASE_URL is not set: name a PostgreSQL, or run `dormouse dev` for an embedded one."]
            )
        return self.database_url.get_secret_value()

    def secret_values(self) -> tuple[str, ...]:
        """Return every secret text in force, longest first, for scrubbing what is stored or logged."""
        values = (getattr(self, name) for name in type(self).model_fields)
        texts = {value.get_secret_value() for value in values if isinstance(value, SecretStr)}
        if self.alert_urls:
            texts.update(split_urls(self.alert_urls.get_secret_value()))
        parts = {part for text in texts if "://" in text for part in secret_parts(text)}
        return tuple(sorted(texts | parts, key=len, reverse=True))


def load_settings(*required: str, **overrides: Any) -> Settings:
    """Read the environment once; raise ConfigError naming every violation and every missing *required* name.

    No message repeats a value.
    """
    try:
        settings = Settings(**overrides)
    except ValidationError as error:
        problems = [_sentence(item["loc"], item["msg"]) for item in error.errors()]
        raise ConfigError(problems + [_missing(name) for name in required if _is_absent(name, overrides)]) from None
    missing = [name for name in required if getattr(settings, name.lower()) is None]
    if missing:
        raise ConfigError([_missing(name) for name in missing])
    return settings


def _is_absent(name: str, overrides: dict[str, Any]) -> bool:
    return overrides.get(name.lower()) is None and not os.environ.get(name, "").strip()


def parse_offsets(text: str) -> tuple[timedelta, ...]:
    """Read `24h,1h` (units m, h, d) into durations, longest first; raise ValueError on anything else."""
    found = set()
    for part in (piece.strip() for piece in text.split(",") if piece.strip()):
        match = re.fullmatch(r"(\d{1,6})\s*([mhd])", part)
        if not match:
            raise ValueError("write offsets as 24h, or 24h,1h; the units are m, h and d")
        offset = timedelta(seconds=int(match[1]) * OFFSET_UNITS[match[2]])
        if not timedelta(0) < offset <= OFFSET_MAX:
            raise ValueError("an offset is more than 0 and at most 366 days")
        found.add(offset)
    if not found:
        raise ValueError("name at least one offset, such as 24h")
    return tuple(sorted(found, reverse=True))


def split_urls(text: str) -> list[str]:
    """Return the URLs of *text*: a comma parts them only where a new one begins, for one may hold commas itself."""
    return [url for url in BETWEEN_URLS.split(text.strip().strip(",")) if url]


def secret_parts(url: str) -> set[str]:
    """Return what is secret by itself within *url*: a password or key, and each long piece of a webhook's address.

    An error may quote them alone. A short one, or one that is its user's name, is a word that errors need.
    """
    scheme, _, rest = url.partition("://")
    place, path = re.findall(r"([^/?#]*)(.*)", rest)[0]
    user, colon, password = place.rpartition("@")[0].partition(":")
    held = {password if colon else user} - {user if colon else ""}
    held.update(re.findall(r"[?&]password=([^&#]+)", path))
    if not scheme.startswith(("postgres", "smtp")):
        pieces = re.split(r"[/?&=#,]", path) + [piece for piece in re.split(r"[:@]", place) if "." not in piece]
        held.update(piece for piece in pieces if len(piece) >= SECRET_PIECE_MIN)
    return {text for part in held for text in (part, unquote(part)) if len(text) >= SECRET_WORD_MIN}


def check_web_address(url: str) -> None:
    """Raise ValueError unless *url* is http or https with a host; the message does not repeat it."""
    if not WEB_ADDRESS.fullmatch(url):
        raise ValueError("must be an address such as https://host/path, without a user and without spaces")


def refuse_weak(secret: str) -> None:
    """Raise ValueError when *secret* is short, a placeholder or no secret at all; the message holds its length only."""
    if len(secret) < SECRET_MIN:
        raise ValueError(f"is {len(secret)} characters long and must have {SECRET_MIN} or more: openssl rand -hex 32")
    letters = re.sub(r"[^a-z0-9]", "", secret.lower())
    if any(word in letters for word in PLACEHOLDERS):
        raise ValueError("looks like a placeholder: make one with openssl rand -hex 32")


def _sentence(location: tuple[int | str, ...], message: str) -> str:
    name = str(location[0]).upper() if location else "Settings"
    return f"{name}: {message.removeprefix('Value error, ')}"


def _missing(name: str) -> str:
    if name == "DATABASE_URL":
        return "DATABASE_URL is not set: name a PostgreSQL, or run `dormouse dev` for an embedded one."
    return f"{name} is not set: make one with openssl rand -hex 32."
