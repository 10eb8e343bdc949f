"""Proves that the SOUL respects its own account's settings on Bluesky: hidden posts are neither read nor answered.

In a thread about work a reply names our GitHub account once: the model is asked to, otherwise the name is appended.
"""

from typing import Any

import pytest

from adapters.atproto.records import FOLLOW
from adapters.atproto.richtext import build_facets
from adapters.atproto.types import Actor, Post
from common.clock import iso
from common.provenance import Provenance
from local_tools.bluesky_turns import add_sentence, bare_account, told_account
from modules.lives.bluesky.types import ActTerms
from modules.services.agent.tools.types import Turn
from modules.services.moderation import TRY_AGAIN_S
from modules.services.outbox.bodies import FollowBody, LikeBody, PostBody
from modules.services.outbox.types import ProposedAction
from tests.running_town import RunningSoul, RunningTown, awake, call
from tests.scenarios.test_scenario_rights import answering
from town.atproto.index import BLOCK, POST, THREADGATE
from town.atproto.service import Fault
from town.model.types import ChatRequest, Completion

DEFS = "app.bsky.actor.defs#"
READ = "app.bsky.actor.getPreferences"
MUTED = "it has a word that our account on Bluesky muted"
SECRET = "the heron at the weir counts to nine"
A_DAY_S = 86_400.0


def choose(running_town: RunningTown, *chosen: dict[str, Any]) -> None:
    """Set the preferences of Rowan's account, as its app would."""
    own = running_town.account("rowan")
    running_town.network.preferences(own)[:] = [{**one, "$type": f"{DEFS}{one['$type']}"} for one in chosen]


def muted_word(value: str, **more: str) -> dict[str, Any]:
    return {"$type": "mutedWordsPref", "items": [{"value": value, "targets": ["content", "tag"], **more}]}


def follow(running_town: RunningTown, whom: str) -> None:
    record = {"subject": running_town.account(whom), "createdAt": "2026-01-05T12:00:00.000Z"}
    running_town.network.create(running_town.account("rowan"), FOLLOW, record)


def prompts(running_town: RunningTown) -> str:
    """Return all requests to the model as one text."""
    return "\n".join(str(request) for request in running_town.mind.asked)


async def reasons(life: RunningSoul) -> list[str | None]:
    return [one.entry.reason for one in await life.decisions() if one.entry.loop == "awareness"]


async def test_a_post_with_a_muted_word_is_neither_shown_to_a_model_nor_answered_but_the_owners_is(
    running_town: RunningTown,
) -> None:
    home = running_town.make_home("rowan")
    choose(running_town, muted_word("heron"))
    running_town.network.post_as(running_town.account("kit"), f"@rowan.test {SECRET}, does it not?")
    async with awake(home) as life:
        await life.look()
        assert await reasons(life) == [MUTED]
        assert (prompts(running_town), running_town.texts("rowan")) == ("", [])
        running_town.network.post_as(running_town.account("owner"), f"@rowan.test {SECRET}, does it not?")
        await life.look()
    assert len(running_town.texts("rowan")) == 1


