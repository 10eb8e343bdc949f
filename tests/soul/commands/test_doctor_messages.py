"""Whether the owner can command the SOUL by direct message is found before they need it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from soul.commands.doctor import examine
from tests.running_town import RunningTown
from town.atproto.index import FOLLOW


@pytest.mark.parametrize(
    ("follows", "has_lived", "more", "level"),
    [
        (False, True, {}, "warn"),
        (False, False, {}, "ok"),
        (True, True, {}, "ok"),
        (False, True, {"SOUL_MESSAGES_FROM": "all"}, "ok"),
        (False, True, {"SOUL_DIRECT_MESSAGES": "off"}, None),
    ],
)
async def test_doctor_says_whether_messages_of_the_owner_reach_it(
    running_town: RunningTown, *, follows: bool, has_lived: bool, more: dict[str, str], level: str | None
) -> None:
    home = running_town.make_home("rowan", BUDGET_TOKENS_PER_DAY="0", **more)
    if follows:
        record = {"subject": running_town.account("owner"), "createdAt": "2026-01-05T12:00:00.000Z"}
        running_town.network.create(running_town.account("rowan"), FOLLOW, record)
    if has_lived:
        home.memory.mkdir()
        await (await Database.open(home.database, MIGRATIONS)).close()
    found = {one.check: one for one in await examine(home.root)}
    one = found.get("direct messages")
    assert (one.level if one else None) == level
    assert level != "warn" or (one is not None and one.remedy)


async def test_doctor_needs_no_temporary_folder_and_leaves_no_session_behind(
    running_town: RunningTown, tmp_path: Path
) -> None:
    home = running_town.make_home("rowan", BUDGET_TOKENS_PER_DAY="0")
    before = set(home.root.rglob("*"))
    tempfile.tempdir = str(tmp_path / "nowhere")
    try:
        found = {one.check: one.level for one in await examine(home.root)}
    finally:
        tempfile.tempdir = None
    assert (found["disk"], found["Bluesky"], found["owner"]) == ("ok", "ok", "ok")
    assert set(home.root.rglob("*")) == before
