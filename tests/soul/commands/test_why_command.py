"""`soul why` as a person or a program calls it: while the SOUL runs and when it does not, in words and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

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


@pytest.mark.slow
async def test_what_was_never_seen_is_one_line_and_exit_code_1(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with awake(home):
        pass
    for json_or_not in ((), ("--json",)):
        asked = await soul("why", "at://did:plc:x/app.bsky.feed.post/3aaa", "--home", str(home.root), *json_or_not)
        assert asked.code == 1
        assert "was never seen" in (json.loads(asked.output)["error"] if json_or_not else asked.complaints[0])
        assert json_or_not or len(asked.output.splitlines()) == 1


@pytest.mark.slow
async def test_before_the_first_waking_it_says_so_and_makes_nothing(running_town: RunningTown, tmp_path: Path) -> None:
    home = running_town.make_home("rowan")
    asked = await soul("why", "cafe", "--home", str(home.root))
    assert asked.code == 1
    assert "There is no" in asked.complaints[0]
    assert not home.database.exists()
