"""The garbage collector of a process that serves or works: what start-up makes is not walked again and again.

    wait_for_start_up -> imports, application -> freeze_start_up

Imports leave some hundred thousand objects that live as long as the process: collections found nothing in them, but
took 5 % of a cold start, and of a burst of jobs a fifth of the processor time.
"""

import gc

YOUNG_OBJECTS = 10_000  # a job in flight is some twenty objects: a collection for every few hundred jobs


def wait_for_start_up() -> None:
    """Collect nothing until `freeze_start_up`."""
    gc.disable()


def freeze_start_up() -> None:
    """Keep all that exists now out of later collections, and let more come together before each."""
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 10, 10)
    gc.enable()
