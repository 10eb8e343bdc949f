"""Imports many modules at once without garbage collection."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Disable garbage collection while modules are imported: they stay as long as the process, so it finds little.

    Objects that exist at the end are never scanned again. A collector that was off before stays off.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()
