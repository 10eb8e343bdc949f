"""Proves that the doctor looks at the places far away where a SOUL keeps things, and shows no secret of theirs."""

from __future__ import annotations

from modules.runtime.home import Home
from soul.commands.doctor import examine_keeping
from soul.commands.findings import Finding
from tests.running_town import RunningTown, settings_of

NOWHERE = "127.0.0.1:1"


async def look(home: Home) -> list[Finding]:
    return await examine_keeping(settings_of(home), home)


async def test_where_all_lies_in_the_home_there_is_nothing_to_look_at(running_town: RunningTown) -> None:
    assert await look(running_town.make_home("rowan")) == []


async def test_a_store_that_answers_is_well(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", STORAGE_URL="memory://")
    assert await look(home) == [Finding("store", "ok", "it can be read")]


async def test_a_store_that_is_away_is_told_with_what_to_check(running_town: RunningTown) -> None:
    away = running_town.make_home(
        "rowan",
        STORAGE_URL=f"s3://bucket?endpoint=http://{NOWHERE}",
        STORAGE_ACCESS_KEY_ID="who",
        STORAGE_SECRET_ACCESS_KEY="a-secret-of-the-store",
    )
    (found,) = await look(away)
    assert (found.check, found.level) == ("store", "fail")
    assert "STORAGE_ACCESS_KEY_ID" in found.remedy
    assert "a-secret-of-the-store" not in found.message + found.remedy