async def test_posts_that_it_hid_or_that_have_a_muted_word_are_left_out_of_a_thread(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    top, _ = running_town.network.post_as(running_town.account("sam"), "What does the otter count?")
    hidden, _ = running_town.network.post_as(running_town.account("wren"), SECRET, reply_to_uri=top)
    tagged, _ = running_town.network.post_as(running_town.account("wren"), "Newts, says one.", reply_to_uri=hidden)
    choose(running_town, {"$type": "hiddenPostsPref", "items": [hidden]}, muted_word("newts"))
    running_town.network.post_as(running_town.account("kit"), "@rowan.test and which one?", reply_to_uri=tagged)
    async with awake(home) as life:
        await life.look()
    told = prompts(running_town)
    assert "otter" in told
    assert "heron" not in told
    assert "Newts" not in told
    assert len(running_town.texts("rowan")) == 1


@pytest.mark.parametrize("said", [f"{SECRET}, does it not?", "thanks!"])
async def test_a_post_whose_label_is_set_to_hide_gets_neither_an_answer_nor_a_like(
    running_town: RunningTown, said: str
) -> None:
    home = running_town.make_home("rowan")
    choose(running_town, {"$type": "contentLabelPref", "label": "porn", "visibility": "hide"})
    kit = running_town.account("kit")
    labels = {"$type": "com.atproto.label.defs#selfLabels", "values": [{"val": "porn"}]}
    text = f"@rowan.test {said}"
    facets = build_facets(text, {"rowan.test": running_town.account("rowan")})
    created_at = iso(running_town.network.clock.now())
    record = {"text": text, "createdAt": created_at, "facets": facets, "labels": labels}
    post = running_town.network.create(kit, POST, record).record
    async with awake(home) as life:
        await life.look()
        await life.send()
        assert await reasons(life) == ["our account on Bluesky hides what is labelled porn"]
    assert (prompts(running_town), running_town.texts("rowan"), running_town.likers(post.uri)) == ("", [], [])


async def test_a_request_about_ones_own_data_is_answered_also_where_a_word_of_it_is_muted(
    running_town: RunningTown,
) -> None:
    home = running_town.make_home("rowan", AI_GATEWAY_FACTS="true")
    running_town.mind.answer = answering({"what do you know": "know"})
    choose(running_town, muted_word("know"))
    running_town.network.post_as(running_town.account("kit"), "@rowan.test what do you know about me?")
    async with awake(home) as life:
        await life.look()
    assert len(running_town.texts("rowan")) == 1
    assert {request.facts.purpose for request in running_town.mind.asked} == {"rights-request", "rights-answer"}


async def test_where_whoever_began_a_thread_does_not_let_it_reply_it_likes_instead_of_answering(
    running_town: RunningTown,
) -> None:
    network, sam, kit = running_town.network, running_town.account("sam"), running_town.account("kit")
    home = running_town.make_home("rowan")
    network.create(kit, FOLLOW, {"subject": sam, "createdAt": "2026-01-05T12:00:00.000Z"})
    top, _ = network.post_as(sam, "Which roof is louder?")
    gate = {"post": top, "allow": [{"$type": f"{THREADGATE}#followerRule"}], "createdAt": "2026-01-05T12:00:00.000Z"}
    network.put(sam, THREADGATE, top.rpartition("/")[2], gate)
    asked, _ = network.post_as(kit, "@rowan.test what do you say, tin or slate?", reply_to_uri=top)
    async with awake(home) as life:
        await life.look()
        await life.send()
    assert (prompts(running_town), running_town.texts("rowan")) == ("", [])
    assert running_town.likers(asked) == ["rowan.test"]


async def test_a_muted_word_may_spare_those_whom_it_follows(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    follow(running_town, "kit")
    choose(running_town, muted_word("heron", actorTarget="exclude-following"))
    for name in ("kit", "sam"):
        running_town.network.post_as(running_town.account(name), f"@rowan.test {SECRET}, does it not?")
    async with awake(home) as life:
        await life.look()
        became = {one.entry.author: one.entry.data["act"] for one in await life.decisions() if one.entry.author}
    assert became == {"kit.test": "replied", "sam.test": "passed_over"}


async def test_what_the_account_chose_is_read_once_a_day(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_SPEED="1")
    post = Post("at://did:plc:kit/app.bsky.feed.post/1", "c", Actor("did:plc:kit", "kit.test"), SECRET, "")
    async with awake(home) as life:
        moderation = life.app.services.moderation
        choose(running_town, muted_word("heron"))
        for passes, reason in ((A_DAY_S - 60, ""), (120, MUTED)):
            life.passes(passes)
            await life.app.scheduler.run_guarded("heartbeat")
            assert moderation.why_unseen(post) == reason
        choose(running_town)
        running_town.faults.arm(Fault("server_error", READ))
        life.passes(A_DAY_S)
        await moderation.refresh()
        assert moderation.why_unseen(post) == MUTED, "what was known holds while it cannot be read"
        life.passes(TRY_AGAIN_S)
        await moderation.refresh()
        assert moderation.why_unseen(post) == ""


async def test_whoever_is_muted_or_blocked_is_not_addressed_unless_the_owner_asks(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    rowan, kit, wren = (running_town.account(name) for name in ("rowan", "kit", "wren"))
    mine, _ = running_town.network.post_as(rowan, "Which roof is louder?")
    running_town.network.post_as(wren, f"{SECRET}.", reply_to_uri=mine)
    running_town.network.create(wren, BLOCK, {"subject": rowan, "createdAt": "2026-01-05T12:00:00.000Z"})
    async with awake(home) as life:
        outbox, post = life.app.services.outbox, running_town.network.post_as(kit, "Slate, as @rowan.test says?")
        await life.app.lives.bluesky.perceiver.read_first()
        running_town.network.mutes(rowan).add(kit)
        await life.look()
        assert "our account on Bluesky muted them" in await reasons(life)
        assert prompts(running_town) == ""
        like = LikeBody(uri=post[0], cid=post[1])
        refused = await outbox.submit(ProposedAction(like))
        assert (refused.advice.code, refused.intent.state) == ("silence", "blocked")
        named = await outbox.submit(ProposedAction(PostBody(text="A word on @kit.test, who likes slate.")))
        assert named.intent.state == "blocked"
        assert (await outbox.submit(ProposedAction(like, by_owner=True))).accepted
        for name in ("kit.test", "wren.test"):
            tool = life.app.lives.turn_services.turn_runner.executor.registry.get("bluesky_get_profile")
            assert tool is not None
            await tool.handler(tool.input_model(actor=name), Turn("owner", Provenance.OWNER))
        assert life.app.services.moderation.why_left_alone([wren]) == (wren, "they block our account on Bluesky")
        assert not (await outbox.submit(ProposedAction(FollowBody(did=wren)))).accepted


async def test_the_posts_of_others_wait_while_the_choices_of_the_account_could_never_be_read(
    running_town: RunningTown,
) -> None:
    home = running_town.make_home("rowan", SOUL_SPEED="1")
    choose(running_town, muted_word("newts"))
    running_town.faults.arm(Fault("server_error", READ))
    running_town.network.post_as(running_town.account("kit"), f"@rowan.test {SECRET}, does it not?")
    thanks, _ = running_town.network.post_as(running_town.account("sam"), "@rowan.test thanks!")
    async with awake(home) as life:
        await life.look()
        assert set(await reasons(life)) == {"what our account chose not to see could not be read"}
        assert (prompts(running_town), running_town.likers(thanks)) == ("", [])
        life.passes(500)
        await life.look()
        errors = [one.entry.summary for one in await life.app.services.journal.recent(50, kinds=["error"])]
    assert "The preferences of the account could not be read" in errors
    assert len(running_town.texts("rowan")) == 1


async def test_a_post_that_came_too_late_for_an_answer_gets_no_like_if_a_word_of_it_was_muted(
    running_town: RunningTown,
) -> None:
    home = running_town.make_home("rowan", SOUL_SPEED="1")
    asked, _ = running_town.network.post_as(running_town.account("kit"), f"@rowan.test {SECRET}, does it not?")
    async with awake(home) as life:
        life.app.services.control.pause("a day off")
        await life.app.scheduler.run_guarded("awareness")
        choose(running_town, muted_word("heron"))
        life.passes(25 * 3600)
        life.app.services.control.resume()
        await life.look()
        await life.send()
        (reason,) = await reasons(life)
    assert (reason or "").endswith(MUTED)
    assert running_town.likers(asked) == []


async def test_its_own_posts_may_be_answered_and_quoted_as_its_account_chose(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_SPEED="1")
    own = running_town.account("rowan")
    rules = [{"$type": "app.bsky.feed.threadgate#followingRule"}]
    no_quotes = [{"$type": "app.bsky.feed.postgate#disableRule"}]
    settings = {"threadgateAllowRules": rules, "postgateEmbeddingRules": no_quotes}
    choose(running_town, {"$type": "postInteractionSettingsPref", **settings})
    running_town.faults.arm(Fault("server_error", READ))
    async with awake(home) as life:
        publisher = life.app.lives.bluesky_state.publisher
        usual = await publisher.post("Which roof is louder, tin or slate?", ActTerms("expression"))
        await life.app.services.outbox.deliver_due()
        assert running_town.texts("rowan") == []
        life.passes(500)
        await life.app.scheduler.run_guarded("heartbeat")
        await life.send()
        life.passes(A_DAY_S)
        open_to_all = await publisher.post("And in the snow?", ActTerms("owner", by_owner=True), replies=None)
        await life.send()
    for published, allow in ((usual, rules), (open_to_all, None)):
        rkey = published.uri.rpartition("/")[2]
        gate = running_town.network.record(own, "app.bsky.feed.threadgate", rkey)
        quotes = running_town.network.record(own, "app.bsky.feed.postgate", rkey)
        assert (gate.value["allow"] if gate else None) == allow
        assert quotes is not None
        assert (quotes.value["embeddingRules"], quotes.value["post"]) == (no_quotes, published.uri)


WORK = "@rowan.test shall we open a workspace for the weir and write a plan with two tasks?"
BARE = "Two tasks suit me: the gate first, then the screen."
TOLD = "https://github.com/sh-rowan"


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ("The gate first, then the screen. Find me as `sh-rowan`.", None),
        ("The gate first, @sh-rowan does it.", "The gate first, `sh-rowan` does it."),
        (BARE, f"{BARE} {TOLD}"),
    ],
)
async def test_a_reply_without_the_account_is_sent_back_once_and_then_completed(
    running_town: RunningTown, second: str, said: str | None
) -> None:
    def answering(request: ChatRequest) -> Completion:
        tried = any(message.role == "tool" for message in request.messages)
        return call("bluesky_reply", text=second if tried else BARE)

    running_town.mind.answer = answering
    home = running_town.make_home("rowan", AGENT_GITHUB_USERNAME="sh-rowan", SOUL_PEERS="wren.test")
    running_town.network.post_as(running_town.account("wren"), WORK)
    async with awake(home) as soul:
        await soul.look()
    assert running_town.texts("rowan") == [said or second]
    assert "`sh-rowan`" in running_town.mind.asked[1].messages[-1].text


@pytest.mark.parametrize(("author", "username"), [("kit", "sh-rowan"), ("wren", "")])
async def test_who_has_no_business_with_it_is_not_told(running_town: RunningTown, author: str, username: str) -> None:
    running_town.mind.answer = lambda _: call("bluesky_reply", text=BARE)
    home = running_town.make_home("rowan", AGENT_GITHUB_USERNAME=username, SOUL_PEERS="wren.test")
    running_town.network.post_as(running_town.account(author), WORK)
    async with awake(home) as soul:
        await soul.look()
    assert running_town.texts("rowan") == [BARE]


async def test_the_mind_of_the_town_tells_it_at_once(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", AGENT_GITHUB_USERNAME="sh-rowan", SOUL_PEERS="wren.test")
    running_town.network.post_as(running_town.account("wren"), WORK)
    async with awake(home) as soul:
        await soul.look()
    (said,) = running_town.texts("rowan")
    assert said.count(TOLD) == 1


@pytest.mark.parametrize(
    ("text", "most", "whole"),
    [
        ("One. Two.", 30, "One. Two. Me."),
        ("One. Two.", 9, "One. Me."),
        ("A sentence without an end", 20, "A sentence without an end"),
    ],
)
def test_the_last_sentences_give_way_to_the_account(text: str, most: int, whole: str) -> None:
    assert add_sentence(text, "Me.", most) == whole


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("I am @tin-soul.", "I am `tin-soul`."),
        ("I am `@tin-soul`", "I am `tin-soul`"),
        ("Ask @tin-soul.example or @tin-soul-two", "Ask @tin-soul.example or @tin-soul-two"),
    ],
)
def test_nobody_of_bluesky_is_called_by_it(text: str, bare: str) -> None:
    assert bare_account(text, "tin-soul") == bare
    assert bare_account(text, "") == text
    assert told_account(text, "")
