"""A job's key for the outside world is the same at every attempt, of no other job, and plain ASCII."""

from app.jobs import Job, Kind, Permanent
from app.jobs.operate import requeue
from tests.jobs.rows import make_due, put, tick_once


async def test_the_key_is_the_same_at_every_attempt_and_after_a_requeue(conn, services):
    keys = []

    async def toy(job: Job) -> None:
        keys.append((job.idempotency_key, job.key_for("mail"), job.key_for("sms")))
        if len(keys) < 3:
            raise RuntimeError
        raise Permanent("no")

    made = services({"toy": Kind(toy)})
    (job_id,) = await put(conn)
    for _ in range(3):
        await tick_once(made)
        await make_due(conn)
    await requeue(conn, job_id)

    await tick_once(services({"toy": Kind(toy)}))

    assert len(keys) == 4
    assert len(set(keys)) == 1
    assert len(set(keys[0])) == 3


async def test_the_key_does_not_depend_on_the_zone_of_the_session(conn, dsn, services):
    keys = []

    async def toy(job: Job) -> None:
        keys.append(job.idempotency_key)
        raise RuntimeError

    made = services({"toy": Kind(toy)})
    await put(conn)
    await tick_once(made)
    name = dsn.partition("?")[0].rpartition("/")[2]
    await conn.execute(f"ALTER DATABASE \"{name}\" SET timezone = 'Asia/Kathmandu'")
    await made.database.close()
    await make_due(conn)

    await tick_once(made)

    assert len(keys) == 2
    assert len(set(keys)) == 1


async def test_no_two_jobs_share_a_key(conn, services):
    keys = []

    async def toy(job: Job) -> None:
        keys.append(job.idempotency_key)

    await put(conn, 50)

    await tick_once(services({"toy": Kind(toy)}))

    assert len(set(keys)) == 50


async def test_a_row_that_takes_the_id_of_a_deleted_one_has_a_key_of_its_own(conn, services):
    keys = []

    async def toy(job: Job) -> None:
        keys.append((job.id, job.idempotency_key))

    made = services({"toy": Kind(toy)})
    for _ in range(2):
        await conn.execute("TRUNCATE jobs RESTART IDENTITY")
        await put(conn)
        await tick_once(made)

    assert keys[0][0] == keys[1][0]
    assert keys[0][1] != keys[1][1]


async def test_a_key_is_36_ascii_characters(conn, services):
    keys = []

    async def toy(job: Job) -> None:
        keys.append(job.key_for("Erinnerung für 用户"))
        keys.append(job.idempotency_key)

    await put(conn)

    await tick_once(services({"toy": Kind(toy)}))

    assert all(key.isascii() and len(key) == 36 for key in keys)
    assert len(keys) == 2
