"""What a call costs in processor time. For tests marked `perf`: what else the machine does changes it a little."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable


def cpu_s(call: Callable[[], object], *, runs: int = 1) -> float:
    """Return the least processor time of `runs` calls, in seconds."""
    return min(_once(call) for _ in range(runs))


def takes_less(limit_s: float, call: Callable[[], object], *, runs: int) -> bool:
    """Return whether one of at most `runs` calls takes less than `limit_s` seconds of processor time."""
    return any(_once(call) < limit_s for _ in range(runs))


def _once(call: Callable[[], object]) -> float:
    collects, tracer = gc.isenabled(), sys.gettrace()
    gc.disable()  # what a whole test run has left behind is not this call's cost
    sys.settrace(None)  # neither is what a run under coverage notes of each line
    try:
        began = time.process_time()
        call()
        return time.process_time() - began
    finally:
        sys.settrace(tracer)
        if collects:
            gc.enable()
