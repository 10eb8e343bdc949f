"""Admission: what is accepted, what is refused and why; nothing slips in between the check and the new row.

An action that would reveal a secret is refused, and no copy of it is kept. An act for a workspace is done once under
its key, however many acts came after it.
"""

import asyncio
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from adapters.github.types import Repo
from common.clock import iso, parse_iso
from common.errors import PolicyBlocked
from common.redact import LEAK, Redactor
from common.wording import deed
from modules.runtime.journal.types import StoredEntry
from modules.services.outbox.bodies import DeleteBody, FollowBody, IntentKind, OpaqueBody
from modules.services.outbox.gates import SecretScan
from modules.services.outbox.github_bodies import ContentsBody, MergeBody, PullRequestBody
from modules.services.outbox.github_writer import GitHubWriter, act_key
from modules.services.outbox.store import FEED_KEYS_MAX
from modules.services.outbox.types import ProposedAction, Verdict
from tests.journals import told_of
from tests.modules.services.outbox.body_values import body_of, reply_body
from tests.modules.services.outbox.running_outbox import DID, RunningOutbox, like, post, reply
from tests.outbox_rows import counted, newest_intents

A, B = "at://did:plc:ada/app.bsky.feed.post/1", "at://did:plc:ada/app.bsky.feed.post/2"

SITE = Repo("owner", "site")


async def test_an_accepted_draft_is_a_row_before_anything_else(running_outbox: RunningOutbox) -> None:
    submitted = await running_outbox.outbox.submit(reply(A, "hello"))
    assert submitted.accepted
    assert submitted.intent.state == "pending"
    assert submitted.intent.target == A
    assert submitted.intent.created_at == iso(running_outbox.clock.now())
    assert running_outbox.service.writes == []
    await running_outbox.restart()
    assert await running_outbox.outbox.get(submitted.intent.id) == submitted.intent


@pytest.mark.parametrize(
    ("kind", "first"), [("reply", "pending"), ("reply", "done"), ("follow", "done"), ("delete", "pending")]
)
async def test_the_same_is_never_done_twice_to_one_target(
    running_outbox: RunningOutbox, kind: IntentKind, first: str
) -> None:
    draft = ProposedAction(body_of(kind, A))
    accepted = await running_outbox.outbox.submit(draft)
    if first == "done":
        await running_outbox.deliver(accepted.intent.id)
    await running_outbox.restart()
    refused = await running_outbox.outbox.submit(draft)
    assert not refused.accepted
    assert refused.reason == f"This {deed(kind)} is {'done' if first == 'done' else 'on its way'} already: {A}"
    assert (await running_outbox.outbox.submit(ProposedAction(body_of(kind, B, text="Tin sings.")))).accepted


async def test_a_refusal_is_a_row_and_a_line_with_its_reason(running_outbox: RunningOutbox) -> None:
    await running_outbox.outbox.submit(reply(A, "hello"))
    refused = await running_outbox.outbox.submit(reply(A, "other words"))
    stored = await running_outbox.outbox.get(refused.intent.id)
    assert stored is not None
    assert (stored.state, stored.error) == ("blocked", refused.reason)
    assert f"Blocked reply: other words | {refused.reason}" in running_outbox.messages()


async def test_the_same_words_are_said_once_while_they_wait_and_once_they_are_in_the_feed(
    running_outbox: RunningOutbox,
) -> None:
    async def again(text: str) -> str:
        return (await running_outbox.outbox.submit(post(text))).reason

    answer = await running_outbox.outbox.submit(reply(A, "Look at https://x.example/1"))
    await running_outbox.clock.advance(42)
    assert (
        await again("  LOOK at https://x.example/1")
        == "Near-duplicate of post sent 42s ago: only other words may leave"
    )
    await running_outbox.clock.advance(600)
    assert await again("look at https://x.example/1") == "Near-duplicate of a reply that waits to be sent"
    await running_outbox.deliver(answer.intent.id)
    await running_outbox.clock.advance(86_400)
    await running_outbox.restart()
    assert await again("Look at https://x.example/1") == "Duplicate of post already in feed: only other words may leave"


