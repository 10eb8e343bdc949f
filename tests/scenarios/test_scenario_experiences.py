"""An experience is kept once, wherever it happened, in words of the SOUL or its owner and of nobody else."""

import pytest

from modules.services.experiences import Experience, NewExperience
from modules.services.rights.policy import PREFERENCE
from tests.owner_lines import answered
from tests.running_town import RunningSoul, RunningTown, awake, call, replying
from town.model.types import ChatRequest, Completion

SLATE = "Slate, because it remembers the rain. Which would you pick, tin or slate?"
PROMISE = "Short posts with more questions in them, from today on. Thank you for telling me so plainly."
QUESTION = "@rowan.test zephyr quibble: which roof is loudest in a storm?"
GUIDANCE = "@rowan.test Write shorter posts from now on, and ask more questions."


async def experienced(soul: RunningSoul) -> dict[str, Experience]:
    return {one.key: one for one in await soul.app.services.experiences.open()}


async def test_posts_and_the_owner_leave_experiences_and_who_denies_inference_none(running_town: RunningTown) -> None:
    town, home = running_town, running_town.make_home("rowan")
    town.mind.answer = lambda request: replying(SLATE if "zephyr" in request.messages[-1].text else PROMISE)(request)
    ada, carol, owner = town.account("ada"), town.account("carol"), town.account("owner")
    town.network.put(carol, PREFERENCE, "self", {"$type": PREFERENCE, "preferences": {"inference": {"allow": False}}})
    async with awake(home) as soul:
        asked = town.network.post_as(ada, QUESTION)[0]
        town.network.post_as(carol, "@rowan.test which roof do you like best, and why is that?")
        told = town.network.post_as(owner, GUIDANCE)[0]
        await soul.look()
        await answered(soul.app.owner, "Please look at lichens this week.")
        found = await experienced(soul)
        hers, owners = found.pop(asked), found.pop(told)
        assert (hers.type, hers.source, hers.did, hers.trust) == ("connection_formed", "bluesky", ada, "stranger")
        assert hers.about == SLATE
        assert (owners.type, owners.about, owners.trust) == ("owner_guidance", GUIDANCE, "owner")
        (said,) = found.values()
        assert (said.type, said.source, said.about) == (
            "owner_guidance",
            "terminal",
            "Please look at lichens this week.",
        )
        assert not any("zephyr" in one.about for one in (hers, owners, said))
    async with awake(home) as soul:
        await soul.look()
        assert len(await experienced(soul)) == 3


async def test_a_reply_that_waited_for_approval_counts_as_an_answer_and_as_help_once_it_left(
    running_town: RunningTown,
) -> None:
    town, home = running_town, running_town.make_home("rowan", SOUL_APPROVAL="drafts")
    town.mind.answer = lambda request: replying(SLATE if "@ada" in request.messages[-1].text else PROMISE)(request)
    ada, bea = town.account("ada"), town.account("bea")
    asked, refused = (town.network.post_as(did, QUESTION)[0] for did in (ada, bea))
    async with awake(home) as soul:
        await soul.look()
        outbox = soul.app.services.outbox
        for draft in await outbox.held():
            await (outbox.approve(draft.id) if ada in draft.target else outbox.reject(draft.id))
        await soul.app.scheduler.run_guarded("work")
        assert await experienced(soul) == {}
        await soul.send()
    async with awake(home) as soul:
        soul.passes(120)
        await soul.look()
        await soul.app.scheduler.run_guarded("work")
        known = await soul.app.services.relationships.of((ada, bea))
        assert [known[one].responded for one in (ada, bea)] == [True, False]
        found = await experienced(soul)
        assert (found[asked].did, found[asked].about) == (ada, SLATE)
        assert refused not in found


async def test_an_experience_is_of_the_kind_that_the_model_chose_and_keeps_the_reply_whole(
    running_town: RunningTown,
) -> None:
    town, said = running_town, {"wind": "challenge", "frost": "question", "hail": "a nice talk"}
    answers = {
        "wind": "Perhaps so: wind is what I miss. Rain takes my ear.",
        "frost": "I cannot tell yet.",
        "hail": "Tin, by far.",
    }

    def answer(request: ChatRequest) -> Completion:
        if "bluesky_reply" not in {offer.name for offer in request.offers}:
            return Completion(text="[]")
        word = next(one for one in said if one in request.messages[-1].text)
        return call("bluesky_reply", text=answers[word], impression=said[word])

    town.mind.answer, home = answer, town.make_home("rowan")
    posts = {
        word: town.network.post_as(town.account(name), f"@rowan.test so {word} is what you never think of, is it?")[0]
        for name, word in (("ada", "wind"), ("bea", "frost"), ("cy", "hail"))
    }
    async with awake(home) as soul:
        await soul.look()
        found = await experienced(soul)
    kinds = {word: found[uri].type for word, uri in posts.items()}
    assert kinds == {"wind": "was_challenged", "frost": "question_emerged", "hail": "connection_formed"}
    assert found[posts["wind"]].about == answers["wind"]


@pytest.mark.slow
async def test_the_same_again_is_left_out_and_the_owners_guidance_goes_last(running_town: RunningTown) -> None:
    async with awake(running_town.make_home("rowan")) as soul:
        log = soul.app.services.experiences
        guidance = [NewExperience("owner_guidance", "terminal", f"o{n}", "Be kind.", trust="owner") for n in range(3)]
        silence = [NewExperience("chose_silence", "bluesky", f"s{n}", "It was thanks.") for n in range(5)]
        assert [await log.record(one) for one in guidance] == [True, True, True]
        assert [await log.record(one) for one in silence] == [True, False, False, False, False]
        for number in range(60):
            await log.record(NewExperience("learned_something", "github", f"l{number}", f"Task {number} is merged."))
        kept = await log.open()
        assert len(kept) == 50
        assert {one.key for one in kept if one.type == "owner_guidance"} == {"o0", "o1", "o2"}
        assert kept[-1].key == "l59"
        await log.integrate([one.id for one in kept[:10]], "20260101T000000000Z")
        assert len(await log.open()) == 40


async def test_a_crowd_of_strangers_crowds_out_nothing_else(running_town: RunningTown) -> None:
    async with awake(running_town.make_home("rowan")) as soul:
        log = soul.app.services.experiences
        await log.record(NewExperience("learned_something", "github", "ours", "The roof holds."))
        for number in range(60):
            await log.record(
                NewExperience("chose_silence", "bluesky", f"s{number}", f"Reason {number}.", trust="stranger")
            )
        kept = [one.key for one in await log.open()]
        assert (len(kept), kept[0], kept[-1]) == (50, "ours", "s59")
