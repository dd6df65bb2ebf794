"""The stylesheet, the script and the mark: each at an address that holds its content's digest, kept for a year."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from starlette.responses import Response

from app.web.problems import Refused

if TYPE_CHECKING:
    from app.web.admin.visit import Door

TYPES = {
    "dormouse.css": "text/css; charset=utf-8",
    "dormouse.js": "text/javascript; charset=utf-8",
    "dormouse.svg": "image/svg+xml",
}
DIGEST_CHARS = 16


@dataclass(frozen=True, slots=True)
class Asset:
    """One file as it is sent."""

    path: str
    body: bytes
    media_type: str


@lru_cache(maxsize=1)
def _assets() -> dict[str, Asset]:
    folder = resources.files("app.web.admin").joinpath("assets")
    return {name: _asset(name, folder.joinpath(name).read_bytes()) for name in TYPES}


def _asset(name: str, body: bytes) -> Asset:
    stem, _, ending = name.partition(".")
    digest = hashlib.sha256(body).hexdigest()[:DIGEST_CHARS]
    return Asset(f"/admin/assets/{stem}.{digest}.{ending}", body, TYPES[name])


def asset_paths() -> dict[str, str]:
    """Return the address of each file by its ending."""
    return {name.partition(".")[2]: asset.path for name, asset in _assets().items()}


async def send_asset(door: "Door") -> Response:
    """Send the file whose address this is; an address of an older build is unknown."""
    for asset in _assets().values():
        if asset.path == door.request.url.path:
            headers = {"Cache-Control": "public, max-age=31536000, immutable"}
            return Response(asset.body, media_type=asset.media_type, headers=headers)
    raise Refused(404, "There is nothing at this address.")