async def test_what_is_said_only_once_is_a_duplicate_in_any_words(running_outbox: RunningOutbox) -> None:
    accepted = await running_outbox.outbox.submit(replace(post("hello, it is me"), once="hello"))
    assert not (await running_outbox.outbox.submit(replace(post("good morning, me again"), once="hello"))).accepted
    await running_outbox.deliver(accepted.intent.id)
    await running_outbox.clock.advance(86_400)
    await running_outbox.restart()
    refused = await running_outbox.outbox.submit(replace(post("good evening"), once="hello"))
    assert refused.reason == "Duplicate of post already in feed: only other words may leave"
    assert (await running_outbox.outbox.submit(replace(post("good evening"), once="good night"))).accepted


async def test_the_words_of_a_post_that_was_taken_back_may_be_said_again(running_outbox: RunningOutbox) -> None:
    drafts = [post("tin sings"), post("slate hums"), replace(post("hello, it is me"), once="hello")]
    for draft in drafts:
        made = await running_outbox.deliver((await running_outbox.outbox.submit(draft)).intent.id)
        await running_outbox.outbox.warm_up_from_feed([(made.result_uri or "", draft.text)])
        await running_outbox.clock.advance(3600)
        if draft is not drafts[1]:
            await running_outbox.outbox.submit(ProposedAction(DeleteBody(uri=made.result_uri or "")))
            await running_outbox.drain(60)
    again = [(await running_outbox.outbox.submit(draft)).reason for draft in drafts]
    assert again == ["", *["Duplicate of post already in feed: only other words may leave"] * 2]


async def test_texts_that_differ_in_link_or_image_are_different(running_outbox: RunningOutbox) -> None:
    drafts = [
        post("done: https://x.example/1"),
        post("done: https://x.example/2"),
        post("", "img-1"),
        post("", "img-2"),
    ]
    assert [(await running_outbox.outbox.submit(draft)).accepted for draft in drafts] == [True] * 4
    assert not (await running_outbox.outbox.submit(post("", "img-1"))).accepted


async def test_a_feed_warms_the_memory_with_our_own_posts_only(running_outbox: RunningOutbox) -> None:
    own, others = f"at://{DID}/app.bsky.feed.post/9", "at://did:plc:ada/app.bsky.feed.post/9"
    items = [(own, "Old Words"), (others, "foreign words"), (own, "   ")]
    assert await running_outbox.outbox.warm_up_from_feed(items) == 1
    assert await running_outbox.outbox.warm_up_from_feed(items) == 0
    assert (
        await running_outbox.outbox.submit(post("old words"))
    ).reason == "Duplicate of post already in feed: only other words may leave"
    assert (await running_outbox.outbox.submit(post("foreign words"))).accepted


async def test_the_feed_set_forgets_the_oldest_above_its_cap(running_outbox: RunningOutbox) -> None:
    items = [(f"at://{DID}/app.bsky.feed.post/{number}", f"words {number}") for number in range(FEED_KEYS_MAX + 2)]
    await running_outbox.outbox.warm_up_from_feed(items)
    newest_first = [
        (await running_outbox.outbox.submit(post(f"words {number}"))).accepted for number in (0, FEED_KEYS_MAX - 1)
    ]
    oldest = [
        (await running_outbox.outbox.submit(post(f"words {number}"))).accepted
        for number in (FEED_KEYS_MAX, FEED_KEYS_MAX + 1)
    ]
    assert (newest_first, oldest) == ([False, False], [True, True])


async def test_what_failed_or_expired_frees_its_words_and_its_target(running_outbox: RunningOutbox) -> None:
    running_outbox.service.faults.append("nonsense")
    failed = await running_outbox.outbox.submit(reply(A, "first try"))
    assert (await running_outbox.deliver(failed.intent.id)).state == "failed"
    again = await running_outbox.outbox.submit(reply(A, "first try"))
    assert again.accepted
    await running_outbox.clock.advance(6 * 3600)
    assert (await running_outbox.deliver(again.intent.id)).state == "expired"
    assert (await running_outbox.outbox.submit(reply(A, "first try"))).accepted


