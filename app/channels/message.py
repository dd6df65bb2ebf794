"""What every channel carries, and what every channel can do.

A message is rendered once and frozen: `as_json` is kept in `reminders.rendered`, and each retry sends what
`from_json` brings back, byte for byte. It has no repr: a log line must not hold an address.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Protocol, Self

SEND_SECONDS_MAX = 12.0


@dataclass(frozen=True, repr=False)
class Message:
    """One e-mail to one recipient, rendered to the last character; *date* is an RFC 5322 date or empty."""

    sender: str
    to: str
    subject: str
    text: str
    html: str
    ics: str
    message_id: str
    date: str = ""

    def as_json(self) -> dict[str, str]:
        """Return a JSON object that `from_json` turns into an equal message."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, str]) -> Self:
        """Rebuild the message that `as_json` wrote; raise TypeError when a field is missing."""
        return cls(**{field.name: data[field.name] for field in fields(cls) if field.name in data})


class Channel(Protocol):
    """One way to send a message."""

    @property
    def name(self) -> str:
        """The name under which the channel is suspended and counted."""

    @property
    def honours_key(self) -> bool:
        """Whether sending again under the same key can never reach the recipient twice."""

    async def send(self, message: Message, key: str) -> str | None:
        """Send *message* and return the provider's id, if it gives one.

        Raise RecipientRefused, NotSent, MaybeSent or ChannelSuspended, and nothing else.
        """


def send_seconds(tick_budget_seconds: float) -> float:
    """Return how long one send may take in all, well inside a tick of *tick_budget_seconds*."""
    return min(SEND_SECONDS_MAX, tick_budget_seconds / 2)
