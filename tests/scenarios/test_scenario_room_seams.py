"""Where the room meets the rest of a SOUL: its owner's settings, its memory, SELF.md, and its secrets."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from adapters.space.types import ELECTION_RULES, Identified
from modules.lives.space.policy import elect_action_owner
from modules.runtime.home import Home
from tests.running_town import PASSWORD, RunningTown
from tests.scenarios.room_society import REQUEST, Society, open_society, quiet

pytestmark = pytest.mark.slow


def _identities(society: Society, name: str) -> list[Identified]:
    return [event for event in society.host.seen if isinstance(event, Identified) and event.name == name]


async def test_who_waits_for_its_owners_yes_is_never_chosen_and_the_request_is_met_by_another(
    running_town: RunningTown,
) -> None:
    async with open_society(running_town) as society:
        async with society.soul("marvin"), society.soul("rebecca", SOUL_APPROVAL="drafts") as cautious:
            society.says(REQUEST)
            await society.until(lambda: bool(society.done()), "the issue")
            assert cautious.app.services.integrations.room.is_active
        assert society.said(by="rebecca") == []
        (issue,) = society.issues()
        assert issue.author.login == "marvin-soul"
        assert not _identities(society, "rebecca")


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