async def test_parallel_submissions_of_one_act_let_exactly_one_through(running_outbox: RunningOutbox) -> None:
    replies = await asyncio.gather(*(running_outbox.outbox.submit(reply(A, f"words {number}")) for number in range(10)))
    posts = await asyncio.gather(*(running_outbox.outbox.submit(post("the same")) for _ in range(10)))
    assert [sum(one.accepted for one in some) for some in (replies, posts)] == [1, 1]
    assert await counted(running_outbox.outbox) == {"pending": 2, "blocked": 18}


async def test_intents_of_one_moment_get_different_keys_in_order(running_outbox: RunningOutbox) -> None:
    intents = [(await running_outbox.outbox.submit(like(f"at://x/{number}"))).intent for number in range(20)]
    assert [one.rkey for one in intents] == sorted({one.rkey for one in intents})
    assert len({one.created_at for one in intents}) == 20
    running_outbox.clock.jump(-1)
    await running_outbox.clock.advance(1)
    late = (await running_outbox.outbox.submit(like("at://x/late"))).intent
    assert late.rkey not in {one.rkey for one in intents}
    assert abs((parse_iso(late.created_at) - running_outbox.clock.now()).total_seconds()) < 0.1


async def test_rules_say_no_with_their_own_words_and_an_exception_of_policy_is_a_no(
    running_outbox: RunningOutbox,
) -> None:
    def no_strangers(_: sqlite3.Connection, draft: ProposedAction, __: datetime) -> list[Verdict]:
        return [Verdict("consent", "block", "a stranger")] if draft.target == A else []

    def no_shouting(_: sqlite3.Connection, draft: ProposedAction, __: datetime) -> list[Verdict]:
        if draft.text.isupper():
            raise PolicyBlocked("no shouting")
        return []

    running_outbox.rules = (no_strangers, no_shouting)
    await running_outbox.restart()
    outcomes = [await running_outbox.outbox.submit(draft) for draft in (reply(A, "hi"), post("LOUD"), post("fine"))]
    assert [(one.accepted, one.reason) for one in outcomes] == [
        (False, "a stranger"),
        (False, "no shouting"),
        (True, ""),
    ]


async def test_intents_are_found_by_cause_target_and_age(running_outbox: RunningOutbox) -> None:
    first = (await running_outbox.outbox.submit(reply(A, "one"))).intent
    await running_outbox.clock.advance(5)
    second = (await running_outbox.outbox.submit(like(A))).intent
    third = (await running_outbox.outbox.submit(like(B))).intent
    assert await running_outbox.outbox.by_cause(A) == [second, first]
    assert await running_outbox.outbox.by_target("like", B) == [third]
    assert await newest_intents(running_outbox.outbox, 2) == [third, second]
    assert await running_outbox.outbox.get("nobody") is None


async def test_an_act_is_found_by_its_place_however_many_came_after_it(running_outbox: RunningOutbox) -> None:
    outbox, talk = running_outbox.outbox, {"conversation_id": "talk-7"}
    answer = (await outbox.submit(ProposedAction(reply_body("Slate.", B, root=A), cause_id=B))).intent
    comment = (await outbox.submit(ProposedAction(body_of("issue_comment", repo="Ada/Garden", number=7)))).intent
    opened = (await outbox.submit(ProposedAction(body_of("issue", repo="Ada/Garden")))).intent
    message = (await outbox.submit(ProposedAction(body_of("direct_message", **talk)))).intent
    await GitHubWriter(outbox, timedelta(hours=1)).open_issue(
        SITE, "health:owner/site#3", "What is missing", "The tides."
    )
    began = running_outbox.clock.now()
    await running_outbox.clock.advance(60)
    for number in range(201):
        await outbox.submit(ProposedAction(body_of("issue_comment", repo="ada/garden", number=8), f"part {number}"))
    await running_outbox.restart()
    outbox = running_outbox.outbox
    assert await outbox.at_place(["reply"], A) == [answer]
    assert await outbox.at_place(["reply"], B) == []
    assert await outbox.at_place(["issue_comment", "review"], "ada/garden#7") == [comment]
    assert await outbox.at_place(["issue"], "ada/garden") == [opened]
    assert await outbox.at_place(["direct_message"], "talk-7") == [message]
    assert await outbox.at_place(["direct_message"], "talk-7", since=iso(running_outbox.clock.now())) == []
    assert await outbox.waits("issue", "health:owner/site#")
    assert not await outbox.waits("issue", "health:owner/sit#")
    assert not await outbox.waits("issue_update", "health:owner/site#")
    later = running_outbox.clock.now() - timedelta(seconds=30)
    assert (len(await outbox.since(["issue_comment"], began)), len(await outbox.since(["issue_comment"], later))) == (
        202,
        201,
    )


