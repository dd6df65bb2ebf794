"""What our ticks are held against: FastAPI and asyncpg with one route of one round trip, and one of two statements."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import uvicorn
from fastapi import FastAPI, Request

from benchmarks.bare import CLAIM, COMPLETE


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Hold one pool while the application runs."""
    async with asyncpg.create_pool(os.environ["DATABASE_URL"], min_size=1) as pool:
        app.state.pool = pool
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/one")
async def one(request: Request) -> dict[str, int]:
    """Answer after one round trip."""
    return {"one": await request.app.state.pool.fetchval("SELECT 1")}


@app.post("/hundred")
async def hundred(request: Request) -> dict[str, int]:
    """Claim 100 and complete 100, in two statements on one connection."""
    async with request.app.state.pool.acquire() as connection:
        rows = await connection.fetch(CLAIM, 100)
        await connection.execute(COMPLETE, [row["id"] for row in rows])
    return {"done": len(rows)}


if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ["PORT"]), loop="uvloop", http="httptools", access_log=False, log_level="error")
