"""A reply tells where that stands which its turn made, in the room that a post has, and announces nothing."""

from __future__ import annotations

import pytest

from adapters.atproto.types import Actor, Notification, StrongRef
from common.text.graphemes import grapheme_len
from local_tools.bluesky import completed
from modules.lives.bluesky.types import MadeThing, ThreadTurn
from tests.shipped_skills import phrase

URL = "https://github.com/acme/www-lil-intdev-tides/issues/1"
PLAN, WIDER = MadeThing("plan_made", URL), MadeThing("plan_extended", URL, ("warns of spring tides", "x" * 300))
SENTENCE = "The tides have a table now. "


def turn(*made: MadeThing, found: str = "", account: str = "") -> ThreadTurn:
    at = "2026-01-05T00:00:00Z"
    post = Notification("at://o/p/1", "c", Actor("did:plc:o", "o.test"), "mention", "Make a plan.", at, at)
    thread = ThreadTurn(post, StrongRef(post.uri, post.cid), is_owner=True, account=account)
    thread.revisions.made.extend(made)
    thread.revisions.found = found
    return thread


@pytest.mark.parametrize("text", ["Done.", SENTENCE * 12, "no end of it " * 40, f"It is here: {URL}", "Done"])
@pytest.mark.parametrize("thing", [PLAN, WIDER])
@pytest.mark.parametrize("account", ["", "rowan"])
def test_the_link_is_told_once_and_the_text_gives_way(text: str, thing: MadeThing, account: str) -> None:
    told = completed(text, turn(thing, account=account), phrase, 300)
    assert grapheme_len(told) <= 300
    assert told.count(URL) == 1
    assert ("`rowan`" in told) is bool(account)


def test_nothing_is_put_after_a_reply_that_made_nothing() -> None:
    assert completed("Good morning.", turn(), phrase, 300) == "Good morning."


def test_the_plan_that_was_found_is_told_and_what_is_longer_is_no_link_to_it() -> None:
    told = completed(f"See {URL}2.", turn(found=URL), phrase, 300)
    assert told == f"See {URL}2. The plan is here: {URL}"


def test_of_several_things_the_last_is_told_also_without_words_of_its_own() -> None:
    made = (MadeThing("workspace_made", "https://x.test/w"), PLAN)
    assert completed("", turn(*made), phrase, 300) == f"The plan is here: {URL}"