async def test_the_last_post_counts_from_acceptance_until_it_left(running_outbox: RunningOutbox) -> None:
    assert await running_outbox.outbox.last_done_or_accepted("post") is None
    accepted = await running_outbox.outbox.submit(post("one"))
    born = running_outbox.clock.now()
    assert await running_outbox.outbox.last_done_or_accepted("post") == born
    await running_outbox.clock.advance(100)
    await running_outbox.deliver(accepted.intent.id)
    assert await running_outbox.outbox.last_done_or_accepted("post") == running_outbox.clock.now()
    assert not (await running_outbox.outbox.submit(post("one"))).accepted
    assert await running_outbox.outbox.last_done_or_accepted("post") == running_outbox.clock.now()


async def test_a_submission_wakes_who_waits_for_work(running_outbox: RunningOutbox) -> None:
    waiting = asyncio.create_task(running_outbox.outbox.wait_for_work(1000))
    await asyncio.sleep(0)
    await running_outbox.outbox.submit(post("wake up"))
    assert await waiting is True
    waiting = asyncio.create_task(running_outbox.outbox.wait_for_work(30))
    await running_outbox.clock.advance(30)
    assert await waiting is False


@pytest.mark.parametrize(("by_owner", "closes"), [(False, False), (True, True)])
async def test_words_that_close_an_issue_reach_github_only_where_the_owner_asked(
    running_outbox: RunningOutbox, *, by_owner: bool, closes: bool
) -> None:
    pull = PullRequestBody(repo="ada/site", title="Fixes #7", body="Closes ada/site#7", head="one", base="main")
    merge = MergeBody(repo="ada/site", number=9, message="Resolves https://github.com/ada/site/issues/7")
    file = ContentsBody(repo="ada/site", path="a.md", content="Fixes #7", message="Fixes #7")
    acts = [ProposedAction(pull), ProposedAction(merge), ProposedAction(file)]
    for act in acts:
        kept = (await running_outbox.outbox.submit(replace(act, by_owner=by_owner))).intent.body
        assert (kept.as_json == act.body.as_json) is closes
        assert not isinstance(kept, ContentsBody) or kept.content == "Fixes #7"


# NOTE(self): this journal does not know the secret, so only admission keeps it out.
SECRET = "tell-nobody-77"
PLACE = "at://did:plc:ada/app.bsky.feed.post/1"
WORDS = "My diary opens with"


def chatty(_: sqlite3.Connection, draft: ProposedAction, __: datetime) -> Sequence[Verdict]:
    return [Verdict("chatty", "block", f"I read {draft.text} for {draft.target}", value=draft.text)]


def careful_about(_: sqlite3.Connection, draft: ProposedAction, __: datetime) -> Sequence[Verdict]:
    return [Verdict("careful", "hold", f"I read {draft.text}")]


def on_disk(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(path.parent.glob(f"{path.name}*")))


async def refused(running_outbox: RunningOutbox, draft: ProposedAction) -> StoredEntry:
    running_outbox.rules = (chatty, careful_about, SecretScan(Redactor([SECRET])))
    await running_outbox.restart()
    submitted = await running_outbox.outbox.submit(draft)
    assert (submitted.accepted, submitted.reason) == (False, LEAK)
    stored = await running_outbox.outbox.get(submitted.intent.id)
    assert stored == submitted.intent
    assert (stored.state, stored.error, stored.cause_id) == ("blocked", LEAK, draft.cause_id)
    assert (stored.body, stored.target, stored.body_hash, stored.dedup_key) == (OpaqueBody(), "", "", "")
    (entry,) = await told_of(running_outbox.journal, stored.id)
    return entry


