"""A number stands for one draft for as long as it waits, on every surface."""

from __future__ import annotations

import asyncio

import pytest

from common.clock import FakeClock, iso
from common.errors import NotWaiting
from modules.runtime.control import Control
from modules.services.outbox.bodies import OpaqueBody, PostBody
from modules.services.outbox.types import Intent, ProposedAction
from soul.commands.draft_lines import Draft, full_lines, list_lines, split_changes, with_colours
from soul.commands.drafts import run_drafts
from soul.commands.options import DraftAction
from soul.commands.run import owner_commands
from soul.dashboard.facts import PageFacts
from tests.outbox_rows import newest_intents
from tests.running_town import RunningTown, awake, settings_of


async def test_a_draft_has_one_number_on_every_surface_and_no_other_draft_gets_it_later(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home = running_town.make_home("rowan", SOUL_APPROVAL="drafts")

    async def drafts(action: DraftAction, *ids: str) -> str:
        await asyncio.to_thread(run_drafts, home.root, action, list(ids), as_json=False)
        return capsys.readouterr().out

    async with awake(home) as life:
        outbox, typed = life.app.services.outbox, owner_commands(life.app, asyncio.Event())
        texts = ("Tin.", "Slate.", "Chalk.")
        one, two, three = [(await outbox.submit(ProposedAction(PostBody(text=text)))).intent for text in texts]
        await typed.answer("/reject 1")
        shell, terminal = await drafts(DraftAction.LIST), await typed.answer("/drafts")
        page = PageFacts(home, settings_of(home), life.app.services.clock).now()["drafts"]
        assert [line.split()[:2] for line in shell.splitlines()[:2]] == [["2", two.id[:6]], ["3", three.id[:6]]]
        assert terminal == shell.splitlines()[:2]
        assert [(draft["number"], draft["id"]) for draft in page] == [(2, two.id), (3, three.id)]
        Control(home.memory).pause("a quiet week")
        assert "a quiet week" in await drafts(DraftAction.APPROVE, "2")
        newest = (await outbox.submit(ProposedAction(PostBody(text="Flint.")))).intent
        await drafts(DraftAction.REJECT, "4")
        states = {intent.id: intent.state for intent in await newest_intents(outbox, 4)}
        assert [states[draft.id] for draft in (one, two, three, newest)] == ["blocked", "pending", "held", "blocked"]
        with pytest.raises(NotWaiting):
            await drafts(DraftAction.APPROVE, "1")


def test_changes_have_colours_from_where_they_begin() -> None:
    told = ["push 1", "", "  + one file", "  diff --git a/a b/a", "  @@ -1 +1 @@", "  -old", "  +new", "   kept"]
    assert [colour for _, colour in with_colours(told)] == [None] * 4 + ["cyan", "red", "green", None]
    assert split_changes("Hello.") == ("Hello.", [])


def test_a_kind_has_its_words_wherever_a_draft_is_shown() -> None:
    now = FakeClock().now()
    draft = Draft(Intent("5eed" * 4, "issue_comment", "", OpaqueBody({}), "", "", "", "", iso(now), iso(now), "held"))
    for line in (*full_lines(draft, now, "UTC"), *list_lines([draft], now, "UTC")):
        assert "issue_comment" not in line
