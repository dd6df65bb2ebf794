"""What may meet: each scenario sets a world up and names its actors; the order's random numbers fill in the rest."""

from collections.abc import Awaitable, Callable, Coroutine
from datetime import timedelta
from typing import Any

from app.jobs import NewJob
from tests.evidence.explorer import actors
from tests.evidence.explorer.scheduler import Actor
from tests.evidence.explorer.world import World

WEIGHTS = (0.2, 1.0, 1.0, 5.0)
HOUR, DAY = timedelta(hours=1), timedelta(hours=24)
TEMPERS = ("note", "effect", "effect", "flaky", "hopeless", "sleepy", "odd")
# Where a tick stops for longest: before each statement and effect that another's rescue may come ahead of.
POINTS = ("OWED", "FREEZE", "send", "MARK_SENT", "SETTLE", "SETTLE commit", "COMMIT", "begin effect")
ENDS = ("SETTLE", "SETTLE", "SETTLE", "COMMIT", "MARK_SENT", "send")
Scenario = Callable[[World], Awaitable[None]]


async def ticks_meet_ticks(world: World) -> None:
    """Two or three ticks over the same reminders and jobs, in batches of any size."""
    await _fill(world)
    world.troubles = world.rng.choice([(), (), ("", "", "not sent"), ("", "refused")])
    for _ in range(world.rng.choice((2, 2, 3))):
        _tick(world)


async def rescue_meets_completion(world: World) -> None:
    """A lease runs out under a process that goes on, while another tick rescues and runs the job again."""
    await _fill(world)
    world.ambiguous = world.rng.choice(("retry", "hold"))
    first = _tick(world)
    time = _add(world, "time", actors.let_leases_pass(world, world.rng.randint(1, 2)))
    second = _tick(world)
    if world.rng.random() < 0.7:
        start: list[tuple[Actor, int | str]] = [(first, world.rng.choice(ENDS)), (time, "stand still")]
        world.scheduler.phases = [*start, (first, world.rng.choice((0, 1, 1))), (second, "PLAN")]


async def a_process_stands_still(world: World) -> None:
    """A tick stops between any two statements for longer than its lease, another does its work, and it goes on."""
    await _fill(world, jobs=world.rng.randint(0, 1))
    await world.enqueue(NewJob("effect", priority=1))
    world.ambiguous = world.rng.choice(("retry", "hold"))
    frozen = _tick(world)
    time = _add(world, "time", actors.let_leases_pass(world))
    other = _tick(world)
    world.scheduler.phases = [
        (frozen, world.rng.choice(POINTS)),
        (time, "stand still"),
        (other, world.rng.randint(3, 60)),
    ]


async def a_tick_is_killed(world: World) -> None:
    """One of two ticks dies at any statement; its leases run out later."""
    await _fill(world)
    world.ambiguous = world.rng.choice(("retry", "hold"))
    victim = world.scheduler.add("victim", actors.tick_once(world), world.rng.choice(WEIGHTS))
    world.scheduler.kills.append((world.rng.randint(2, 60), victim, world.stage.stock.bury))
    _tick(world)
    if world.rng.random() < 0.5:
        _add(world, "time", actors.let_leases_pass(world))


async def bookings_change(world: World) -> None:
    """Bookings are cancelled, moved and moved back while two ticks plan and send."""
    for number in range(world.rng.randint(1, 2)):
        await world.book(world.stage.admin, f"b{number}", 5)
        _add(world, f"app-{number}", actors.change_booking(world, f"b{number}", _changes(world)))
    _tick(world)
    _tick(world)


async def operator_meets_tick(world: World) -> None:
    """Dead jobs are requeued twice, waiting ones cancelled, while they are claimed, fail and die."""
    await _fill(world, bookings=world.rng.randint(0, 1))
    dead = await world.enqueue(*(NewJob(world.rng.choice(("note", "effect", "hopeless"))) for _ in range(2)))
    await world.stage.admin.execute(KILL_JOBS, dead)
    everything = [*sorted(world.enqueued), *dead]
    _tick(world)
    _add(world, "operator-1", actors.operate_on(world, "requeue", _some(world, everything)))
    _add(
        world, "operator-2", actors.operate_on(world, world.rng.choice(("requeue", "cancel")), _some(world, everything))
    )


KILL_JOBS = """
    UPDATE jobs
    SET status = 'dead', finished_at = now(), attempts = 1, fence = 0
    WHERE id = ANY ($1::bigint[])
"""


async def racers_sign_up(world: World) -> None:
    """Several transactions use the same dedupe_key and booking; some are rolled back; a tick runs what is there."""
    for number in range(world.rng.randint(2, 3)):
        commits = world.rng.random() < 0.8
        booking_id = world.rng.choice(("b0", f"b{number}", f"b{number}"))
        racer = world.scheduler.add(f"app-{number}", actors.sign_up(world, "once", booking_id, commits=commits))
        if world.rng.random() < 0.5:
            world.scheduler.phases.append((racer, "COMMIT"))
    _tick(world)


