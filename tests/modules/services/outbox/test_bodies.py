"""A body is read as this or an earlier version wrote it, whatever other fields it has.

The end of an act is told to the owner in a sentence.
"""

import json
import sqlite3
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.person import SOMEBODY_DID, SOMEBODY_HANDLE
from modules.services.outbox.bodies import (
    DeleteBody,
    FollowBody,
    IntentKind,
    KnownBody,
    LikeBody,
    OpaqueBody,
    PostBody,
    ReplyBody,
    RepostBody,
    SpaceChatBody,
    TheirPost,
    read_body,
)
from modules.services.outbox.github_bodies import GITHUB_KINDS, IssueBody, IssueCommentBody
from modules.services.outbox.types import Intent, IntentState
from tests.modules.services.outbox.body_values import body_of
from tests.modules.services.outbox.running_outbox import RunningOutbox, post, reply
from tests.outbox_rows import newest_intents

KINDS: tuple[IntentKind, ...] = get_args(IntentKind)
REF = {"uri": "at://did:plc:ada/app.bsky.feed.post/1", "cid": "bafy"}
OF_COMMITMENT = {"promise": "commitment-1-a", "source": "space", "host_wish": True, "host_named": False}
ON_GITHUB = {"repo": "acme/site", "body": "Do it.", "about": "acme/site: One", "text": "acme/site: One\n\nDo it."}
OF_0_1_0: list[tuple[IntentKind, dict[str, Any], type]] = [
    ("post", {"text": "Tin sings."}, PostBody),
    ("post", {"text": "Tin sings.", **OF_COMMITMENT}, PostBody),
    ("reply", {"text": "Slate.", "parent": REF, "root": REF}, ReplyBody),
    ("reply", {"text": "Done.", "parent": REF, "root": REF, "promise": "commitment-1-a"}, ReplyBody),
    ("like", REF, LikeBody),
    ("repost", REF, RepostBody),
    ("follow", {"did": "did:plc:ada"}, FollowBody),
    ("delete", {"uri": REF["uri"]}, DeleteBody),
    ("issue", {**ON_GITHUB, **OF_COMMITMENT, "title": "One", "labels": ["memo"]}, IssueBody),
    ("issue", {**ON_GITHUB, **OF_COMMITMENT, "title": "One", "labels": []}, IssueBody),
    ("issue_comment", {**ON_GITHUB, **OF_COMMITMENT, "number": 4}, IssueCommentBody),
    ("space_chat", {"text": "Done", **OF_COMMITMENT}, SpaceChatBody),
    ("space_chat", {"text": "Done", **OF_COMMITMENT, "room": "", "said": "On it", "room_id": "parlour"}, SpaceChatBody),
]
"""Bodies as they are stored, with the type that each is read as."""

_words = st.text(st.characters(codec=None), max_size=20)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | _words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_words, inner, max_size=3),
    max_leaves=5,
)
_beside = st.dictionaries(st.text(max_size=20), _json, max_size=4)


@given(st.sampled_from(OF_0_1_0), _beside, _words)
def test_a_body_comes_back_whatever_it_says_and_whatever_stands_beside_it(
    known: tuple[IntentKind, dict[str, Any], type], beside: dict[str, Any], words: str
) -> None:
    kind, fields, kept_as = known
    texts: dict[str, Any] = {name: words for name in ("text", "title", "about", "said") if name in fields}
    stored: dict[str, Any] = {**beside, **fields, **texts}
    body = read_body(kind, stored)
    assert type(body) is kept_as
    assert json.loads(json.dumps(body.stored())) == stored
    assert read_body(kind, body.stored()) == body


@given(st.sampled_from(KINDS), st.dictionaries(_words, _json, max_size=4))
def test_what_is_no_body_of_its_kind_can_be_shown_and_is_kept_as_it_is(
    kind: IntentKind, stored: dict[str, Any]
) -> None:
    body = read_body(kind, stored)
    assert isinstance(body, OpaqueBody)
    assert body.stored() == stored
    assert isinstance(body.preview, str)


@pytest.mark.parametrize("kind", GITHUB_KINDS)
def test_an_act_on_github_tells_what_it_does_by_what_github_gets(kind: IntentKind) -> None:
    body = body_of(kind)
    assert str(body.stored()["repo"]).partition("/")[0] in body.short_preview
    assert body.preview.startswith(body.short_preview)
    assert "\n" not in body.short_preview


@pytest.mark.parametrize("mark", ["host_wish", "host_named"])
def test_only_a_true_mark_says_that_the_host_asked_for_it(mark: str) -> None:
    stored = {**ON_GITHUB, "title": "One", "promise": "c", mark: "yes"}
    assert isinstance(read_body("issue", stored), OpaqueBody)


def test_who_is_forgotten_is_called_so_and_by_no_name() -> None:
    for did, handle in ((SOMEBODY_DID, ""), (SOMEBODY_DID, SOMEBODY_HANDLE), ("did:plc:kit", SOMEBODY_HANDLE)):
        assert DeleteBody(uri="at://x", did=did, handle=handle).deed == "unfollow somebody who is forgotten"


async def test_an_act_that_this_version_cannot_read_hinders_no_other(running_outbox: RunningOutbox) -> None:
    await running_outbox.outbox.submit(reply("at://did:plc:ada/app.bsky.feed.post/1", "Slate."))

    def spoil(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE intents SET kind = 'like', body = '{\"text\": 7}'")

    await running_outbox.database.run(spoil)
    await running_outbox.outbox.submit(post("Tin sings."))
    await running_outbox.drain(60)
    assert [(one.state, one.body) for one in await newest_intents(running_outbox.outbox, 2)] == [
        ("done", PostBody(text="Tin sings.")),
        ("done", OpaqueBody({"text": 7})),
    ]


FOLLOW = FollowBody(did="did:plc:kit", handle="kit.test")
COMMENT = IssueCommentBody(repo="a/b", number=7, body="It is the cache.")
POST = "at://did:plc:me/app.bsky.feed.post/3k"
LIKE = LikeBody(uri="at://did:plc:kit/app.bsky.feed.post/3k", cid="c", theirs=TheirPost(handle="kit.test", text="Tin."))


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
            "Done: comment on a/b#7 “It is the cache.” https://github.com/a/b/",
        ),
        (LIKE, "pending", "", "", "On its way: like of @kit.test"),
        (FOLLOW, "pending", "", "", "On its way: follow @kit.test"),
        (FOLLOW, "held", "", "", "Waiting for your approval (/drafts): follow @kit.test"),
        (FOLLOW, "failed", "they block you", "", "Not done: follow @kit.test. Reason: they block you. Order it again"),
        (FOLLOW, "expired", "", "", "Not done: follow @kit.test. Reason: no reason is kept."),
    ],
)
async def test_the_end_of_an_act_names_the_act_and_says_where_it_is_or_why_it_is_not_done(
    running_outbox: RunningOutbox, body: KnownBody, state: IntentState, *, error: str, uri: str, told: str
) -> None:
    act = Intent("1", body.kind, body.subject, body, "", "", "", None, "", "", state, result_uri=uri, error=error)
    (end,) = await running_outbox.outbox.ends([act])
    assert end.startswith(told)
