"""The owner asks a SOUL why: about a reply, a like, silences, a post of its own, and a blocked act."""

import pytest

from common.clock import SystemClock
from modules.lives.bluesky.types import ActTerms
from modules.services.explanation.drafts import in_words
from modules.services.explanation.rendering import lines, story_of, tell
from modules.services.explanation.story import Story
from modules.services.outbox.approval import held
from modules.services.outbox.bodies import DeleteBody
from soul.commands.drafts import full_lines
from tests.hasty_clock import HastyClock
from tests.owner_lines import answered
from tests.running_town import RunningSoul, RunningTown, awake, call, replying
from town.model.types import Completion

QUESTION = "Morning @rowan.test, which roof is louder in the rain?"
ANSWER = "Slate, because it remembers the rain. Which would you pick, tin or slate?"


async def story(life: RunningSoul, what: str) -> Story:
    found = await life.app.services.database.run(lambda connection: story_of(connection, what))
    assert isinstance(found, Story), found
    return found


async def test_a_reply_is_told_from_either_end_with_trigger_reason_model_and_tokens(running_town: RunningTown) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    theirs, _ = running_town.network.post_as(kit, QUESTION)
    async with awake(home) as life:
        await life.look()
        ours = next(post.uri for post in running_town.network.posts() if post.author.handle == "rowan.test")
        told, own = await story(life, theirs), await story(life, ours)
        by_link = await tell(life.app.services.database, f"https://bsky.app/profile/kit.test/post/{theirs[-13:]}")
        by_id = await story(life, own.act_id[:6])
    assert told.trigger
    assert (told.trigger.author, told.trigger.reason, told.trigger.text) == ("kit.test", "mention", QUESTION)
    (thinking,) = told.thinkings
    assert (thinking.model, thinking.provenance, thinking.rounds) == ("test-mind", "stranger", 1)
    assert thinking.input_tokens > 100
    assert thinking.output_tokens > 0
    assert [part.name for part in thinking.prompt] == [
        "skills/core",
        "SOUL.md",
        "IDENTITY.md",
        "SELF.md",
        "skill bluesky-response",
        "runtime",
        "conversation",
    ]
    assert all(part.chars > 10 for part in thinking.prompt)
    assert [decided.reason for decided in told.decisions] == ["question asked"]
    (act,) = told.acts
    assert (act.kind, act.state, act.uri, act.text) == ("reply", "done", ours, ANSWER)
    rules = {rule.rule: rule for rule in act.movements[0].rules}
    assert (rules["consent"].says, rules["consent"].reason) == ("pass", "they mentioned us")
    assert rules["points-per-hour"].value is not None
    assert rules["points-per-hour"].limit == 4000
    moves = [movement.summary.partition(":")[0] for movement in act.movements]
    assert moves == ["Queued reply", "Sending reply", "Sent reply"]
    assert (own.thinkings, own.decisions, own.acts) == (told.thinkings, told.decisions, told.acts)
    assert by_id == own
    assert by_link[0] == "Why: reply to @kit.test (done)"
    assert by_link == lines(told)


async def test_a_silence_of_the_mind_gives_the_minds_own_reason(running_town: RunningTown) -> None:
    running_town.mind.answer = lambda _: call("stay_silent", reason="they were talking to Sam")
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    theirs, _ = running_town.network.post_as(kit, "I told @rowan.test about the ladder yesterday, did I not, Sam?")
    async with awake(home) as life:
        await life.look()
        told = await story(life, theirs)
    assert [decided.reason for decided in told.decisions] == ["they were talking to Sam"]
    assert told.acts == ()
    assert told.thinkings[0].output_tokens > 0
    assert lines(told)[0] == "Why it did not answer @kit.test"


