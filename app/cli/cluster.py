"""The data folder of the embedded PostgreSQL: made, owned, reachable, and cleared of what a kill left behind.

PostgreSQL refuses to run as root, so that root's server runs as the owner of its data: `nobody`, at first.
"""

import os
import pwd
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from app.cli.exits import say_aside
from app.errors import ConfigError, DormouseError

INITDB = ("--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")
POLL_SECONDS = 0.02
SOCKET_LOCK = ".s.PGSQL.5432.lock"
PROC = Path("/proc")


def make_cluster(binaries: Path, data: Path) -> None:
    """Make *data* unless it is there, and let its owner reach it and the *binaries*.

    initdb works beside the final place and is renamed, so that a run cut off leaves nothing that looks
    finished.
    """
    owner = owner_of(data)
    if (data / "PG_VERSION").exists():
        _let_through(owner, binaries, data)
        return
    draft = data.with_suffix(".new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    give_to(draft, owner)
    _let_through(owner, binaries, draft)
    call([str(binaries / "initdb"), *INITDB, f"--pgdata={draft}"], owner)
    draft.rename(data)


def owner_of(data: Path) -> int:
    """Return the user id that the server of *data* runs as; raise ConfigError when it is not ours to be."""
    if not (data / "PG_VERSION").exists():
        return pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else os.geteuid()
    owner = data.stat().st_uid
    if owner == 0 or os.geteuid() not in {0, owner}:
        raise ConfigError([f"{data} belongs to another user: remove it, or run as its owner."])
    return owner


def give_to(folder: Path, owner: int) -> None:
    """Make *owner* the owner of *folder*, with the group of that user."""
    if owner != os.geteuid():
        os.chown(folder, owner, pwd.getpwuid(owner).pw_gid)


def run_as(owner: int) -> dict[str, Any]:
    """Return what subprocess must be told to run a program as *owner*, in a folder that anyone may enter."""
    if owner == os.geteuid():
        return {"cwd": "/"}
    return {"cwd": "/", "user": owner, "group": pwd.getpwuid(owner).pw_gid, "extra_groups": []}


def call(command: list[str], owner: int) -> None:
    """Run one of the wheel's programs to its end; raise DormouseError with its words when it fails."""
    done = subprocess.run(  # noqa: S603 - no shell, and no word of it comes from outside
        command, capture_output=True, text=True, check=False, env={"LC_ALL": "C"}, **run_as(owner)
    )
    if done.returncode and "already exists" not in done.stderr:
        raise DormouseError(f"{Path(command[0]).name} of the embedded PostgreSQL failed: {done.stderr.strip()}")


def clear_leftovers(data: Path, seconds: float) -> None:
    """Stop the server that a killed run left on *data*, and drop its lock file once nobody works there.

    Call it under the lock of the home: whoever still runs on this data then has no parent. The process id in the lock
    file alone proves nothing: it may have a new holder, or be a zombie that its new parent does not collect.
    """
    lock = data / "postmaster.pid"
    if not lock.exists():
        return
    until = time.monotonic() + seconds
    for pid in users_of(data) & {int(word) for word in lock.read_text().split()[:1]}:
        os.kill(pid, signal.SIGINT)
    while users := users_of(data):
        if time.monotonic() > until:
            raise DormouseError(f"processes {sorted(users)} still work on {data}: end them first.")
        time.sleep(POLL_SECONDS)
    if (PROC / "self").exists():
        for name in ("postmaster.pid", SOCKET_LOCK):
            (data / name).unlink(missing_ok=True)


def users_of(data: Path) -> set[int]:
    """Return the processes of the server on *data*, its orphans too; without /proc only its first one is found."""
    if (PROC / "self").exists():
        return {int(place.name) for place in PROC.glob("[0-9]*") if _works_in(place, data)}
    command = ["ps", "-axo", "pid=,args="]
    listing = subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603 - no shell
    return {int(line.split()[0]) for line in listing.splitlines() if f"-D {data}" in line}


def _works_in(place: Path, data: Path) -> bool:
    try:
        return (place / "cwd").readlink() == data
    except OSError:
        return False


def _let_through(owner: int, *places: Path) -> None:
    """Let *owner* pass through the folders above *places*: root's own are often closed to all others."""
    if owner == os.geteuid():
        return
    for folder in (parent for place in places for parent in place.parents):
        mode = folder.stat().st_mode
        if not mode & 0o001:
            folder.chmod(mode | 0o011)
            say_aside(f"{folder} may now be passed (not listed) by others: PostgreSQL does not run as root.")
