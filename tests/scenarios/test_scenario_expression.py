"""A thought of its own has a source, is checked for its wording, and must invite its readers.

A conversation that is over ends with one warm line or with a like, and nothing more is said after it.
"""

from datetime import timedelta

import pytest

from modules.lives.bluesky.expression_policy import DAILY_POST_LIMIT, invites, tone_of
from modules.services.outbox.bodies import PostBody
from modules.services.outbox.types import ProposedAction
from tests.hasty_clock import HastyClock
from tests.known_profiles import set_profiles
from tests.running_town import RunningTown, awake, call, replying
from town.atproto.service import Fault
from town.model.types import ChatRequest, Completion

HALF_AN_HOUR_S = 1800


@pytest.mark.parametrize(("limits", "languages"), [("", "en"), ("asks no questions", "en"), ("", "de,en")])
async def test_a_thought_that_invites_nobody_even_when_asked_gets_an_invitation_unless_the_owner_rules_things_out(
    running_town: RunningTown, limits: str, languages: str
) -> None:
    running_town.mind.answer = lambda _: call("bluesky_post", text="Tin sings at night.")
    home = running_town.make_home("rowan", POST_LANGUAGES=languages)
    plain = ["Moss.", "Slate hums.", "Copper is green.", "Rain falls."]
    for said in plain:
        running_town.network.post_as(running_town.account("rowan"), said)
    async with awake(home, clock=HastyClock()) as life:
        await set_profiles(life.app.services.database, life.app.services.clock, {"limits": limits}, {})
        life.passes(HALF_AN_HOUR_S)
        await life.app.lives.bluesky.expression.express()
        await life.send()
        told = [one.entry for one in await life.app.services.journal.recent(100) if one.entry.loop == "expression"]
    (text,) = [one for one in running_town.texts("rowan") if one not in plain]
    if limits or languages != "en":
        assert text == "Tin sings at night."
        return
    assert text.startswith("Tin sings at night. ")
    assert invites(text)
    (asked,) = [entry for entry in told if entry.data.get("act") == "asked_for_better"]
    assert "nothing to answer" in asked.reason


async def test_a_thought_starts_from_self_md_as_it_is_now(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_TIMEZONE="UTC")
    home.self_md.write_text("# SELF\n\n## Values\n\n- Old roofs.\n")
    running_town.mind.answer = replying("Do you prefer tin or slate?")
    async with awake(home) as life:
        await life.app.lives.bluesky.expression.schedule()
        home.self_md.write_text("# SELF\n\n## Values\n\n- New bridges.\n")
        await life.app.lives.bluesky.expression.express()
        hour = life.app.services.clock.now().hour
    told = running_town.mind.asked[0].messages[-1].text
    assert "New bridges." in told
    assert "Old roofs." not in told
    tones = life.app.services.skills.subsection("expression", "Tones", tone_of(hour)).strip()
    assert tones in told
    thin = "identity, purpose, questions, patterns, learnings, explorations, values"
    assert thin in running_town.mind.asked[0].messages[0].text


async def test_a_thought_in_the_words_of_the_prompt_is_sent_back(running_town: RunningTown) -> None:
    told = "Sound curious: wonder about one small thing."
    leak = f"{told} Which would you pick, tin or slate?"
    better = "Do you prefer tin or slate?"

    def respond(_: ChatRequest) -> Completion:
        return call("bluesky_post", text=better if len(running_town.mind.asked) > 1 else leak)

    running_town.mind.answer = respond
    async with awake(running_town.make_home("rowan")) as life:
        await life.app.lives.bluesky.expression.express()
        await life.send()
    assert running_town.texts("rowan") == [better]
    assert "words of your instructions" in running_town.mind.asked[1].messages[-1].text


async def test_a_line_of_self_is_the_souls_own_to_say(running_town: RunningTown) -> None:
    line = "The rain on the old tin roof keeps better time than I do."
    home = running_town.make_home("rowan")
    home.self_md.write_text(f"# SELF\n\n## Current Focus\n\n{line}\n")
    running_town.mind.answer = replying(f"{line} Do you prefer tin or slate?")
    async with awake(home) as life:
        await life.app.lives.bluesky.expression.express()
        await life.send()
    assert running_town.texts("rowan") == [f"{line} Do you prefer tin or slate?"]


