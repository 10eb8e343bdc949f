"""Where the room meets the rest of a SOUL: its owner's settings, its memory, SELF.md, and its secrets."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from adapters.space.types import OWNS_ADDRESSED, Identified, Joined, PresenceList, Said
from modules.lives.space.policy import elect_action_owner
from modules.runtime.home import Home
from modules.services.commitments.params import read_params
from modules.services.commitments.types import CommitmentRequest
from modules.services.memory.types import Query
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import Intent
from tests.running_town import PASSWORD, RunningTown
from tests.scenarios.room_society import BODY, REPO, REQUEST, Asked, Society, open_society, quiet, says
from tests.shipped_skills import phrase
from town.model.types import Completion

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


async def test_the_room_sees_nothing_of_a_commitment_that_waits_for_the_owners_yes(running_town: RunningTown) -> None:
    params = {"owner": "acme", "repoName": "site", "title": "Clock", "body": BODY, "target": f"{REPO}#Clock"}
    wanted = CommitmentRequest(
        "Clock", "space://conversation/1", "It is mine.", read_params("create_issue", params), "space"
    )
    async with open_society(running_town) as society, society.soul("rebecca", SOUL_APPROVAL="drafts") as rebecca:
        outbox = rebecca.app.services.outbox
        await rebecca.app.lives.queue.enqueue_commitment(wanted)
        for _ in range(2):
            (held,) = await _held(society, outbox)
            await outbox.approve(held.id)
            await society.passes(20)
        assert [one.status for one in rebecca.queued_commitments()] == ["completed"]
        seen = [type(event) for event in society.host.seen if not isinstance(event, Joined | PresenceList)]
        assert seen == [Said]
        assert len(society.done()) == 1


async def _held(society: Society, outbox: Outbox) -> list[Intent]:
    for _ in range(60):
        if held := await outbox.held():
            return held
        await society.passes(1)
    return []


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

        await society.until(lambda: shows(("social", "github", "code", OWNS_ADDRESSED)), "all are in")
        paused.app.services.control.pause("a test")
        await society.until(lambda: shows(()), "the pause shows")
        society.says(REQUEST)
        await society.until(lambda: bool(society.done()), "the issue")
        assert society.said(by=paused.name) == []
        (issue,) = society.issues()
        assert issue.author.login != f"{paused.name}-soul"
        paused.app.services.control.resume()
        await society.until(lambda: shows(("social", "github", "code", OWNS_ADDRESSED)), "the pause is over")
        await society.passes(60)
        assert paused.app.services.integrations.room.joins == 3
        assert len(society.issues()) == 1


async def test_a_kept_commitment_is_remembered_as_help(running_town: RunningTown) -> None:
    async with open_society(running_town) as society, society.soul("marvin") as marvin:
        society.says(REQUEST)
        await society.until(lambda: bool(society.done()), "the issue")
        memories = marvin.app.services.knowledge.stores.memories
        for _ in range(50):
            found = await memories.search(Query("midnight"), society.clock.now())
            if found:
                break
            await society.passes(1)
        assert any("helped_someone" in one.tags for one in found)


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


async def test_a_question_for_the_repository_is_asked_in_plain_words_where_those_of_the_model_may_not_be_said(
    running_town: RunningTown,
) -> None:
    asks: list[str] = []

    def mind(asked: Asked) -> Completion:
        if "Ask the host once" not in asked.text:
            return quiet("where would it go")
        asks.append(asked.text)
        return says("1. here\n2. there")

    async with open_society(running_town) as society, society.soul("marvin", mind):
        society.says("Please open an issue for the clock that stops at midnight.")
        await society.until(lambda: bool(society.said(by="marvin")), "the question")
        await society.passes(30)
        assert society.said(by="marvin") == [phrase("space.which_repo")]
        assert len(asks) == 1
        assert society.issues() == []


async def test_while_a_request_is_open_a_word_after_it_is_no_second_request(running_town: RunningTown) -> None:
    async with open_society(running_town) as society, society.soul("marvin", lambda _: quiet()) as marvin:
        talk = marvin.app.lives.space.participation.talk
        society.says(REQUEST)
        await society.until(lambda: talk.state.request.content == REQUEST, "the wish")
        society.says("Give me the summary of the clock issue then")
        await society.until(
            lambda: any("summary" in entry.content for entry in talk.state.host_messages if entry.intent)
        )
        assert [entry.intent for entry in talk.state.host_messages] == ["action_request", "follow_up"]
        assert talk.state.request.content == REQUEST
        await society.until(lambda: bool(society.done()), "the forced issue")
        assert len(society.issues()) == 1


def _write_by_hand(home: Home, text: str) -> None:
    home.self_md.write_text(text)
