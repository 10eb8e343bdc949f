"""What a killed demo left is removed by the next one; what lives, or is not a demo's, never is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from common.clock import SystemClock
from modules.runtime.home import Home, HomeLock
from soul.commands.demo import demo_folder

_HOLDS = """
import sys, time
from pathlib import Path
from soul.commands.demo import demo_folder
with demo_folder(Path(sys.argv[1])) as folder:
    (folder / "secret").write_text("a password")
    print(folder, flush=True)
    time.sleep(600)
"""


@contextmanager
def held(within: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process that holds a demo's folder, and the folder."""
    words = [sys.executable, "-c", _HOLDS, str(within)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def killed(within: Path) -> Path:
    """The folder that a killed demo left."""
    with held(within) as (process, folder):
        process.kill()
        process.wait()
    assert (folder / "secret").exists()
    return folder


def test_the_folder_of_a_killed_demo_is_removed_at_the_next_start_and_one_that_lives_is_not(tmp_path: Path) -> None:
    left = killed(tmp_path)
    with held(tmp_path) as (_, alive):
        assert not left.exists()
        with demo_folder(tmp_path) as own:
            assert sorted(tmp_path.iterdir()) == sorted([alive, own])
            assert (alive / "secret").read_text() == "a password"
        assert list(tmp_path.iterdir()) == [alive]


def test_a_folder_in_which_a_soul_still_lives_stays_until_it_has_ended(tmp_path: Path) -> None:
    left = killed(tmp_path)
    home = Home.at(left / "maren")
    lock = HomeLock(home, agent_name="maren", started_at=SystemClock().now())
    with lock, demo_folder(tmp_path):
        assert left.exists()
    with demo_folder(tmp_path):
        assert not left.exists()


def test_what_no_demo_made_is_left_alone(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / ".lock").touch()
    (tmp_path / "soul-demo-link").symlink_to(elsewhere)
    (tmp_path / "soul-demo-file").touch()
    (tmp_path / "soul-demo-without-lock").mkdir()
    with demo_folder(tmp_path) as own:
        names = {path.name for path in tmp_path.iterdir()} - {own.name}
    assert names == {"elsewhere", "soul-demo-link", "soul-demo-file", "soul-demo-without-lock"}
    assert (elsewhere / ".lock").exists()