async def test_no_thought_is_had_while_the_last_post_waits_to_leave(running_town: RunningTown) -> None:
    said = ["Do you prefer tin or slate?", "Which bridge would you cross twice?"]
    running_town.mind.answer = lambda _: call("bluesky_post", text=said[len(running_town.mind.asked) - 1])
    async with awake(running_town.make_home("rowan", SOUL_SPEED="20", SOUL_TIMEZONE="UTC")) as life:
        expression = life.app.lives.bluesky.expression
        await expression.express()
        life.passes(HALF_AN_HOUR_S)
        waiting = await expression.run_if_due()
        await life.send()
        life.passes(HALF_AN_HOUR_S)
        again = await expression.run_if_due()
        await life.send()
    assert (waiting.ran, waiting.reason) == (False, "its last post still waits to be sent")
    assert again.ran
    assert running_town.texts("rowan") == said


async def test_a_thought_that_is_put_off_is_had_afterwards(running_town: RunningTown) -> None:
    running_town.mind.answer = replying("Which bridge would you cross twice?")
    async with awake(running_town.make_home("rowan", SOUL_SPEED="20", SOUL_TIMEZONE="UTC")) as life:
        expression, clock = life.app.lives.bluesky.expression, life.app.services.clock
        life.passes(HALF_AN_HOUR_S)
        expression.put_off(clock.now() + timedelta(minutes=3))
        expression.put_off(clock.now())
        assert not (await expression.run_if_due()).ran
        life.passes(240)
        assert (await expression.run_if_due()).ran


async def test_a_post_that_waits_for_a_moment_far_ahead_keeps_no_thought_from_being_had(
    running_town: RunningTown,
) -> None:
    said = "Which bridge would you cross twice?"
    running_town.mind.answer = replying(said)
    async with awake(running_town.make_home("rowan", SOUL_SPEED="20", SOUL_TIMEZONE="UTC")) as life:
        services = life.app.services
        later = services.clock.now() + timedelta(days=30)
        body = PostBody(text="A word for next month.")
        assert (await services.outbox.submit(ProposedAction(body, by_owner=True, scheduled_for=later))).accepted
        life.passes(HALF_AN_HOUR_S)
        thought = await life.app.lives.bluesky.expression.run_if_due()
        await services.outbox.deliver_due()
    assert (thought.ran, running_town.texts("rowan")) == (True, [said])


async def test_earlier_thoughts_are_shown_where_the_feed_cannot_be_read(running_town: RunningTown) -> None:
    said = ["Do you prefer tin or slate?", "Which bridge would you cross twice?"]
    running_town.mind.answer = lambda _: call("bluesky_post", text=said[len(running_town.mind.asked) - 1])
    async with awake(running_town.make_home("rowan")) as life:
        await life.app.lives.bluesky.expression.express()
        await life.send()
        running_town.faults.arm(Fault("bad_gateway", "app.bsky.feed.getAuthorFeed", times=100))
        await life.app.lives.bluesky.expression.express()
    assert said[0] not in running_town.mind.asked[0].messages[-1].text
    assert said[0] in running_town.mind.asked[1].messages[-1].text


async def test_what_the_owner_said_of_posts_stands_in_the_prompt_and_their_number_is_a_limit(
    running_town: RunningTown,
) -> None:
    said = {"posting": "small harbours in Portugal", "limits": "ship accidents", "posts_a_day": "1"}
    running_town.mind.answer = lambda _: call("bluesky_post", text="Which harbour would you row to?")
    async with awake(running_town.make_home("rowan", SOUL_SPEED="60")) as life:
        services, expression = life.app.services, life.app.lives.bluesky.expression
        await set_profiles(services.database, services.clock, said, {})
        life.passes(HALF_AN_HOUR_S)
        assert (await expression.run_if_due()).ran
        await life.send()
        life.passes(HALF_AN_HOUR_S / 3)
        outcome = await expression.run_if_due()
    assert (outcome.ran, outcome.reason) == (False, "daily limit of 1 post reached")
    told = running_town.mind.asked[0].messages[-1].text
    wishes, bounds = (told.index(said[name]) for name in ("posting", "limits"))
    assert told.index("prompt:") < wishes < told.index("limits for you") < bounds


@pytest.mark.parametrize(("hour", "posts", "said"), [(23, 0, ""), (12, DAILY_POST_LIMIT, ""), (12, 2, "2")])
async def test_what_waits_for_the_morning_is_planned_once(
    running_town: RunningTown, hour: int, posts: int, said: str
) -> None:
    async with awake(running_town.make_home("rowan", SOUL_SPEED="1", SOUL_TIMEZONE="UTC")) as life:
        services, expression = life.app.services, life.app.lives.bluesky.expression
        await set_profiles(services.database, services.clock, {"posts_a_day": said}, {})
        now = services.clock.now()
        then = now.replace(hour=hour, minute=0) + timedelta(days=1)
        life.passes((then - now).total_seconds())
        for number in range(posts):
            body = PostBody(text=f"{number} roofs of tin.")
            assert (await services.outbox.submit(ProposedAction(body, by_owner=True))).accepted
        assert not (await expression.run_if_due()).ran
        planned = expression.next_at
        for _ in range(12):
            life.passes(HALF_AN_HOUR_S)
            assert str(planned)[:16] in (await expression.run_if_due()).reason
        assert planned is not None
        assert (planned.date(), planned.hour in range(7, 10)) == ((then + timedelta(days=1)).date(), True)
    assert not running_town.mind.asked


