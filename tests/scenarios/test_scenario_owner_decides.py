"""No word list decides what an owner's words mean: the model decides whether to act, and code checks the act."""

import json
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any

import pytest

from common.clock import SystemClock, iso
from common.errors import Transient
from modules.lives.bluesky.types import Pending
from modules.lives.messages.policy import drafts_text
from modules.services.explanation.drafts import in_words
from modules.services.outbox.bodies import PostBody
from modules.services.outbox.types import ACTIVE_STATES, ProposedAction
from modules.services.rights import store
from soul.commands.run import phone_commands
from tests.hasty_clock import HastyClock
from tests.owner_lines import answered
from tests.running_town import RunningSoul, RunningTown, awake, call
from tests.scenarios import owner_sentences as said
from tests.scenarios.test_scenario_change_of_mind import use
from tests.town_github import TownGitHub
from town.atproto.index import FOLLOW, POST
from town.model.service import Fault
from town.model.types import ChatRequest, Completion

KINDS = {
    said.FOLLOW: "follow",
    said.UNFOLLOW: "delete",
    said.POST: "post",
    said.LIMIT: "threadgate",
    said.REPOST: "repost",
    said.DELETE: "delete",
}
SENTENCES = {"refusals": said.REFUSALS, "requests": said.REQUESTS}


