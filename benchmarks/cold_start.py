"""From process start to the first answered tick, beside the least that FastAPI, uvicorn and asyncpg can do.

    python benchmarks/cold_start.py [runs]

Each round starts `dormouse serve` and a minimal app of one route with one database round trip, in turn, and asks each
until it answers 200. The schema is in place and nothing is due. Bytecode is compiled beforehand, as in the image.
"""

import http.client
import os
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from app.cli.embedded import embedded_postgres

RUNS = 7
LIMIT_SECONDS = 30.0
MINIMAL = """
import os
from contextlib import asynccontextmanager

import asyncpg
import uvicorn
from fastapi import FastAPI


@asynccontextmanager
async def lifespan(app):
    async with asyncpg.create_pool(os.environ["DATABASE_URL"], min_size=0, statement_cache_size=0) as pool:
        app.state.pool = pool
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/api/cron/tick")
async def tick() -> dict[str, int]:
    return {"one": await app.state.pool.fetchval("SELECT 1")}


uvicorn.run(app, port=int(os.environ["PORT"]), loop="uvloop", http="httptools", access_log=False, log_level="error")
"""


def free_port() -> int:
    """Return a port of loopback that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def first_answer(command: list[str], environment: dict[str, str]) -> float:
    """Start *command* and return the seconds until its tick answers 200."""
    port = free_port()
    began = time.perf_counter()
    process = subprocess.Popen(
        command, env=environment | {"PORT": str(port)}, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    try:
        while not answers(port, environment["CRON_SECRET"]):
            if time.perf_counter() - began > LIMIT_SECONDS or process.poll() is not None:
                raise SystemExit(f"{command[-1]} did not answer")
        return time.perf_counter() - began
    finally:
        process.terminate()
        process.wait()


def answers(port: int, secret: str) -> bool:
    """Ask for a tick once; whether the answer was 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_SECONDS)
    try:
        connection.request("POST", "/api/cron/tick", headers={"Authorization": f"Bearer {secret}"})
        return connection.getresponse().status == http.HTTPStatus.OK
    except OSError:
        time.sleep(0.005)
        return False
    finally:
        connection.close()


def import_seconds(statement: str, environment: dict[str, str]) -> float:
    """Return the median seconds of a process that only runs *statement*."""

    def once() -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], env=environment, check=True)
        return time.perf_counter() - began

    return median_of(once, 5)


def median_of(measure: Callable[[], float], runs: int) -> float:
    """Return the median of *runs* measurements."""
    return statistics.median(measure() for _ in range(runs))


def main() -> None:
    """Measure in turn and print one table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    with tempfile.TemporaryDirectory() as folder, embedded_postgres(Path(folder) / "server", "cold") as dsn:
        script = Path(folder) / "minimal.py"
        script.write_text(MINIMAL)
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment |= {
            "DATABASE_URL": dsn,
            "CRON_SECRET": secrets.token_hex(24),
            "PYTHONPYCACHEPREFIX": str(Path(folder) / "bytecode"),
        }
        serve, minimal = [sys.executable, "-m", "app.cli", "serve"], [sys.executable, str(script)]
        subprocess.run(
            [sys.executable, "-m", "app.cli", "migrate"], env=environment, check=True, stdout=subprocess.DEVNULL
        )
        first_answer(serve, environment), first_answer(minimal, environment)
        ours, theirs = [], []
        for _ in range(runs):
            ours.append(first_answer(serve, environment))
            theirs.append(first_answer(minimal, environment))
        report(ours, theirs, environment)


def report(ours: list[float], theirs: list[float], environment: dict[str, str]) -> None:
    """Print both rows, their ratio pair by pair, and what the imports alone cost."""
    print("| process start to first 200 | median s | min | max | runs |\n|---|---:|---:|---:|---:|")
    for name, times in (("`dormouse serve`, first tick", ours), ("minimal FastAPI app, one round trip", theirs)):
        print(f"| {name} | {statistics.median(times):.2f} | {min(times):.2f} | {max(times):.2f} | {len(times)} |")
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    print(f"\nRatio, pair by pair: {ratio:.2f}")
    for statement in ("pass", "import fastapi, uvicorn, asyncpg", "import app.main, uvicorn"):
        print(f"`{statement}`: {import_seconds(statement, environment):.2f} s")


if __name__ == "__main__":
    main()