async def plans_meet_plans(world: World) -> None:
    """Ticks with different offsets and small batches plan the same bookings while one of them moves."""
    for number in range(world.rng.randint(1, 3)):
        await world.book(world.stage.admin, f"b{number}", world.rng.choice((0.5, 5, 30)))
    both = world.rng.random() < 0.5
    for number in range(3):
        offsets = (DAY, HOUR) if both or number == 0 else (DAY,)
        world.offsets = max(world.offsets, offsets)
        world.scheduler.add(
            f"tick-{number}",
            actors.tick_once(world, reminders=world.rng.choice((1, 2, 100)), reminder_offsets=offsets),
            world.rng.choice(WEIGHTS),
        )
    if world.rng.random() < 0.5:
        _add(world, "app", actors.change_booking(world, "b0", _changes(world)))


async def workers_meet_sweeps(world: World) -> None:
    """Claim, heartbeat and settle by hand, under leases that run out, rescues, expiry, pruning and an operator."""
    late = world.now - HOUR
    jobs = [NewJob("note"), NewJob("later", priority=1), NewJob("note", expires_at=late)]
    ids = await world.enqueue(*jobs[world.rng.randint(0, 1) :])
    first, second, _ = (_add(world, f"worker-{number}", actors.work_by_hand(world, 2)) for number in range(3))
    time = _add(world, "time", actors.let_leases_pass(world, 2))
    verbs = ["rescue", *(world.rng.choice(("rescue", "expire", "prune")) for _ in range(3))]
    sweeper = _add(world, "sweeper", actors.sweep_by_hand(world, verbs))
    if world.rng.random() < 0.8:
        start: list[tuple[Actor, int | str]] = [
            (first, world.rng.choice(("HEARTBEAT", "SETTLE"))),
            (time, "stand still"),
        ]
        world.scheduler.phases = [*start, (first, world.rng.randint(0, 1)), (sweeper, 2), (second, "work")]
    _add(world, "operator", actors.operate_on(world, world.rng.choice(("requeue", "cancel")), _some(world, ids)))


async def everybody_at_once(world: World) -> None:
    """Ticks, a worker by hand, changing bookings, an operator and time, all together."""
    await _fill(world)
    world.ambiguous = world.rng.choice(("retry", "hold"))
    _tick(world)
    _tick(world)
    _add(world, "worker", actors.work_by_hand(world, 1))
    _add(world, "app", actors.change_booking(world, "b0", _changes(world)))
    _add(world, "time", actors.let_leases_pass(world))
    verb = world.rng.choice(("requeue", "cancel"))
    _add(world, "operator", actors.operate_on(world, verb, _some(world, sorted(world.enqueued))))


SCENARIOS: dict[str, Scenario] = {
    scenario.__name__: scenario
    for scenario in (
        ticks_meet_ticks,
        rescue_meets_completion,
        a_process_stands_still,
        a_tick_is_killed,
        bookings_change,
        operator_meets_tick,
        racers_sign_up,
        plans_meet_plans,
        workers_meet_sweeps,
        everybody_at_once,
    )
}


async def _fill(world: World, bookings: int | None = None, jobs: int | None = None) -> None:
    """Put bookings that are owed a reminder, and jobs of any temper."""
    for number in range(world.rng.randint(1, 2) if bookings is None else bookings):
        await world.book(world.stage.admin, f"b{number}", world.rng.choice((0.5, 5, 23)))
    tempers = []
    for _ in range(world.rng.randint(1, 3) if jobs is None else jobs):
        kind = world.rng.choice(TEMPERS)
        payload = {"cancels": world.rng.random() < 0.5, "failures": world.rng.randint(1, 3)}
        tempers.append(NewJob(kind, payload, priority=world.rng.randint(-1, 1), max_attempts=world.rng.randint(1, 3)))
    await world.enqueue(*tempers)


def _tick(world: World) -> Actor:
    name = f"tick-{sum(actor.name.startswith('tick') for actor in world.scheduler.actors)}"
    batch = world.rng.choice((1, 2, 100))
    concurrency = world.rng.choice((1, 3))
    play = actors.tick_once(world, jobs=batch, reminders=batch, job_concurrency=concurrency)
    return world.scheduler.add(name, play, world.rng.choice(WEIGHTS))


def _add(world: World, name: str, play: Coroutine[Any, Any, None]) -> Actor:
    return world.scheduler.add(name, play, world.rng.choice(WEIGHTS))


def _changes(world: World) -> list[tuple[str, float]]:
    """Return up to three changes; hours 5 is where it was, 7 is elsewhere in the window, 90 is outside of it."""
    verbs = [("cancel", 0.0), ("put", 5.0), ("put", 7.0), ("put", 7.0), ("put", 90.0)]
    return [world.rng.choice(verbs) for _ in range(world.rng.randint(1, 3))]


def _some(world: World, ids: list[int]) -> list[int]:
    return [world.rng.choice(ids) for _ in range(2)]
