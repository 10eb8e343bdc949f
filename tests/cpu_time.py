"""The processor time of a call, for tests marked `perf`; other load on the machine changes it only a little."""

import gc
import sys
import time
from collections.abc import Callable


def cpu_s(call: Callable[[], object], *, runs: int = 1) -> float:
    """Return the shortest processor time of `runs` calls, in seconds."""
    return min(_once(call) for _ in range(runs))


def takes_less(limit_s: float, call: Callable[[], object], *, runs: int) -> bool:
    """Return whether one of at most `runs` calls takes less than `limit_s` seconds of processor time."""
    return any(_once(call) < limit_s for _ in range(runs))


def _once(call: Callable[[], object]) -> float:
    collects, tracer = gc.isenabled(), sys.gettrace()
    gc.disable()  # garbage left by the whole test run is not a cost of this call
    sys.settrace(None)  # neither is the tracing of each line under coverage
    try:
        began = time.process_time()
        call()
        return time.process_time() - began
    finally:
        sys.settrace(tracer)
        if collects:
            gc.enable()
