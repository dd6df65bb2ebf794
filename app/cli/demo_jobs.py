"""The two jobs of the demo's signup, as a user would write them: plain functions and one dict.

`HANDLER_MODULES=app.cli.demo_jobs` makes a service run them.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from app.channels import Message, open_email
from app.jobs import Job, Kind, Steps

AVATAR_SIDE = 256
WELCOME_TEXT = """Hello {name},

your account is ready. This mail was not sent while you waited: the signup only wrote it
down as a job, in the same transaction as your account, and the next tick sent it.
"""
WELCOME_HTML = "<p>Hello,</p><p>your account is ready.</p>"


@dataclass(frozen=True)
class Welcome:
    """Payload of `welcome.email`."""

    user_id: int
    name: str
    email: str


@dataclass(frozen=True)
class Avatar:
    """Payload of `avatar.resize`: the upload is a file, never the payload."""

    user_id: int
    upload: str


async def send_welcome(job: Job) -> None:
    """Send the welcome mail; the key makes a second attempt harmless."""
    user: Welcome = job.payload
    settings = job.services.settings
    message = Message(
        sender=settings.email_from,
        to=user.email,
        subject=f"Welcome, {user.name}",
        text=WELCOME_TEXT.format(name=user.name),
        html=WELCOME_HTML,
        ics="",
        message_id=f"<{job.idempotency_key}@example.com>",
    )
    await open_email(settings).send(message, job.idempotency_key)


def resize_avatar(job: Job) -> None:
    """Shrink the upload to a square WebP, in a thread: writing it again gives the same file.

    Without Pillow the upload is kept as it is, so that the demo needs nothing but its own dependencies.
    """
    avatar: Avatar = job.payload
    home = Path(job.services.settings.outbox_dir).parent
    upload = home / "uploads" / avatar.upload
    folder = home / "avatars" / str(avatar.user_id)
    folder.mkdir(parents=True, exist_ok=True)
    if not find_spec("PIL"):
        (folder / f"original{upload.suffix}").write_bytes(upload.read_bytes())
        return
    from PIL import Image, ImageOps  # noqa: PLC0415 - a development extra

    with Image.open(upload) as picture:
        square = ImageOps.fit(picture, (AVATAR_SIDE, AVATAR_SIDE))
    draft = folder / f".{AVATAR_SIDE}.webp"
    square.save(draft, "WEBP")
    draft.replace(folder / f"{AVATAR_SIDE}.webp")


HANDLERS = {
    "welcome.email": Kind(send_welcome, payload=Welcome, timeout=10),
    "avatar.resize": Kind(resize_avatar, payload=Avatar, timeout=10, retry=Steps(60, 300, 1800)),
}
