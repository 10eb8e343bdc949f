"""What is committed to in mere words is taken in all the same, and work on a peer's issue counts as work together."""

from __future__ import annotations

import json

import pytest

from adapters.space.types import IdentitySummary
from common.schemas import SPACE_DECISION_TOOL
from tests.modules.lives.space.soul_in_room import Room, an_issue, speaks, summaries
from tests.patience import until
from town.model.types import ChatRequest, Completion

TALK = "The clock in github.com/acme/site seems to stop at midnight."
PLAN = "I plan to write up tonight how the clock behaves when the date changes, with the steps that stop it."


def _found(*queued_commitments: dict[str, object]) -> Completion:
    return Completion(json.dumps(queued_commitments))


def _writes_up(confidence: str = "high", repo: str = "") -> dict[str, object]:
    body = "The clock of the page stops at midnight and shows dashes until the page is loaded again by hand."
    params = {"title": "Clock stops at midnight", "description": body, **({"repo": repo} if repo else {})}
    return {"description": "Write up the clock", "type": "create_issue", "params": params, "confidence": confidence}


async def test_a_commitment_in_mere_words_is_found_and_taken_in(room: Room) -> None:
    def mind(request: ChatRequest) -> Completion:
        if any(offer.name == SPACE_DECISION_TOOL for offer in request.offers):
            return speaks(PLAN)
        return _found(_writes_up(), _writes_up("low"), _writes_up(repo="evil/elsewhere"))

    async with room.soul("marvin", mind) as marvin:
        await room.says(TALK, marvin)
        await marvin.check()
        assert room.host.said("marvin") == [PLAN]
        (commitment,) = marvin.queued_commitments()
        assert (commitment.type, commitment.params.as_json()["target"]) == (
            "create_issue",
            "acme/site#Clock stops at midnight",
        )
        assert commitment.source_reply_text == PLAN
        assert "Commitments extracted" in await summaries(marvin)


async def test_who_has_no_github_commitments_nothing_there_by_mere_words(room: Room) -> None:
    def mind(request: ChatRequest) -> Completion:
        return speaks(PLAN) if request.offers else _found(_writes_up())

    async with room.soul("marvin", mind, social_only=True) as marvin:
        await room.says(TALK, marvin)
        await marvin.check()
        assert room.host.said("marvin") == [PLAN]
        assert marvin.queued_commitments() == []
        assert "Commitments extracted" not in await summaries(marvin)


async def test_words_without_any_commitment_cost_no_second_question(room: Room) -> None:
    words = "Dashes at midnight sound like a date that nobody parsed; does it happen in every time zone?"
    async with room.soul("marvin", lambda _: speaks(words)) as marvin:
        await room.says(TALK, marvin)
        await marvin.check()
        assert room.host.said("marvin") == [words]
        assert len(room.running_town.mind.asked) == 1


@pytest.mark.parametrize(("kind", "made", "counted"), [("issues", "create_issue", (1, 0)), ("pull", "open_pr", (0, 1))])
async def test_a_comment_on_a_peers_issue_or_pull_request_is_work_together(
    room: Room, kind: str, made: str, counted: tuple[int, int]
) -> None:
    comment = an_issue(type="comment_issue", issue_number=7)
    async with room.member("rebecca") as rebecca, room.soul("marvin", lambda _: speaks("Two logs fit.", comment)) as me:
        await rebecca.send_chat("The clock is in github.com/acme/site now.")
        await rebecca.send_action_result(
            made, "acme/site#Clock", success=True, link=f"https://github.com/acme/site/{kind}/7"
        )
        await until(lambda: any(getattr(event, "link", "") for event in me.client._member.inbox._events))
        await me.receives("The clock is in github.com/acme/site now.")
        await me.check()
        assert [one.type for one in me.queued_commitments()] == ["comment_issue"]
        known = me.space.relationships.get("rebecca")
        assert known is not None
        assert known.space_conversations == 1
        assert (known.issues_co_created, known.prs_reviewed) == counted


async def test_what_a_peer_says_that_it_is_good_at_is_remembered_once_it_talks(room: Room) -> None:
    async with room.member("rebecca") as rebecca, room.soul("marvin", lambda _: speaks("So do I.")) as me:
        await rebecca.send_identity(IdentitySummary(expertise=("clocks", "moss", "tin", "rain")))
        await rebecca.send_chat("I like the sound of rain on tin.")
        await me.receives("I like the sound of rain on tin.")
        await me.check()
        known = me.space.relationships.get("rebecca")
        assert known is not None
        assert known.complementary_strengths == ("clocks", "moss", "tin")
