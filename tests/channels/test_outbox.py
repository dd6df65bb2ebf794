"""The default channel writes files: one a key, whole or not at all."""

import asyncio
from email import message_from_bytes
from email.policy import default
from pathlib import Path

import pytest

from app.channels import check_channel, open_email
from app.errors import ChannelSuspended
from tests.channels.messages import LETTER, letter, settings_for


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_a_message_becomes_a_file_that_mail_programs_read(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "outbox"

    name = await open_email(settings_for(None, outbox_dir=str(folder))).send(LETTER, "key-1")

    mail = message_from_bytes((folder / "key-1.eml").read_bytes(), policy=default)
    body = mail.get_body(("plain",))
    assert name == "key-1.eml"
    assert mail["To"] == LETTER.to
    assert mail["Subject"] == LETTER.subject
    assert body is not None
    assert body.get_content().replace("\r\n", "\n") == LETTER.text


async def test_sending_again_under_the_same_key_leaves_one_file(tmp_path: Path) -> None:
    channel = open_email(settings_for(None, outbox_dir=str(tmp_path)))

    await asyncio.gather(*(channel.send(LETTER, "key") for _ in range(20)))

    assert names(tmp_path) == ["key.eml"]


@pytest.mark.parametrize("key", ["../escape", "/etc/key", ".", "", "a/b", "k" * 300, "ก", "a\0b"])
async def test_no_key_leaves_the_folder(tmp_path: Path, key: str) -> None:
    folder = tmp_path / "outbox"

    name = await open_email(settings_for(None, outbox_dir=str(folder))).send(LETTER, key)

    assert names(folder) == [name]
    assert names(tmp_path) == ["outbox"]


async def test_a_folder_that_cannot_be_written_suspends_the_channel(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    channel = open_email(settings_for(None, outbox_dir=str(tmp_path / "file")))

    with pytest.raises(ChannelSuspended) as caught:
        await channel.send(LETTER, "key")

    assert "file" not in str(caught.value).replace("cannot be written", "").replace("FileExistsError", "")


async def test_a_failed_write_leaves_no_half_file(tmp_path: Path) -> None:
    (tmp_path / "key.eml").mkdir()
    channel = open_email(settings_for(None, outbox_dir=str(tmp_path)))

    with pytest.raises(ChannelSuspended):
        await channel.send(letter(), "key")

    assert names(tmp_path) == ["key.eml"]


async def test_the_check_says_where_mail_goes_and_leaves_nothing(tmp_path: Path) -> None:
    sentence = await check_channel(settings_for(None, outbox_dir=str(tmp_path)))

    assert str(tmp_path) in sentence
    assert names(tmp_path) == []
