"""Mail as .eml files in a folder: the default, so that a copy of the production database mails nobody.

One file per key, replaced in one step: sending again under the same key leaves one file.
"""

import asyncio
import hashlib
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from app.channels import mime, waits
from app.channels.message import Message
from app.errors import ChannelSuspended

PLAIN_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


@dataclass(frozen=True)
class Outbox:
    """The folder that stands in for a mail server."""

    folder: Path
    name: ClassVar[str] = "outbox"
    honours_key: ClassVar[bool] = True

    async def send(self, message: Message, key: str) -> str | None:
        """Write *message* to the file of *key* and return the file's name."""
        file = f"{key if PLAIN_KEY.fullmatch(key) else hashlib.sha256(key.encode()).hexdigest()}.eml"
        await self._in_thread(file, mime.as_bytes(message))
        return file

    async def check(self) -> str:
        """Say where the files go; raise ChannelSuspended when none can be written there."""
        await self._in_thread(".check", b"")
        (self.folder / ".check").unlink(missing_ok=True)
        return f"Mail goes to .eml files in {self.folder}; nobody gets it until EMAIL_URL names a real channel."

    async def _in_thread(self, file: str, content: bytes) -> None:
        try:
            await asyncio.to_thread(_replace, self.folder, file, content)
        except OSError as error:
            reason = f"outbox: the folder cannot be written ({type(error).__name__})"
            raise ChannelSuspended(reason, waits.MISCONFIGURED) from None


def _replace(folder: Path, file: str, content: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=folder, prefix=".", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as part:
            part.write(content)
        Path(name).replace(folder / file)
    except BaseException:  # raised again: half a message must not stay behind, whatever happened
        Path(name).unlink(missing_ok=True)
        raise