@pytest.mark.parametrize(
    "draft",
    [
        ProposedAction(reply_body(f"{WORDS} {SECRET}", PLACE), cause_id=PLACE),
        ProposedAction(body_of("post", text=WORDS, images=[{"alt": SECRET}]), cause_id="expression"),
        ProposedAction(FollowBody(did=f"did:web:{SECRET}.example"), cause_id=PLACE, hold="a stranger"),
    ],
)
async def test_no_word_of_a_draft_with_a_secret_reaches_the_disk(
    running_outbox: RunningOutbox, draft: ProposedAction
) -> None:
    entry = await refused(running_outbox, draft)
    for kept in (SECRET, WORDS):
        assert kept.encode() not in on_disk(running_outbox.path)
        assert kept not in str(entry)
    assert b"expression" in on_disk(running_outbox.path) or PLACE.encode() in on_disk(running_outbox.path)
    assert [rule["rule"] for rule in entry.entry.data["rules"]] == ["secrets"]


async def test_the_owner_is_told_of_it_by_an_error_line_with_the_reason_alone(running_outbox: RunningOutbox) -> None:
    await refused(running_outbox, reply(PLACE, f"{WORDS} {SECRET}"))
    assert running_outbox.console.lines == [("error", "Blocked reply: its words were not kept", LEAK)]


async def test_a_withheld_act_takes_no_place_and_no_words_from_a_later_one(running_outbox: RunningOutbox) -> None:
    await refused(running_outbox, reply(PLACE, f"{WORDS} {SECRET}"))
    running_outbox.rules = ()
    await running_outbox.restart()
    assert (await running_outbox.outbox.submit(reply(PLACE, WORDS))).accepted


KEY = act_key(SITE, 7, "resting")
HOUR = timedelta(hours=1)


async def test_an_act_is_proposed_once_and_again_only_a_while_after_it_was_refused(
    running_outbox: RunningOutbox,
) -> None:
    shut = [True]

    def rule(_: sqlite3.Connection, __: ProposedAction, ___: datetime) -> Sequence[Verdict]:
        return [Verdict("full", "block", "too much")] if shut[0] else []

    running_outbox.rules = (rule,)
    await running_outbox.restart()

    async def close() -> str:
        return (await GitHubWriter(running_outbox.outbox, HOUR).set_state(SITE, 7, KEY, "closed")).code

    assert [await close(), await close()] == ["refused", "left_alone"]
    shut[0] = False
    await running_outbox.clock.advance(HOUR.total_seconds() - 1)
    assert await close() == "left_alone"
    await running_outbox.clock.advance(1)
    assert [await close(), await close()] == ["waits", "waits"]
    await running_outbox.restart()
    assert await close() == "waits"
    assert len(await running_outbox.outbox.by_target("issue_update", KEY)) == 2


async def test_what_the_owner_refused_is_not_proposed_again(running_outbox: RunningOutbox) -> None:
    def rule(_: sqlite3.Connection, __: ProposedAction, ___: datetime) -> Sequence[Verdict]:
        return [Verdict("approval", "hold", "ask me")]

    running_outbox.rules = (rule,)
    await running_outbox.restart()
    writer = GitHubWriter(running_outbox.outbox, HOUR)
    assert (await writer.comment(SITE, 7, KEY, "This rests, @ada.", "<!-- mark -->")).code == "held"
    (held,) = await running_outbox.outbox.held()
    assert held.body.stored()["body"] == "This rests, @\u200bada.\n\n<!-- mark -->"
    assert "mark" not in held.body.preview
    await running_outbox.outbox.reject(held.id)
    await running_outbox.clock.advance(48 * 3600)
    refused = await writer.comment(SITE, 7, KEY, "This rests.")
    assert refused.code == "refused"
    assert refused.is_decided
    assert not refused.is_new
