"""A run reports at its end which tests it left out, by reason, also if workers run the tests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parent.parent
_TESTS = """
import pytest

@pytest.mark.parametrize("number", range(3))
def test_what_is_missing(number):
    pytest.skip("no library here")

@pytest.mark.skip(reason="not on this system")
def test_elsewhere():
    pass

@pytest.mark.slow
@pytest.mark.parametrize("number", range(2))
def test_slow(number):
    pass

def test_runs():
    pass
"""


@pytest.mark.parametrize("spread", [(), ("-p", "xdist", "-n", "1")], ids=["alone", "spread"])
def test_what_a_run_leaves_out_is_told_by_reason_with_a_count(tmp_path: Path, spread: tuple[str, ...]) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow: takes long (make slow)\n")
    (tmp_path / "test_some.py").write_text(_TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.left_out", *spread, "-m", "not slow", str(tmp_path)],
        cwd=_ROOT,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    told = next(place for place, line in enumerate(lines) if "what did not run, and why" in line)
    assert lines[told + 1 : told + 4] == [
        "3 skipped: no library here",
        "1 skipped: not on this system",
        "2 not chosen: slow: takes long (make slow)",
    ]
