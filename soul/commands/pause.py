"""`soul pause` and `soul resume`: the owner's stop and go, whether the SOUL is awake or not."""

from __future__ import annotations

import sys
from pathlib import Path

from common.settings import load_settings
from modules.control import Control, Standing
from modules.control_watch import COLLECTION
from modules.home import Home, lock_holder
from modules.safe_start import forget_starts


def run_pause(root: Path, reason: str) -> None:
    """Nothing public leaves from now on. Raises `StorageError`."""
    home = _home(root)
    Control(home.memory).pause(reason)
    when = "at once" if lock_holder(home) is not None else "from its next start"
    sys.stdout.write(f"Paused, {when}: nothing public leaves until `soul resume`\n")


def run_resume(root: Path) -> bool:
    """Take it back; False if something else still speaks against acting. Raises `StorageError`."""
    standing = resume(_home(root))
    sys.stdout.write("".join(f"{line}\n" for line in resumed_lines(standing)))
    return standing.may_act


def resume(home: Home) -> Standing:
    """End the pause and safe mode, and let the next start be the first again."""
    forget_starts(home.memory)
    return Control(home.memory).resume()


def resumed_lines(standing: Standing) -> list[str]:
    """What the owner should know after it."""
    if standing.may_act:
        return ["Going on: public acts may leave"]
    return [
        f"Still {standing}",
        f"  → Delete the {COLLECTION} record in your own Bluesky repo; it is read again within a minute.",
    ]


def _home(root: Path) -> Home:
    return Home.at(root, load_settings(root).memory_dir)
