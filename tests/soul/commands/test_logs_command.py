"""Proves that `soul logs` shows the last lines as the terminal did, and follows new ones."""

import json
from pathlib import Path

import pytest

from modules.runtime.home import Home
from tests.program import soul, started, until
from tests.running_town import write_home

OWNER = {"OWNER_BLUESKY_SOCIAL_HANDLE_DID": "did:plc:owner"}


def log(home: Home, day: str, *events: str, **more: str) -> Path:
    path = home.logs / f"{day}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    entries = ({"kind": "done", "event": event, "timestamp": f"{day}T12:00:00.000001Z", **more} for event in events)
    with path.open("a") as file:
        file.writelines(f"{json.dumps(entry)}\n" for entry in entries)
    return path


@pytest.mark.slow
async def test_the_last_lines_are_read_as_the_terminal_told_them_and_followed(tmp_path: Path) -> None:
    home = write_home(tmp_path / "rowan", "rowan", SOUL_TIMEZONE="UTC", SOUL_SPEED="1", **OWNER)
    assert "Nothing was logged yet" in (await soul("logs", "--home", str(home.root))).output
    log(home, "2026-01-05", "First", "Second", "[space] Third \x1b[2J", detail="same-reply: twice today")
    with log(home, "2026-01-06", "Of a tool", kind="").open("a") as file:
        file.write("no JSON\n")
    told = (await soul("logs", "-n", "2", "--home", str(home.root))).output
    assert told.splitlines() == [
        "2026-01-05 12:00:00 ✓ done    Second  the same words to many: twice today",
        "2026-01-05 12:00:00 ✓ done    Room: Third  the same words to many: twice today",
    ]
    async with started("logs", "-f", "--home", str(home.root)) as process:
        await until(process, "Third")
        log(home, "2026-01-06", "Fourth")
        await until(process, "Fourth")
        log(home, "2026-01-07", "Fifth")
        assert "Fourth" not in await until(process, "Fifth")