@dataclass(frozen=True)
class Row:
    """A waiting post of the owner, and the act that it speaks of."""

    item: Pending
    number: int
    tool: str
    who: str
    own_post: str

    @property
    def uri(self) -> str:
        return self.item.notification.uri

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments with which a model that acts calls the tool."""
        text = {"text": f"Slate number {self.number} hums when the rain is about to end."}
        of_tool: dict[str, dict[str, Any]] = {
            said.POST: text | ({"who": ["followers"]} if self.number % 2 else {}),
            said.LIMIT: {"who": ["nobody"], "post_uri": self.own_post},
            said.DELETE: {"post_uri": self.own_post},
            said.REPOST: {},
        }
        return of_tool.get(self.tool, {"did": self.who})

    @property
    def answer(self) -> Completion:
        return call("bluesky_reply", text=f"Number {self.number} is settled between us, and the tide went out.")


@dataclass
class Owner:
    """An owner who writes, and a SOUL that handles one post at a time; `asked` holds its requests for one post."""

    town: RunningTown
    soul: RunningSoul
    asked: list[ChatRequest] = field(default_factory=list)

    async def writes(self, rows: tuple[tuple[str, str], ...]) -> list[Row]:
        """Post these as the owner, let the SOUL read them, and return them unhandled; follow whom it is to unfollow."""
        network, rowan, owner = self.town.network, self.town.account("rowan"), self.town.account("owner")
        known: dict[str, tuple[int, str, str, str]] = {}
        for number, (text, tool) in enumerate(rows):
            did, own_post = self.town.account(f"w{number}"), ""
            if tool == said.UNFOLLOW:
                network.create(rowan, FOLLOW, {"subject": did, "createdAt": "2026-01-05T08:00:00Z"})
            if tool in {said.LIMIT, said.DELETE}:
                own_post, _ = network.post_as(rowan, f"Gates sing in frost number {number}.")
            uri, _ = network.post_as(owner, f"@rowan.test {text.format(who=f'@w{number}.test')} ({number})")
            known[uri] = number, tool, f"@w{number}.test", own_post
        await self.soul.app.lives.bluesky.perceiver.read()
        waiting = await self.soul.app.lives.bluesky_state.pending.waiting()
        assert {item.notification.uri for item in waiting} == set(known)
        return [Row(item, *known[item.notification.uri]) for item in waiting]

    async def handled(self, row: Row, *answers: Completion) -> None:
        """Let the SOUL handle a post; the model gives these answers, and repeats the last one.

        Requests without tools ask whether the post is about the owner's own data; the model says no.
        """
        left = list(answers)

        def answer(request: ChatRequest) -> Completion:
            if not request.offers:
                return Completion(json.dumps({"kind": "none", "language": "en"}))
            return left.pop(0) if len(left) > 1 else left[0]

        self.soul.passes(200)
        self.town.mind.asked.clear()
        self.town.mind.answer = answer
        for handler in self.soul.app.lives.bluesky.awareness.handlers:
            if item := await self.soul.app.services.work.get(handler.kind, row.uri):
                await handler.handle(item)
        self.asked = [request for request in self.town.mind.asked if request.offers]

    async def acts(self, row: Row) -> list[str]:
        """Return the kinds of acts that a post caused and that were not refused, except replies and likes."""
        found = await self.soul.app.services.outbox.by_cause(row.uri)
        active = [one.kind for one in found if one.state in ACTIVE_STATES and one.kind not in {"reply", "like"}]
        muted = await self.soul.app.services.database.run(store.muted)
        return [*active, *(["mute"] if self.town.account(row.who[1:].removesuffix(".test")) in muted else [])]


def offered(request: ChatRequest) -> set[str]:
    return {offer.name for offer in request.offers}


@pytest.mark.parametrize("kind", SENTENCES)
@pytest.mark.slow
async def test_a_mind_that_declines_is_never_pushed_and_nothing_is_done(running_town: RunningTown, kind: str) -> None:
    async with awake(running_town.make_home("rowan"), clock=HastyClock()) as soul:
        owner, pushed, done = Owner(running_town, soul), {}, {}
        for row in await owner.writes(SENTENCES[kind]):
            await owner.handled(row, call("bluesky_like"))
            if len(owner.asked) != 1 or not offered(owner.asked[0]) >= {row.tool, "bluesky_like"}:
                pushed[row.number] = len(owner.asked)
            if acts := await owner.acts(row):
                done[row.number] = acts
    assert (pushed, done) == ({}, {})


@pytest.mark.parametrize("kind", SENTENCES)
@pytest.mark.slow
async def test_a_mind_that_acts_does_it_once_also_where_a_crash_repeats_the_turn(
    running_town: RunningTown, kind: str
) -> None:
    async with awake(running_town.make_home("rowan"), clock=HastyClock()) as soul:
        owner, wrong = Owner(running_town, soul), {}
        for row in await owner.writes(SENTENCES[kind]):
            act = call(row.tool, **row.arguments)
            await owner.handled(row, act, Completion(text="…"))
            first = await owner.acts(row)
            await owner.handled(row, act, row.answer)
            if not first == await owner.acts(row) == [KINDS.get(row.tool, "mute")]:
                wrong[row.number] = (row.tool, first, await owner.acts(row))
    assert wrong == {}


class Steps:
    """A model that plays these steps in order and repeats the last; `told` holds the results of tools."""

    def __init__(self, *steps: Completion) -> None:
        self._left = list(steps)
        self.told: list[str] = []

    def respond(self, request: ChatRequest) -> Completion:
        self.told += [one.text for one in request.messages[-1:] if one.role == "tool"]
        return self._left.pop(0) if len(self._left) > 1 else self._left[0]


TRIES: tuple[tuple[str, dict[str, Any], str], ...] = (
    (said.FOLLOW, {"did": "@moss.test"}, "do not name that account"),
    (said.UNFOLLOW, {"did": "@moss.test"}, "do not name that account"),
    (said.MUTE, {"did": "@moss.test"}, "do not name that account"),
    (said.MUTE, {"did": "@owner.test"}, "do not name that account"),
    (said.FOLLOW, {"did": "@rowan.test"}, "do not name that account"),
)


@pytest.mark.parametrize("way", ["post", pytest.param("talk", marks=pytest.mark.slow)])
async def test_an_account_that_the_owner_does_not_name_is_left_as_it_is(running_town: RunningTown, way: str) -> None:
    for name in ("moss", "kit"):
        running_town.account(name)
    mind = Steps(*(call(tool, **arguments) for tool, arguments, _ in TRIES), call("bluesky_reply", text="No."))
    if way == "talk":
        mind = Steps(*(call(tool, **arguments) for tool, arguments, _ in TRIES), Completion(text="No."))
    running_town.mind.answer = mind.respond
    words = "follow them as you like, kit.test not among them, see https://moss.test/garden, and mute whoever shouts"
    async with awake(running_town.make_home("rowan"), clock=HastyClock()) as soul:
        if way == "post":
            running_town.network.post_as(running_town.account("owner"), f"@rowan.test {words}")
            await soul.look()
        else:
            await answered(soul.app.owner, words)
        muted = await soul.app.services.database.run(store.muted)
        follows = running_town.network.records(running_town.account("rowan"), FOLLOW)
    assert [want in told for (_, _, want), told in zip(TRIES, mind.told, strict=True)] == [True] * len(TRIES)
    assert (dict(muted), follows) == ({}, [])


async def test_the_owner_may_say_me(running_town: RunningTown) -> None:
    mind = Steps(call(said.FOLLOW, did="@owner.test"), Completion(text="Done."))
    running_town.mind.answer = mind.respond
    async with awake(running_town.make_home("rowan"), clock=HastyClock()) as soul:
        await answered(soul.app.owner, "please follow me")
        await soul.send()
        followed = [
            str(one.value["subject"]) for one in running_town.network.records(running_town.account("rowan"), FOLLOW)
        ]
    assert followed == [running_town.account("owner")]


async def test_a_marked_mention_is_who_it_was_when_the_owner_wrote(running_town: RunningTown) -> None:
    town = running_town
    text, kit = "@rowan.test please follow @kit.test", town.account("old-kit")
    town.account("kit")
    home, mind = town.make_home("rowan"), Steps(call(said.FOLLOW, did="@kit.test"), call("bluesky_reply", text="No."))
    marked = ((0, 11, town.account("rowan")), (26, 35, kit))
    facets = [
        {
            "index": {"byteStart": begins, "byteEnd": ends},
            "features": [{"$type": "app.bsky.richtext.facet#mention", "did": did}],
        }
        for begins, ends, did in marked
    ]
    record = {"text": text, "createdAt": iso(SystemClock().now()), "facets": facets}
    town.network.create(town.account("owner"), POST, record)
    town.mind.answer, clock = mind.respond, HastyClock()
    async with awake(home, clock=clock) as soul:
        await soul.look()
        clock.ahead += 60  # others who are named go first, each after a moment
        await soul.look()
    assert "do not name that account" in mind.told[0]
    assert town.network.records(town.account("rowan"), FOLLOW) == []


async def test_a_handle_is_whose_it_was_when_the_turn_began(running_town: RunningTown) -> None:
    town = running_town
    kit, taker = town.account("kit"), town.account("taker")
    steps = Steps(call(said.FOLLOW, did="@kit.test"), Completion(text="Done."))

    def respond(request: ChatRequest) -> Completion:
        vars(town.network)["_dids"]["kit.test"] = taker  # no account of the town gives up a handle
        return steps.respond(request)

    town.mind.answer = respond
    async with awake(town.make_home("rowan"), clock=HastyClock()) as soul:
        await answered(soul.app.owner, "please follow kit.test")
        await soul.send()
        followed = [str(one.value["subject"]) for one in town.network.records(town.account("rowan"), FOLLOW)]
    assert followed == [kit]


async def test_only_posts_of_its_own_are_taken_back(running_town: RunningTown) -> None:
    town = running_town
    theirs, _ = town.network.post_as(town.account("kit"), "Kit was here.")
    ours, _ = town.network.post_as(town.account("rowan"), "Rowan was here.")
    mind = Steps(
        call(said.DELETE, post_uri=theirs), call(said.DELETE, post_uri=ours), call("bluesky_reply", text="Gone now.")
    )
    town.mind.answer = mind.respond
    town.network.post_as(town.account("owner"), "@rowan.test take back what stands about being here")
    async with awake(town.make_home("rowan"), clock=HastyClock()) as soul:
        await soul.look()
    assert "of your own" in mind.told[0]
    assert (town.texts("kit"), town.texts("rowan")) == (["Kit was here."], ["Gone now."])


async def test_a_like_and_a_repost_are_each_taken_back(running_town: RunningTown) -> None:
    town, theirs = running_town, running_town.network.post_as(running_town.account("kit"), "Flour is dust.")[0]
    async with awake(town.make_home("rowan")) as life:
        for what in ("like", "repost"):
            assert (await use(life, "bluesky_delete_post", f"undo {theirs}", post_uri=theirs, what=what)).is_error
            await use(life, f"bluesky_{what}", f"{what} {theirs}", post_uri=theirs)
        await life.send()
        for what in ("like", "repost"):
            kind, rowan = f"app.bsky.feed.{what}", town.account("rowan")
            assert len(town.network.records(rowan, kind)) == 1
            assert not (await use(life, "bluesky_delete_post", f"undo {theirs}", post_uri=theirs, what=what)).is_error
            await life.send()
            assert not town.network.records(rowan, kind)
    assert town.texts("kit") == ["Flour is dust."]


async def test_an_issue_that_a_post_asks_for_is_opened_once_and_its_link_is_told(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    steps = (call("github_create_issue", owner="acme", repo="site", title="The clock stops"), Completion(text="…"))
    again = call("github_create_issue", owner="acme", repo="site", title="The clock stands still")
    reply = call("bluesky_reply", text="Written down, with the hour at which it stands still.")
    home = town_github.make_home()
    running_town.network.post_as(
        running_town.account("owner"), "@rowan.test please open an issue in acme/site: the clock stops"
    )
    async with awake(home, clock=HastyClock()) as soul, soul.sending():
        running_town.mind.answer = Steps(*steps).respond
        await soul.look()
        running_town.mind.answer = Steps(again, reply).respond
        soul.passes(600)
        await soul.look()
    assert town_github.titles == ["The clock stops"]
    (answer,) = running_town.texts("rowan")
    assert f"{town_github.url}/acme/site/issues/1" in answer


@pytest.mark.parametrize(
    ("approval", "given", "leaves"), [("off", False, 1), ("drafts", False, 0), ("drafts", True, 1)]
)
async def test_a_comment_that_a_post_asks_for_is_shown_first_where_drafts_are_on_and_its_words_are_not_given(
    running_town: RunningTown, town_github: TownGitHub, approval: str, *, given: bool, leaves: int
) -> None:
    home = town_github.make_home(SOUL_APPROVAL=approval)
    kit, words = town_github.network.create_account("kit"), "It rests at noon."
    issue = town_github.network.open_issue(town_github.repo, kit, title="The clock stops", body="When?")
    mind = Steps(
        call("github_comment", url="https://github.com/acme/site/issues/1", body=words),
        call("bluesky_reply", text="Noon it is, on the church tower."),
    )
    running_town.mind.answer = mind.respond
    asked = f": {words}" if given else " when it rests"
    running_town.network.post_as(
        running_town.account("owner"), f"@rowan.test add to https://github.com/acme/site/issues/1{asked}"
    )
    async with awake(home, clock=HastyClock()) as soul, soul.sending():
        await soul.look()
        held = [one.kind for one in await soul.app.services.outbox.held()]
    assert [one.body.partition("\n")[0] for one in issue.comments] == [words] * leaves
    assert ("issue_comment" in held) == (not leaves)
    if approval == "off":
        assert f"#issuecomment-{issue.comments[0].id}" in running_town.texts("rowan")[0]


KIT = "@kit.test"
ORDERS: tuple[tuple[str, str, dict[str, Any], str, str], ...] = (
    ("please follow kit.test", said.FOLLOW, {"did": KIT}, "follow", ""),
    ("please follow that gardener", said.FOLLOW, {"did": "kit.test"}, "follow", f"follow {KIT}"),
    ("let nobody reply", said.LIMIT, {"who": ["nobody"]}, "threadgate", "let nobody reply to https://bsky.app/"),
    ("good morning", "bluesky_like", {}, "like", ""),
)


@pytest.mark.parametrize("order", ORDERS, ids=itemgetter(0))
async def test_with_drafts_an_act_on_what_the_owner_did_not_name_is_shown_first_and_leaves_with_one_yes(
    running_town: RunningTown, order: tuple[str, str, dict[str, Any], str, str]
) -> None:
    words, tool, arguments, kind, shown = order
    town, moss = running_town, running_town.account("moss")
    home, rowan = town.make_home("rowan", SOUL_APPROVAL="drafts"), town.account("rowan")
    town.account("kit")
    town.network.create(rowan, FOLLOW, {"subject": moss, "createdAt": "2026-01-05T08:00:00Z"})
    async with awake(home, clock=HastyClock()) as soul:
        outbox, commands = soul.app.services.outbox, phone_commands(soul.app)
        await outbox.submit(ProposedAction(PostBody(text="Gates sing in frost."), by_owner=True))
        await soul.send()
        town.mind.answer = Steps(
            call(tool, **arguments), call("bluesky_reply", text="Seen to, as far as it goes.")
        ).respond
        asked, _ = town.network.post_as(town.account("owner"), f"@rowan.test {words}")
        await soul.look()
        (act,) = [one for one in await outbox.by_cause(asked) if one.kind == kind]
        assert (act.state == "held") == bool(shown)
        if shown:
            assert any(shown in line for line in await commands.answer("/drafts"))
            assert shown in drafts_text(await soul.app.services.database.run(partial(in_words, intents=[act])), 0)
            await commands.answer(f"/approve {act.id[:6]}")
        soul.passes(7200)
        await soul.send()
        done = await outbox.get(act.id)
    assert done
    assert done.state == "done"


async def test_in_private_a_turn_that_is_repeated_after_a_crash_posts_nothing_twice(running_town: RunningTown) -> None:
    town, home = running_town, running_town.make_home("rowan")

    def breaking(_: ChatRequest) -> Completion:
        town.mind_faults.arm(Fault("bad_gateway", times=50))
        return call(said.POST, text="Fog again, and the bell.")

    town.mind.answer = breaking
    async with awake(home, clock=HastyClock()) as soul:
        await soul.app.owner.receive("post about fog")
        with pytest.raises(Transient):
            await soul.app.owner.answer_next()
    town.mind_faults.clear()
    mind = Steps(call(said.POST, text="The bell again, in fog."), Completion(text="Done."))
    town.mind.answer = mind.respond
    async with awake(home, clock=HastyClock()) as soul:
        await soul.app.owner.answer_next()
        await soul.send()
    assert town.texts("rowan") == ["Fog again, and the bell."]
    assert "on its way" in mind.told[-1]
