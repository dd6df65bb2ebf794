"""`dormouse demo` and `dormouse dev` need nothing, work twice in one folder, and leave nothing running."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator
from email import message_from_bytes, policy
from pathlib import Path

import pytest
from PIL import Image

from app.cli import demo_jobs
from app.cli.cluster import users_of
from app.cli.demo_world import UPLOAD_BYTES, save_upload
from app.cli.home import environment_without_settings, kept_secret
from app.config import load_settings
from app.db import Database
from app.jobs import Job
from app.jobs.services import Services
from tests.cli.conftest import PROGRAM, Ended, environment
from tests.cli.test_serve import ask
from tests.servers import free_port

FIRST_MESSAGES = 5
STARTED: list[asyncio.subprocess.Process] = []
SENT = re.compile(r'"sent": (\d+)')


@pytest.fixture(autouse=True)
async def _ended() -> AsyncIterator[None]:
    """End what a failed test has left running: the kernel then ends its children."""
    STARTED.clear()
    yield
    for process in STARTED:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def start(folder: Path, *arguments: str, **settings: str) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        *PROGRAM,
        *arguments,
        cwd=folder,
        env=environment(PYTHONUNBUFFERED="1", **settings),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    STARTED.append(process)
    return process


async def play(folder: Path, *arguments: str, **settings: str) -> Ended:
    process = await start(folder, "demo", *arguments, **settings)
    async with asyncio.timeout(90):
        out, _ = await process.communicate()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), "")


async def lines_until(process: asyncio.subprocess.Process, words: str) -> list[str]:
    """Read the program's output up to the line that holds *words*."""
    assert process.stdout is not None
    lines: list[str] = []
    async with asyncio.timeout(90):
        while not lines or words not in lines[-1]:
            line = await process.stdout.readline()
            assert line, "".join(lines)
            lines.append(line.decode())
    return lines


async def test_the_demo_tells_its_story_and_twice_in_one_folder(home: Path) -> None:
    first = await play(home, "--once")
    second = await play(home, "--once")

    for ended in (first, second):
        assert ended.code == 0, ended.out
        assert [int(count) for count in SENT.findall(ended.out)] == [4, 0]
        assert "Nothing was sent twice." in ended.out
        assert "HTTP/1.1 200 OK" in ended.out
    assert "Users of earlier runs: 1." in second.out
    assert not users_of(home / ".dormouse" / "postgres")


async def test_the_messages_are_real_and_in_their_own_zones(home: Path) -> None:
    await play(home, "--once")

    files = list((home / ".dormouse" / "outbox").glob("*.eml"))
    mails = [message_from_bytes(file.read_bytes(), policy=policy.default) for file in files]
    subjects = " ".join(mail["subject"] for mail in mails)
    assert len(mails) == FIRST_MESSAGES
    assert "UTC+05:45" in subjects
    assert "น." in subjects
    assert {mail["to"] for mail in mails} >= {"guest1@example.com", "somchai@example.com"}
    assert (home / ".dormouse" / "avatars" / "1" / "256.webp").stat().st_size > 0


async def test_no_setting_of_the_users_reaches_the_demo(home: Path) -> None:
    ended = await play(
        home, "--once", EMAIL_URL="smtps://real.example.com", DATABASE_URL="postgresql://prod.example.com/x"
    )

    assert ended.code == 0, ended.out
    assert len(list((home / ".dormouse" / "outbox").glob("*.eml"))) == FIRST_MESSAGES


async def test_no_secret_is_shown(home: Path) -> None:
    ended = await play(home, "--once")

    assert kept_secret(home / ".dormouse", "cron_secret") not in ended.out
    assert (home / ".dormouse" / "cron_secret").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_it_stays_up_until_a_signal_and_then_leaves_nothing(home: Path, number: int) -> None:
    port = free_port()
    process = await start(home, "demo", "--port", str(port))
    await lines_until(process, "Ctrl-C ends")
    assert (await asyncio.to_thread(ask, port, "GET", "/readyz")).status == 200

    process.send_signal(number)
    await process.communicate()

    assert process.returncode == 0
    assert not users_of(home / ".dormouse" / "postgres")
    with pytest.raises(ConnectionRefusedError):
        await asyncio.to_thread(ask, port, "GET", "/livez")


