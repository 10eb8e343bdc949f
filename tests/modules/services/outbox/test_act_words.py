"""How an act ended, in a sentence for the owner."""

from __future__ import annotations

import pytest

from modules.services.outbox.bodies import FollowBody, KnownBody, PostBody
from modules.services.outbox.departures import end_of
from modules.services.outbox.github_bodies import IssueCommentBody
from modules.services.outbox.types import Intent, IntentState

FOLLOW = FollowBody(did="did:plc:kit", handle="kit.test")
COMMENT = IssueCommentBody(repo="a/b", number=7, body="It is the cache.")
POST = "at://did:plc:me/app.bsky.feed.post/3k"


@pytest.mark.parametrize(
    ("body", "state", "error", "uri", "told"),
    [
        (FOLLOW, "done", "", "at://x", "Done: follow @kit.test"),
        (PostBody(text="Tin sings."), "done", "", POST, "Done: post “Tin sings.” https://bsky.app/profile/did:plc:me/"),
        (
            COMMENT,
            "done",
            "",
            "https://github.com/a/b/issues/7#1",
            "Done: comment in a/b#7 https://github.com/a/b/",
        ),
        (FOLLOW, "pending", "", "", "On its way: follow @kit.test"),
        (FOLLOW, "held", "", "", "Waiting for your approval (/drafts): follow @kit.test"),
        (FOLLOW, "failed", "they block you", "", "Not done: follow @kit.test. Reason: they block you. Order it again"),
        (FOLLOW, "expired", "", "", "Not done: follow @kit.test. Reason: no reason is kept."),
    ],
)
def test_the_end_of_an_act_names_the_act_and_says_where_it_is_or_why_it_is_not_done(
    body: KnownBody, state: IntentState, error: str, uri: str, told: str
) -> None:
    act = Intent("1", body.kind, "", body, "", "", "", None, "", "", state, result_uri=uri, error=error)
    assert end_of(act).startswith(told)
