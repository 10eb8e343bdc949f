"""Proves that talk among peers gets a cheap first look, which never passes over whoever may expect an answer."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from adapters.space.types import Presence
from common.clock import FakeClock
from modules.lives.space.classifiers import FirstLook, is_idle_talk, is_late
from modules.lives.space.snapshot import RoomContents, RoomSnapshot
from modules.lives.space.types import HistoryEntry, HostRequest
from modules.services.agent.verdicts import Verdicts
from tests.modules.lives.space.soul_in_room import QUESTION, REQUEST, TIN, Agent, Decide, Room, speaks
from tests.patience import HANG_S, until
from town.model.types import ChatRequest, Completion

NOW: datetime = FakeClock().now()
_MARK = "SPEAK or LISTEN?"


def said(name: str, content: str, *, host: bool = False) -> HistoryEntry:
    return HistoryEntry(f"m-{content}", name, content, NOW, is_host=host)


def snapshot(*batch: HistoryEntry) -> RoomSnapshot:
    return RoomSnapshot(NOW + timedelta(seconds=1), "marvin", batch=batch, history=batch)


PEERS = snapshot(said("rebecca", "Tin is loud."))
ASKED = said("host", REQUEST, host=True)
TAKEN = replace(
    snapshot(ASKED, said("rebecca", "It is mine.")),
    mode="action",
    request=HostRequest(REQUEST, ASKED.id, NOW, fulfilled=True),
)
LATE = replace(
    TAKEN,
    is_open=True,
    owner="rebecca",
    escalation="critical",
    room=RoomContents({"rebecca": Presence("rebecca", "r", "1", "", "")}),
)


@pytest.mark.parametrize(
    ("moment", "idle"),
    [
        (PEERS, True),
        (snapshot(said("rebecca", "Tin is loud."), said("host", QUESTION, host=True)), False),
        (snapshot(said("rebecca", "@marvin what do you say?")), False),
        (snapshot(said("rebecca", "I think Marvin knows.")), False),
        (replace(PEERS, is_open=True), False),
        (replace(PEERS, is_open=True, is_claimed=True, owner="rebecca"), True),
        (replace(PEERS, is_open=True, is_claimed=True, owner="marvin", is_owner=True), False),
        (TAKEN, True),
        (replace(TAKEN, is_open=True, is_claimed=True, owner="rebecca"), True),
        (replace(TAKEN, is_open=True, owner="rebecca"), False),
        (replace(TAKEN, addressed=("marvin",)), False),
        (replace(TAKEN, batch=(*TAKEN.batch, said("host", QUESTION, host=True))), False),
        (replace(PEERS, follow_up="link"), False),
        (replace(PEERS, needs_repo=True), False),
        (replace(snapshot(), opens=True), False),
        (snapshot(), False),
    ],
)
def test_only_peers_words_that_call_for_nothing_are_looked_at_so(moment: RoomSnapshot, idle: bool) -> None:  # noqa: FBT001
    assert is_idle_talk(moment) is idle


@pytest.mark.parametrize(
    ("moment", "late"),
    [
        (LATE, True),
        (replace(LATE, is_open=False), False),
        (replace(LATE, is_owner=True, owner="marvin"), False),
        (replace(LATE, escalation="info"), False),
        (replace(LATE, owner=None), False),
        (replace(LATE, addressed=("marvin",)), False),
        (replace(LATE, batch=(said("rebecca", "Marvin, do you know the clock?"),)), False),
        (replace(LATE, batch=(replace(said("host", QUESTION, host=True), intent="discussion"), ASKED)), False),
        (replace(LATE, mode="discussion"), False),
        (replace(LATE, needs_repo=True), False),
        (replace(LATE, batch=()), False),
    ],
)
def test_who_is_neither_named_nor_asked_is_silent_while_the_host_waits_for_another(
    moment: RoomSnapshot,
    late: bool,  # noqa: FBT001
) -> None:
    assert is_late(moment) is late


def looks_first(agent: Agent) -> None:
    services = agent.life.app.services
    agent.space.participation.first_look = FirstLook(Verdicts(services.gateway, services.skills, agent.clock, HANG_S))


def mind(label: str, looks: list[ChatRequest], whole: list[ChatRequest]) -> Decide:
    """Return a mind that answers a first look with `label` and speaks to the whole prompt; both lists keep requests."""

    def answer(request: ChatRequest) -> Completion:
        if _MARK in request.messages[-1].text:
            looks.append(request)
            return Completion(text=label)
        whole.append(request)
        return speaks(TIN)

    return answer


@pytest.mark.parametrize(("label", "model_calls"), [("listen.", 0), ("No idea.", 1)])
async def test_the_whole_prompt_is_sent_unless_the_first_look_surely_finds_nothing(
    room: Room, label: str, model_calls: int
) -> None:
    looks: list[ChatRequest] = []
    whole: list[ChatRequest] = []
    async with room.member("rebecca") as rebecca, room.soul("marvin", mind(label, looks, whole)) as marvin:
        looks_first(marvin)
        await rebecca.send_chat("Tin is loud.")
        await marvin.receives("Tin is loud.")
        await marvin.check()
        assert (len(looks), len(whole)) == (1, model_calls)
        assert 'rebecca: Tin is loud."' in looks[0].messages[-1].text
        if not model_calls:
            (declined,) = [one.entry for one in await marvin.entries() if one.entry.kind == "decision"]
            assert declined.reason == "a first look found nothing to add"
            sessions = marvin.life.app.services.knowledge.sessions
            kept = await sessions.rows((await sessions.open("space:agent-space")).id)
            assert "Tin is loud." in str(kept[-1].message.content), "it is remembered all the same"


@pytest.mark.parametrize(
    "words", ["Thanks all, sounds good!", "Done — issue opened: Clock: https://github.com/acme/site/issues/1"]
)
async def test_thanks_and_announcements_need_no_model_at_all(room: Room, words: str) -> None:
    looks: list[ChatRequest] = []
    whole: list[ChatRequest] = []
    async with room.member("rebecca") as rebecca, room.soul("marvin", mind("SPEAK", looks, whole)) as marvin:
        looks_first(marvin)
        await rebecca.send_chat(words)
        await marvin.receives(words)
        await marvin.check()
    assert (looks, whole) == ([], [])


async def test_who_acts_on_a_request_says_so_without_a_call_of_the_others(room: Room) -> None:
    looks: list[ChatRequest] = []
    whole: list[ChatRequest] = []
    async with room.soul("marvin", mind("SPEAK", looks, whole)) as marvin:
        looks_first(marvin)
        at_work = replace(PEERS, is_open=True, is_claimed=True, owner="rebecca")
        look = marvin.space.participation.first_look
        assert look is not None
        assert await look.reason_for_silence(at_work)
        others = replace(at_work, batch=(*at_work.batch, said("odile", "Slate is heavy.")))
        assert not await look.reason_for_silence(others)
    assert len(looks) == 1


async def test_the_host_is_never_passed_over_by_a_first_look(room: Room) -> None:
    looks: list[ChatRequest] = []
    whole: list[ChatRequest] = []
    async with room.soul("marvin", mind("LISTEN", looks, whole)) as marvin:
        looks_first(marvin)
        await room.says(QUESTION, marvin)
        await marvin.check()
    assert (len(looks), bool(whole)) == (0, True)


async def test_who_is_not_elected_is_asked_when_the_assignee_has_had_its_moment(room: Room) -> None:
    whole: list[ChatRequest] = []
    async with room.member("rebecca") as rebecca, room.soul("peterben", mind("SPEAK", [], whole)) as peterben:
        await room.says(REQUEST, peterben)
        await peterben.check()
        owner = peterben.space.participation.snapshots.build_snapshot(()).owner
        assert owner == "rebecca"
        assert whole == []
        await rebecca.send_claim("create_issue", "acme/site#Clock")
        await until(lambda: bool(peterben.client.view.claims.live()))
        peterben.later(21)
        await peterben.check()
    assert len(whole) == 1
    assert REQUEST in whole[0].messages[-1].text


async def test_no_model_is_asked_while_the_host_waits_too_long_for_another(room: Room) -> None:
    whole: list[ChatRequest] = []
    async with room.member("rebecca") as rebecca, room.soul("peterben", mind("SPEAK", [], whole)) as peterben:
        await room.says(REQUEST, peterben)
        await peterben.check()
        peterben.later(21)
        await peterben.check()
        await rebecca.send_chat("Let me see.")
        await peterben.receives("Let me see.")
        peterben.later(30)
        await peterben.check()
        assert whole == []
        await rebecca.send_chat("Peterben, which clock is it?")
        await peterben.receives("Peterben, which clock is it?")
        await peterben.check()
    assert len(whole) == 1


@pytest.mark.slow
async def test_a_first_look_costs_a_small_part_of_the_whole_prompt(room: Room) -> None:
    looks: list[ChatRequest] = []
    whole: list[ChatRequest] = []
    async with room.member("rebecca") as rebecca, room.soul("marvin", mind("SPEAK", looks, whole)) as marvin:
        looks_first(marvin)
        for number in range(12):
            words = f"Roof number {number}: " + "tin is loud and slate is heavy, whatever the weather says. " * 6
            await rebecca.send_chat(words)
            await marvin.receives(words)
        await marvin.check()
    first, second = (sum(len(message.text) for message in one[0].messages) for one in (looks, whole))
    assert first * 3 < second
    assert first < 4 * 900, "900 tokens"