async def test_a_demo_that_is_killed_takes_its_children_along_and_can_be_played_again(home: Path) -> None:
    process = await start(home, "demo")
    await lines_until(process, "The first tick")

    process.kill()
    await process.communicate()

    ended = await play(home, "--once")
    assert ended.code == 0, ended.out


async def test_two_at_once_in_one_folder_are_refused(home: Path) -> None:
    process = await start(home, "demo")
    await lines_until(process, "The service")

    second = await play(home, "--once")

    assert second.code == 2
    assert f"process {process.pid}" in second.out
    process.terminate()
    await process.communicate()


async def test_a_taken_port_ends_it_with_2_and_leaves_nothing(home: Path) -> None:
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        ended = await play(home, "--once", "--port", str(port))

    assert ended.code == 2
    assert "address already in use" in ended.out
    assert not users_of(home / ".dormouse" / "postgres")


async def test_dev_serves_on_its_own_database_and_says_how_to_tick(home: Path) -> None:
    port = free_port()
    process = await start(home, "dev", "--port", str(port))
    lines = "".join(await lines_until(process, "dormouse jobs list"))
    token = kept_secret(home / ".dormouse", "cron_secret")
    api = kept_secret(home / ".dormouse", "api_token")

    ticked = await asyncio.to_thread(ask, port, "POST", "/api/cron/tick", Authorization=f"Bearer {token}")
    listed = await asyncio.to_thread(ask, port, "GET", "/api/bookings", Authorization=f"Bearer {api}")

    assert (ticked.status, listed.status) == (200, 200)
    assert "$(cat .dormouse/cron_secret)" in lines
    assert token not in lines
    process.send_signal(signal.SIGINT)
    await process.communicate()
    assert process.returncode == 0
    assert not users_of(home / ".dormouse" / "postgres")


def test_the_demos_environment_holds_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EMAIL_URL", "database_url", "Alert_Urls"):
        monkeypatch.setenv(name, "x")

    assert {"EMAIL_URL", "database_url", "Alert_Urls"}.isdisjoint(environment_without_settings())
    assert environment_without_settings()["PATH"] == os.environ["PATH"]


def test_a_secret_is_made_once(tmp_path: Path) -> None:
    first = kept_secret(tmp_path / "home", "cron_secret")

    assert kept_secret(tmp_path / "home", "cron_secret") == first
    assert len(first) == 64


def test_without_pillow_the_upload_is_kept_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upload = save_upload(tmp_path, "picture")
    monkeypatch.setattr(demo_jobs, "find_spec", lambda _name: None)

    resize_upload(tmp_path, demo_jobs.Avatar(7, upload))

    assert (tmp_path / "avatars" / "7" / "original.ppm").stat().st_size > UPLOAD_BYTES


def test_the_upload_becomes_a_square(tmp_path: Path) -> None:
    upload = save_upload(tmp_path, "picture")

    for _ in range(2):
        resize_upload(tmp_path, demo_jobs.Avatar(7, upload))

    with Image.open(tmp_path / "avatars" / "7" / "256.webp") as picture:
        assert (picture.format, picture.size) == ("WEBP", (256, 256))


def resize_upload(home: Path, avatar: demo_jobs.Avatar) -> None:
    """Run the handler as the runner would, for a service whose outbox is in *home*."""
    settings = load_settings(outbox_dir=str(home / "outbox"))
    services = Services(settings, Database("postgresql://nobody@127.0.0.1:1/none"), asyncio.Event(), {})
    demo_jobs.resize_avatar(Job(1, "avatar.resize", "default", avatar, 1, 8, 0, 1, 0.0, services))
