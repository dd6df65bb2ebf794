"""Child processes that cannot outlive this one: a demo leaves nothing running, however it ends."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable

PR_SET_PDEATHSIG = 1


def end_with_parent(number: int) -> Callable[[], None]:
    """Return a `preexec_fn`: the kernel then sends the child signal *number* when its parent dies (on Linux).

    The parent, here, is the thread that starts the child: call it from the main thread.
    """
    if not sys.platform.startswith("linux"):
        return lambda: None
    libc, parent = ctypes.CDLL(None, use_errno=True), os.getpid()

    def arrange() -> None:
        libc.prctl(PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:  # it died before we could ask
            os._exit(1)

    return arrange


def stop(process: subprocess.Popen[bytes], number: int, seconds: float) -> None:
    """End *process* with signal *number*, and by force when it is still there after *seconds*."""
    if process.poll() is not None:
        return
    process.send_signal(number)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
