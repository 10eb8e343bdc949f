"""A number stands for the draft that stood beside it when the list was shown, however the list has moved since."""

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
from tests.running_town import RunningTown, awake


async def test_a_number_of_the_last_list_approves_what_stood_there(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home = running_town.make_home("rowan", SOUL_APPROVAL="drafts")

    async def drafts(action: DraftAction, *ids: str) -> str:
        await asyncio.to_thread(run_drafts, home.root, action, list(ids), as_json=False)
        return capsys.readouterr().out

    async with awake(home) as life:
        outbox = life.app.services.outbox
        one, two = [(await outbox.submit(ProposedAction(PostBody(text=text)))).intent for text in ("Tin.", "Slate.")]
        with pytest.raises(NotWaiting):
            await drafts(DraftAction.APPROVE, "1")
        await drafts(DraftAction.LIST)
        await outbox.reject(one.id)
        Control(home.memory).pause("a quiet week")
        assert "a quiet week" in await drafts(DraftAction.APPROVE, "2")
        approved = await outbox.get(two.id)
        assert approved is not None
        assert approved.state == "pending"
        with pytest.raises(NotWaiting):
            await drafts(DraftAction.APPROVE, "3")


def test_changes_have_colours_from_where_they_begin() -> None:
    told = ["push 1", "", "  + one file", "  diff --git a/a b/a", "  @@ -1 +1 @@", "  -old", "  +new", "   kept"]
    assert [colour for _, colour in with_colours(told)] == [None] * 4 + ["cyan", "red", "green", None]
    assert split_changes("Hello.") == ("Hello.", [])


def test_a_kind_has_its_words_wherever_a_draft_is_shown() -> None:
    now = FakeClock().now()
    draft = Draft(Intent("5eed" * 4, "issue_comment", "", OpaqueBody({}), "", "", "", "", iso(now), iso(now), "held"))
    for line in (*full_lines(draft, now, "UTC"), *list_lines([draft], now, "UTC")):
        assert "issue_comment" not in line