async def test_a_thought_that_would_be_due_at_night_is_told_for_the_morning(running_town: RunningTown) -> None:
    async with awake(running_town.make_home("rowan", SOUL_SPEED="1", SOUL_TIMEZONE="UTC")) as life:
        now = life.app.services.clock.now()
        life.passes((now.replace(hour=23, minute=0) + timedelta(days=1) - now).total_seconds())
        assert (await life.app.lives.bluesky.expression.schedule()).hour in range(7, 10)


async def test_a_soul_that_wakes_for_its_thought_has_it_and_one_that_is_long_over_comes_anew(
    running_town: RunningTown,
) -> None:
    home, clock = running_town.make_home("rowan", SOUL_SPEED="1", SOUL_TIMEZONE="UTC"), HastyClock()
    async with awake(home, clock=clock) as life:
        planned = life.app.lives.bluesky.expression.next_at
    assert planned
    for begins in (planned + timedelta(seconds=1), planned + timedelta(hours=1)):
        clock.ahead += (begins - clock.now()).total_seconds()
        async with awake(home, clock=clock) as life:
            moment = life.app.lives.bluesky.expression.next_at
        assert moment
        assert (moment == planned) is (begins - planned < timedelta(hours=1))
        assert moment == planned or moment > clock.now()


WARM = "Good bench talk; the river and I will remember it."


@pytest.mark.parametrize("ending", ["message", pytest.param("like", marks=pytest.mark.slow)])
async def test_a_conversation_is_left_with_one_warm_line_or_with_a_like_and_stays_so(
    running_town: RunningTown, ending: str
) -> None:
    def leaving(request: ChatRequest) -> Completion:
        if any(offer.name == "graceful_exit" for offer in request.offers):
            words = {"closing_message": WARM} if ending == "message" else {}
            return call("graceful_exit", closing_type=ending, reason="all is said", **words)
        return Completion("[]")

    town, kit = running_town, running_town.account("kit")
    town.mind.answer = leaving
    home = town.make_home("rowan")
    last, _ = town.network.post_as(kit, "@rowan.test so that is how a dry stone wall drains. What a good evening.")
    async with awake(home, clock=HastyClock()) as soul:
        await soul.look()
        asked = len(town.mind.asked)
        above = next((post.uri for post in town.network.posts() if post.text == WARM), last)
        for words in ("Bye!", "Thanks again, see you soon"):
            soul.passes(90)
            above, _ = town.network.post_as(kit, words, reply_to_uri=above)
            await soul.look()
        decisions = [stored.entry for stored in await soul.decisions()]
    assert town.texts("rowan") == ([WARM] if ending == "message" else [])
    assert town.likers(last) == ([] if ending == "message" else ["rowan.test"])
    assert len(town.mind.asked) == asked, "no model is asked about what only closes"
    assert all(entry.reason for entry in decisions)
    assert decisions[0].reason == "all is said"


async def test_a_thought_may_end_in_silence_and_the_next_one_starts_elsewhere_at_its_time(
    running_town: RunningTown,
) -> None:
    why = "My owner wants at most two posts a day, and there were two."
    running_town.mind.answer = lambda _: call("stay_silent", reason=why)
    home = running_town.make_home("rowan")
    async with awake(home, clock=HastyClock()) as life:
        expression, clock = life.app.lives.bluesky.expression, life.app.services.clock
        assert (await expression.express()).ran
        (ended,) = [
            one.entry.data
            for one in await life.app.services.journal.recent(50)
            if one.entry.loop == "expression" and one.entry.kind == "decision"
        ]
        assert ended["act"] == "silent"
        assert len(running_town.mind.asked) == 1
        assert not await life.app.services.outbox.of_kind("post", 9)
        assert expression.next_at
        assert expression.next_at - clock.now() >= timedelta(milliseconds=expression.pace.expression_min_ms)
        told = [one.entry for one in await life.app.services.journal.recent(9) if one.entry.data.get("act") == "silent"]
        assert [one.reason.partition(";")[0] for one in told] == [why]
        life.passes(HALF_AN_HOUR_S)
        await expression.express()
        begins = [asked.messages[-1].text.partition("source: ")[2].split()[0] for asked in running_town.mind.asked]
        assert len(set(begins)) == 2