async def test_each_post_of_its_own_is_told_with_its_own_turn_only(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    texts = [f"A barometer in drawer {number} falls. Tin or slate, which would you choose?" for number in (1, 2)]
    async with awake(home) as life:
        for text in texts:
            running_town.mind.answer = replying(text)
            await life.app.lives.bluesky.expression.express()
        await life.send()
        posts = {post.text: post.uri for post in running_town.network.posts() if post.author.handle == "rowan.test"}
        stories = [await story(life, posts[text]) for text in texts]
    for told, text in zip(stories, texts, strict=True):
        assert told.cause == "expression"
        assert [act.text for act in told.acts] == [text]
        assert [thinking.purpose for thinking in told.thinkings] == ["expression"]
        assert [decided.kind for decided in told.decisions] == ["life", "decision"]
        assert text in "\n".join(lines(told))
    assert stories[0].thinkings != stories[1].thinkings


@pytest.mark.slow
async def test_a_blocked_act_tells_which_words_stood_in_its_way(running_town: RunningTown) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    async with awake(home) as life:
        running_town.network.post_as(kit, QUESTION)
        await life.look()
        again, _ = running_town.network.post_as(kit, "And what of thatch @rowan.test, is it warmer?")
        await life.look()
        told = await story(life, again)
        (blocked, *_) = (act for act in told.acts if act.kind == "reply")
        by_id = await tell(life.app.services.database, blocked.id)
    assert blocked.state == "blocked"
    assert "duplicate" in blocked.why.lower()
    assert any("BLOCKED" in one.error for thinking in told.thinkings for one in thinking.calls)
    assert by_id[0] == "Why: reply to @kit.test (not done)"
    assert blocked.why in " ".join(line.strip() for line in by_id)


async def test_of_several_posts_of_one_person_all_lead_to_the_one_answer(running_town: RunningTown) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    clock = running_town.network.clock = HastyClock()
    clock.ahead = -60  # their times must show which of them is the later one
    root, _ = running_town.network.post_as(running_town.account("rowan"), "Tin sings, slate listens.")
    first, _ = running_town.network.post_as(kit, "What does thatch do, in your opinion?", reply_to_uri=root)
    clock.ahead = 0
    second, _ = running_town.network.post_as(kit, "And what would a tent do, do you think?", reply_to_uri=root)
    async with awake(home) as life:
        await life.look()
        told = await story(life, first)
    assert told.trigger
    assert told.trigger.handled_with == second
    assert [(act.kind, act.target) for act in told.acts] == [("reply", second)]
    assert any(second in line for line in lines(told))


async def test_what_the_owner_asked_for_in_the_terminal_is_told_as_that(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with awake(home) as life:
        answers = iter([call("bluesky_post", text="Fog again, and the bell."), Completion(text="Done.")])
        running_town.mind.answer = lambda _: next(answers)
        await answered(life.app.owner, "Please post something about fog.")
        await life.send()
        (post,) = (post for post in running_town.network.posts() if post.author.handle == "rowan.test")
        told = await story(life, post.uri)
    assert told.cause.startswith("owner:")
    assert [thinking.provenance for thinking in told.thinkings] == ["owner"]
    assert "You asked for it in the terminal" in "\n".join(lines(told))


async def test_what_waits_for_the_owner_tells_which_rule_wants_the_yes_and_until_when(
    running_town: RunningTown,
) -> None:
    home, kit = running_town.make_home("rowan", SOUL_APPROVAL="strangers"), running_town.account("kit")
    theirs, _ = running_town.network.post_as(kit, QUESTION)
    async with awake(home) as life:
        await life.look()
        told = await story(life, theirs)
        words = await tell(life.app.services.database, theirs)
        waiting = await life.app.services.database.run(lambda connection: in_words(connection, held(connection)))
    (draft,) = waiting
    assert "waits because addressed to a stranger: @kit.test" in "\n".join(
        full_lines(draft, SystemClock().now(), "UTC")
    )
    whole = " ".join(" ".join(words).split())
    assert "addressed to a stranger: @kit.test (SOUL_APPROVAL=strangers)" in whole
    assert whole.count("SOUL_APPROVAL") == 1
    assert "stranger: did:" not in whole
    (act,) = told.acts
    rules = [rule.rule for rule in act.movements[0].rules if rule.says == "hold"]
    assert (act.state, rules) == ("held", ["approval"])
    assert words[0] == "Why: reply to @kit.test (waits for approval)"
    assert words[-1].startswith("The reply waits for your approval, until ")


async def test_of_what_was_taken_back_it_tells_how_it_came_and_why_it_went(running_town: RunningTown) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    running_town.mind.answer = replying(ANSWER)
    async with awake(home) as life:
        await life.app.lives.bluesky.expression.express()
        await life.send()
        (ours,) = [post.uri for post in running_town.network.posts()]
        running_town.network.post_as(kit, "Slate for me.", reply_to_uri=ours)
        life.passes(7_200)
        await life.app.scheduler.run_guarded("engagement")
        taken_back = await life.app.lives.bluesky_state.publisher.delete(DeleteBody(uri=ours), ActTerms("feed-pruning"))
        await life.send()
        told, deletion = await story(life, ours), await story(life, taken_back.intent_id)
        words = " ".join(" ".join(await tell(life.app.services.database, ours)).split())
    assert [(act.kind, act.state) for act in told.acts] == [("post", "done"), ("delete", "done")]
    assert "A thought was answered" in words
    assert "Sent deletion" in words
    assert [act.kind for act in deletion.acts] == ["delete"]
