"""`soul why` as a person or a program calls it: while the SOUL runs and when it does not, in words and as JSON."""

from __future__ import annotations

import json

import pytest

from tests.program import soul
from tests.running_town import RunningTown, awake

QUESTION = "Morning @rowan.test, which roof is louder in the rain?"


@pytest.mark.slow
async def test_it_tells_the_same_story_whether_the_soul_runs_or_not_in_words_and_as_json(
    running_town: RunningTown,
) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    theirs, _ = running_town.network.post_as(kit, QUESTION)
    link = f"https://bsky.app/profile/kit.test/post/{theirs.rpartition('/')[2]}"
    async with awake(home) as life:
        await life.look()
        running = await soul("why", link, "--home", str(home.root))
    stopped = await soul("why", theirs, "--home", str(home.root))
    assert (running.code, stopped.code) == (0, 0), running.output
    assert running.output == stopped.output
    for told in (QUESTION, "test-mind: 1 round", "Because: question asked", "Sent reply"):
        assert told in running.output
    for_programs = json.loads((await soul("why", theirs, "--home", str(home.root), "--json")).output)
    assert for_programs["title"] == running.output.splitlines()[0] == "Why it replied to @kit.test"
    assert for_programs["trigger"]["text"] == QUESTION
    assert [act["state"] for act in for_programs["acts"]] == ["done"]
