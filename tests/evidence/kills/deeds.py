"""The jobs of these tests: each leaves a mark in a file when it starts, and some write inside the database as well.

A mark is one line, `job fence process`, appended in one write: what a process did before it died stays in the file.
"""

import asyncio
import os
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from app.jobs import Job, Kind, Steps

INSIDE, OUTSIDE, ENDLESS = "deed.inside", "deed.outside", "deed.endless"
TABLES = """
    CREATE TABLE effects (job_id bigint, fence bigint);
    CREATE TABLE history (
        n bigint GENERATED ALWAYS AS IDENTITY, id bigint, old_status text, status text, old_fence bigint, fence bigint
    );
    CREATE FUNCTION note_history() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO history (id, old_status, status, old_fence, fence)
        VALUES (NEW.id, OLD.status, NEW.status, OLD.fence, NEW.fence);
        RETURN NULL;
    END
    $$;
    CREATE TRIGGER note AFTER UPDATE OF status ON jobs
        FOR EACH ROW WHEN (NEW.kind LIKE 'deed.%') EXECUTE FUNCTION note_history()
"""
WRITE = "INSERT INTO effects (job_id, fence) VALUES ($1, $2)"


class Mark(NamedTuple):
    """One start of one job: under which fence, by which process."""

    job: int
    fence: int
    process: int


def leave_mark(job: Job) -> None:
    """Append this start to the file that the payload names."""
    end = os.open(job.payload["file"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(end, f"{job.id} {job.fence} {os.getpid()}\n".encode())
    finally:
        os.close(end)


def read_marks(file: Path) -> dict[int, list[Mark]]:
    """Return every start by its job's id."""
    found = defaultdict(list)
    for line in file.read_text().splitlines() if file.exists() else []:
        mark = Mark(*map(int, line.split()))
        found[mark.job].append(mark)
    return found


async def act_inside(job: Job) -> None:
    """Take some time and then write in the transaction that completes the job."""
    leave_mark(job)
    await asyncio.sleep(job.payload["seconds"])
    async with job.completing() as connection:
        await connection.execute(WRITE, job.id, job.fence)


async def act_outside(job: Job) -> None:
    """Do what no rollback takes back, which is the mark itself."""
    leave_mark(job)
    await asyncio.sleep(job.payload["seconds"])


async def never_end(job: Job) -> None:
    """Start, and wait to be cancelled."""
    leave_mark(job)
    await asyncio.Event().wait()


AT_ONCE = Steps(*[0.0] * 50)
HANDLERS = {
    INSIDE: Kind(act_inside, timeout=2, retry=AT_ONCE),
    OUTSIDE: Kind(act_outside, timeout=2, retry=AT_ONCE),
    ENDLESS: Kind(never_end, timeout=20),
}
