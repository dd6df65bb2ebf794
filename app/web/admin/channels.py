"""The channels: which of them must wait, until when and why; and the button that opens one again."""

from dataclasses import dataclass
from datetime import datetime

from starlette.responses import Response

from app.channels.suspension import list_channels, resume
from app.errors import Conflict
from app.log import get_logger
from app.web.admin.visit import Visit

OURS = ("email",)


@dataclass(frozen=True, slots=True)
class Channel:
    """One channel as it stands; *reason* is why it was suspended last."""

    name: str
    suspended_until: datetime | None = None
    reason: str | None = None
    updated_at: datetime | None = None

    def is_suspended(self, now: datetime) -> bool:
        """Say whether nothing goes out on it at *now*."""
        return self.suspended_until is not None and self.suspended_until > now


async def show_channels(visit: Visit) -> Response:
    """List the channels, those of ours that never had trouble too."""
    found = {row["name"]: _channel(**row) for row in await list_channels(visit.connection)}
    channels = [found.pop(name, Channel(name)) for name in OURS] + list(found.values())
    return visit.render("channels.html", channels=channels, done=visit.query("done"))


def _channel(name: str, suspended_until: str | None, reason: str | None, updated_at: str) -> Channel:
    until = None if suspended_until is None else datetime.fromisoformat(suspended_until)
    return Channel(name, until, reason, datetime.fromisoformat(updated_at))


async def resume_channel(visit: Visit) -> Response:
    """Open a suspended channel at once."""
    name = visit.form.get("name", "")
    if not await resume(visit.connection, name):
        raise Conflict("this channel is not suspended")
    get_logger().info("admin.channel_resumed", channel=name)
    return visit.send_to("/admin/channels", done="resume")
