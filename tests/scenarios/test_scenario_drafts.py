"""Every view of a draft shows the owner what they need to judge it: the person, their words, and our whole text."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from common.clock import iso
from common.text.graphemes import shortened
from modules.lives.bluesky.types import ActTerms
from modules.lives.growth.handle import ReflectionHandler
from modules.lives.messages.policy import drafts_text
from modules.runtime.control import Standing
from modules.services.day.gathering import DayReader
from modules.services.day.rendering import told_text
from modules.services.explanation.drafts import in_words
from modules.services.explanation.rendering import tell
from modules.services.outbox.approval import held, leaving, waiting
from modules.services.outbox.bodies import PostBody
from modules.services.outbox.senders.bluesky import record_uri
from modules.services.outbox.types import ProposedAction
from soul.commands.drafts import run_drafts
from soul.commands.options import DraftAction
from soul.commands.run import owner_commands
from soul.dashboard.facts import PageFacts
from soul.dashboard.serving import _state
from tests.hasty_clock import HastyClock
from tests.running_town import RunningTown, awake, call, prompt_of, replying, settings_of

PRUNED = "Pruned the old pear by the gate this morning, before the frost could take hold of it; the wood is saved."
BASIL = (
    "Basil is easy: pinch the top pair of leaves off as soon as there are three, keep it warm, and water it from below"
    " when the top few millimetres of its soil are dry to the touch."
)


async def test_a_draft_can_be_judged_on_every_surface(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home = running_town.make_home("rowan", SOUL_APPROVAL="drafts")
    tobias, carl = running_town.account("tobias"), running_town.account("carl")
    liked, _ = running_town.network.post_as(tobias, PRUNED)
    running_town.mind.answer = replying(BASIL)
    asked, _ = running_town.network.post_as(carl, "@rowan.test how do I keep basil alive?")
    async with awake(home) as life:
        services, typed = life.app.services, owner_commands(life.app, asyncio.Event())
        await life.look()
        subject = (await services.atproto.get_posts([liked])).or_raise()[0].ref
        await life.app.lives.bluesky_state.publisher.like(subject, ActTerms(asked, by_owner=True, own_words=True))
        drafts = await services.database.run(lambda connection: in_words(connection, held(connection)))
        like = f"like of @tobias.test: '{shortened(PRUNED, 90)}'"
        reply = f"reply to @carl.test: {BASIL}"
        assert sorted(draft.words.line for draft in drafts) == [like, reply]
        reply = f"reply to @carl.test, who wrote '@rowan.test how do I keep basil alive?': {BASIL}"
        terminal = await typed.answer("/drafts")
        await asyncio.to_thread(run_drafts, home.root, DraftAction.LIST, as_json=False)
        for text in ("\n".join(terminal), capsys.readouterr().out, drafts_text(drafts, 0)):
            assert like in text
            assert reply in text
        page = {one["what"]: one for one in PageFacts(home, settings_of(home), services.clock).now()["drafts"]}
        assert page["like of @tobias.test"]["answers"].theirs == PRUNED
        assert page["reply to @carl.test"]["text"].strip() == BASIL
        shown = await asyncio.to_thread(_state, home.root)
        assert {"what": "like of @tobias.test", "text": PRUNED} in shown["drafts"]
        attention = (await services.situation()).attention.blocked
        shown_as = {f"draft {draft.number}, {draft.words.what}" for draft in drafts}
        assert {one.what.partition(" (post_uri")[0] for one in attention} == shown_as
        day = told_text(DayReader(services.settings, home, services.clock).read())
        assert all(f"draft: {draft.number}, {draft.words.line}" in day for draft in drafts)
        numbers = " ".join(str(draft.number) for draft in drafts)
        await typed.answer(f"/approve {numbers}")
        assert await services.outbox.held() == []


async def test_the_reason_of_a_rejection_stands_above_what_is_written_next(running_town: RunningTown) -> None:
    home, why = running_town.make_home("rowan", SOUL_APPROVAL="drafts"), "never write about boats again"
    running_town.mind.answer = lambda _: call(
        "bluesky_post", text="Boats lean into the harbour wall. Which way do yours?"
    )
    async with awake(home, clock=HastyClock()) as life:
        typed, expression = owner_commands(life.app, asyncio.Event()), life.app.lives.bluesky.expression
        for rejection in ("1", f"2 {why}"):
            await expression.express()
            assert not any(why in prompt_of(one) for one in running_town.mind.asked)
            await typed.answer(f"/reject {rejection}")
            life.passes(4 * 3600)
        running_town.mind.asked.clear()
        await expression.express()
    (asked,) = running_town.mind.asked
    assert prompt_of(asked).count(why) == 1


async def test_what_is_scheduled_and_not_approved_leaves_only_once_it_is(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_APPROVAL="drafts")
    async with awake(home) as life:
        services, typed = life.app.services, owner_commands(life.app, asyncio.Event())

        at = services.clock.now() + timedelta(days=1)
        await services.outbox.submit(ProposedAction(PostBody(text="Tin."), scheduled_for=at))
        assert "if approved, leaves" in "".join(await typed.answer("/drafts"))
        (held,) = await services.outbox.held()
        now = services.clock.now()
        late = replace(held, scheduled_for=iso(now - timedelta(hours=1)))
        (text,) = await services.database.run(lambda connection: in_words(connection, [late]))
        assert text.when(now, "UTC") == "if approved, leaves in its turn"
        assert leaving([late], Standing(), "UTC", is_awake=True, now=now).startswith("It leaves in its turn")
        await typed.answer("/approve 1")
        assert "if approved" not in "".join(await typed.answer("/drafts"))
        assert len(await services.database.run(waiting)) == 1


def test_words_are_cut_between_words_and_a_link_never_is() -> None:
    assert shortened("Pruned the  old\npear", 40) == "Pruned the old pear"
    assert shortened("Pruned the old pear", 16) == "Pruned the old…"
    assert shortened("see https://bsky.app/profile/kit.test/post/1", 30) == "see…"
    assert shortened("梨の木を剪定しました", 6) == "梨の木を剪…"


async def test_the_story_of_an_edited_draft_tells_its_own_words_first_and_then_the_owner_s(
    running_town: RunningTown,
) -> None:
    home, carl = running_town.make_home("rowan", SOUL_APPROVAL="drafts"), running_town.account("carl")
    own = "Basil drinks from below. So water bulges the roots a little."
    running_town.mind.answer = replying(own)
    running_town.network.post_as(carl, "@rowan.test how do I keep basil alive?")
    async with awake(home) as life:
        services, typed = life.app.services, owner_commands(life.app, asyncio.Event())
        await life.look()
        assert "waits for approval" in (await tell(services.database, "1"))[0]
        (draft,) = await services.outbox.held()
        await typed.answer("/edit 1 Basil drinks from below.")
        assert "reworded: “Basil drinks from below.”" in "".join(await typed.answer("/today"))
        story = " ".join(" ".join(await tell(services.database, draft.id)).split())
    waits, edited = story.index(f"“{own}”"), story.index("You changed it to “Basil drinks from below.”")
    assert waits < edited
    assert "without" not in story


async def test_a_reflection_counts_as_own_posts_what_left_and_nothing_else(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_APPROVAL="drafts")
    async with awake(home) as life:
        services = life.app.services
        for text in ("Tin sings in frost.", "Slate hums before rain.", "Chalk remembers."):
            ordered = ProposedAction(PostBody(text=text), cause_id="owner:1", by_owner=True, urgent=True)
            await services.outbox.submit(ordered)
        thought = await services.outbox.submit(ProposedAction(PostBody(text="Nobody approves this one.")))
        record = record_uri(services.atproto.did, thought.intent)
        life.app.lives.bluesky.expressions.record(
            record, "Nobody approves this one.", source="values", prompt="", at=services.clock.now()
        )
        await services.outbox.reject(thought.intent.id, reason="no")
        await life.send()
        reflection = next(one for one in life.app.lives.growth.handlers if isinstance(one, ReflectionHandler))
        told = await reflection.materials.message([], is_ordered=True)
        assert all(one in told for one in ("Tin sings in frost.", "Slate hums before rain.", "Chalk remembers."))
        assert "Nobody approves" not in told
