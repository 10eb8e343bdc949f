"""Proves that a SOUL that waits for nothing sleeps, misses nothing, and is woken by what comes, by its time, or by word."""

from __future__ import annotations

import sys

import pytest

from modules.runtime.home import lock_holder
from modules.runtime.sleep_note import read_note
from tests.program import until
from tests.running_town import RunningTown, replying
from tests.soul.test_up import answers, ends, up

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="several SOULs under one supervisor need Linux"),
]
FAST = {"SOUL_SPEED": "200", "SPACE_DISCOVERY": "off"}


async def test_what_comes_for_one_that_sleeps_is_answered_once(running_town: RunningTown) -> None:
    running_town.mind.answer = replying("Slate.")
    rowan = running_town.make_home("rowan", **FAST)
    async with up(rowan) as process:
        await until(process, "rowan: asleep")
        assert lock_holder(rowan) is None
        note = read_note(rowan.memory)
        assert note
        assert note.did == running_town.account("rowan")
        before = len(running_town.texts("rowan"))
        await answers(running_town, "rowan", before + 1)
        await until(process, "rowan: asleep")
        assert len([text for text in running_town.texts("rowan") if text == "Slate."]) == 1
        assert (await ends(process))[0] == 0
