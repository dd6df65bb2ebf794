"""Databases ready to be drained: one template a contender and shape, filled once, cloned for each run.

schema -> (future and done rows) -> boundary -> the jobs of the run -> VACUUM ANALYZE
"""

import subprocess
from dataclasses import dataclass

from benchmarks.contenders import Contender
from benchmarks.server import Server

SIDE_SECONDS = 300


@dataclass(frozen=True)
class Template:
    """A database to clone, and the highest id in it that is not of the run."""

    name: str
    boundary: int


def obey(contender: Contender, word: str, dsn: str, jobs: int = 0) -> float:
    """Let *contender* obey *word* in a process of its own and return the seconds that it names."""
    command = contender.command(word, dsn, jobs)
    done = subprocess.run(
        command.argv, env=command.environment, capture_output=True, text=True, check=False, timeout=SIDE_SECONDS
    )
    if done.returncode:
        raise SystemExit(f"{contender.name} {word}: {done.stderr[-2000:]}")
    said = [line for line in done.stdout.splitlines() if line.startswith("S ")]
    return float(said[-1].split()[1]) if said else 0.0


async def make_template(server: Server, contender: Contender, jobs: int, history: int = 0) -> Template:
    """Fill a database with *jobs* due jobs, after *history* rows that are not due and as many that are done."""
    name = f"{contender.name.replace(' ', '_')}_{jobs}_{history}"
    await server.create(name)
    obey(contender, "schema", server.dsn(name))
    connection, boundary = await server.connect(name), 0
    try:
        if history:
            obey(contender, "fill", server.dsn(name), 1)  # some peers learn a kind's name by its first job
            await connection.execute("SET session_replication_role = replica")
            await connection.execute("SET synchronous_commit = off")
            await connection.fetch(contender.future, history)
            await connection.fetch(contender.done, history)
            boundary = await connection.fetchval(contender.boundary)
        obey(contender, "fill", server.dsn(name), jobs - 1 if history else jobs)
        await connection.execute("VACUUM ANALYZE")
    finally:
        await connection.close()
    return Template(name, boundary)
