"""The addresses that hear alerts, behind apprise: Telegram, Slack, Discord, LINE, mail and a hundred more by URL.

    ALERT_URLS -> sinks_of -> send, each in a daemon thread -> taken or not, within its seconds

Importing this room is cheap: apprise is imported by the first thing that is told.
"""

import asyncio
import hashlib
import logging
import threading
from contextlib import suppress
from dataclasses import dataclass

from pydantic import SecretStr

from app.config import Settings, split_urls
from app.log import get_logger

SEND_SECONDS = 8.0

log = get_logger()


@dataclass(frozen=True, slots=True)
class Sink:
    """One address of ALERT_URLS; *name* is a digest that tells it from the others without its token."""

    name: str
    url: SecretStr


def sinks_of(settings: Settings) -> list[Sink]:
    """Return the addresses that ALERT_URLS names, each once."""
    urls = dict.fromkeys(split_urls(settings.alert_urls.get_secret_value()) if settings.alert_urls else ())
    return [Sink(hashlib.sha256(url.encode()).hexdigest()[:16], SecretStr(url)) for url in urls]


async def send(sink: Sink, title: str, text: str, seconds: float = SEND_SECONDS) -> bool:
    """Send one message to *sink* within *seconds*; say whether it took it. Never raises."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[bool] = loop.create_future()

    def report(was_taken: bool) -> None:
        if not ended.done():
            ended.set_result(was_taken)

    def run() -> None:
        was_taken = False
        try:
            was_taken = _notify(sink.url.get_secret_value(), title, text, seconds)
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything; its text may hold the token
            log.warning("alert.failed", sink=sink.name, error=type(error).__name__)
        with suppress(RuntimeError):  # the loop has ended: nobody waits for the answer any more
            loop.call_soon_threadsafe(report, was_taken)

    # apprise waits in its own way: a daemon thread holds up neither the answer nor the end of the process.
    threading.Thread(target=run, name="alert", daemon=True).start()
    await asyncio.wait({ended}, timeout=seconds)
    if not ended.done():
        ended.cancel()
        return False
    return ended.result()


def _notify(url: str, title: str, text: str, seconds: float) -> bool:
    import apprise  # noqa: PLC0415 - only a tick that has something to tell pays for it

    logging.getLogger("apprise").setLevel(logging.CRITICAL)  # its lines name the address
    asset = apprise.AppriseAsset(app_id="Dormouse", app_desc="Dormouse", app_url="")
    asset.image_url_mask = asset.image_url_logo = ""  # no picture of apprise's, from a host of apprise's
    out = apprise.Apprise(asset=asset)
    if not out.add(url):
        return False
    for server in out:
        # Below our own limit, so that an answer which comes too late is given up by both sides.
        server.socket_connect_timeout = min(server.socket_connect_timeout, seconds / 2)
        server.socket_read_timeout = min(server.socket_read_timeout, seconds / 2)
    return bool(out.notify(body=text, title=title, body_format=apprise.NotifyFormat.TEXT))
