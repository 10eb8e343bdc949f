"""Where the room meets the rest of a SOUL: its owner's settings, its memory, SELF.md, and its secrets."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from adapters.space.types import ELECTION_RULES, Identified, StateChanged
from modules.lives.space.policy import elect_action_owner
from modules.runtime.home import Home
from tests.running_town import PASSWORD, RunningTown
from tests.scenarios.room_society import REQUEST, Society, open_society, quiet

pytestmark = pytest.mark.slow


def _identities(society: Society, name: str) -> list[Identified]:
    return [event for event in society.host.seen if isinstance(event, Identified) and event.name == name]


async def test_who_needs_approval_in_rooms_says_so_and_the_request_is_met_by_another(
    running_town: RunningTown,
) -> None:
    async with open_society(running_town) as society:
        careful = society.soul("rebecca", SOUL_APPROVAL="drafts", SOUL_APPROVAL_ROOM="on")
        async with society.soul("marvin"), careful as cautious:
            society.says(REQUEST)
            await society.until(lambda: bool(society.done()), "the issue")
            assert cautious.app.services.integrations.room.is_active
            status = await cautious.app.status_report.gather()
            assert "SOUL_APPROVAL_ROOM" in status["room"]["silence"]
            assert any("SOUL_APPROVAL_ROOM" in line for line in cautious.lines())
            told = [one.detail for one in society.host.seen if isinstance(one, StateChanged) and one.name == "rebecca"]
            assert ["SOUL_APPROVAL_ROOM" in detail for detail in told] == [True]
        assert society.said(by="rebecca") == []
        (issue,) = society.issues()
        assert issue.author.login == "marvin-soul"
        assert not _identities(society, "rebecca")


async def test_with_drafts_it_answers_the_host_and_its_issue_waits_for_approval(running_town: RunningTown) -> None:
    async with open_society(running_town) as society, society.soul("rebecca", SOUL_APPROVAL="drafts") as cautious:
        society.says(REQUEST)
        outbox = cautious.app.services.outbox
        await society.until(lambda: bool(society.said(by="rebecca")), "the answer")
        while not (held := await outbox.held()):
            await society.passes(5)
        assert [one.kind for one in held] == ["issue"]
        assert society.issues() == []
        await outbox.approve(held[0].id)
        await society.until(lambda: bool(society.done()), "the issue")


async def test_who_is_paused_is_chosen_for_nothing_until_it_is_resumed(running_town: RunningTown) -> None:
    names = ("marvin", "rebecca", "peterben")
    chosen = elect_action_owner(names, REQUEST)
    async with open_society(running_town) as society, AsyncExitStack() as stack:
        souls = {name: await stack.enter_async_context(society.soul(name)) for name in names}
        paused, others = souls[chosen or ""], [souls[name] for name in names if name != chosen]

        def shows(capabilities: tuple[str, ...]) -> bool:
            rooms = [one.app.services.integrations.room for one in others]
            return all(
                paused.name in room.peers() and room.peers()[paused.name].capabilities == capabilities for room in rooms
            )

        await society.until(lambda: shows(("social", "github", "code", *ELECTION_RULES)), "all are in")
        paused.app.services.control.pause("a test")
        await society.until(lambda: shows(()), "the pause shows")
        society.says(REQUEST)
        await society.until(lambda: bool(society.done()), "the issue")
        assert society.said(by=paused.name) == []
        (issue,) = society.issues()
        assert issue.author.login != f"{paused.name}-soul"
        paused.app.services.control.resume()
        await society.until(lambda: shows(("social", "github", "code", *ELECTION_RULES)), "the pause is over")
        await society.passes(60)
        assert paused.app.services.integrations.room.joins == 3
        assert len(society.issues()) == 1


async def test_a_change_of_self_md_is_told_the_room_and_a_secret_in_it_is_not(running_town: RunningTown) -> None:
    async with open_society(running_town) as society, society.soul("marvin", lambda _: quiet()) as marvin:
        keeper = marvin.app.services.self_keeper
        text = marvin.home.self_md.read_text()
        await keeper.change(f"{text}\n## Current Interests\n- lichen on slate\n", reason="I looked closely", by="owner")
        await society.until(
            lambda: any("lichen on slate" in told.summary.current_interests for told in _identities(society, "marvin")),
            "the new identity",
        )
        before = len(_identities(society, "marvin"))
        _write_by_hand(marvin.home, f"{text}\n## Current Interests\n- {PASSWORD}\n")
        await marvin.app.lives.space.identity_publisher.introduce()
        assert len(_identities(society, "marvin")) == before
        assert any(line.startswith("Not introduced") for line in marvin.lines())


def _write_by_hand(home: Home, text: str) -> None:
    home.self_md.write_text(text)
