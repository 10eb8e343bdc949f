"""Proves that the collector of garbage rests while modules are loaded, and only then."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc
from soul.loading import loading

kept = []
with loading():
    print(gc.isenabled(), gc.get_freeze_count())
    kept.append([])
print(gc.isenabled(), gc.get_freeze_count() > 0)
try:
    with loading():
        import no_such_module
except ImportError:
    print(gc.isenabled())
gc.disable()
with loading():
    pass
print(gc.isenabled())
"""


def test_the_collector_rests_while_modules_are_loaded_and_goes_on_as_before() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False", "0", "True", "True", "True", "False"]
