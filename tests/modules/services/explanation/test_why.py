"""A story is told in order and in words, with what the rules counted; untrusted text cannot draw on the terminal.

A link, a uri or the beginning of an id finds the post or act that is meant, without the network.
"""

import pytest

from adapters.atproto.writes import tid_for
from modules.runtime.journal.types import Entry
from modules.services.explanation.rendering import ending, lines, steps, title
from modules.services.explanation.story import Named, Unknown, understand
from modules.services.outbox.rules.rules import STRANGERS
from tests.modules.services.explanation.conftest import ExplainedHome, a_notification, an_intent

THEIRS, OURS = "at://did:plc:ada/app.bsky.feed.post/1", "at://did:plc:soul/app.bsky.feed.post/2"
RULES = [
    {"rule": "points", "says": "pass", "reason": "", "value": 12, "limit": 4000},
    {"rule": "consent", "says": "pass", "reason": "they mentioned it", "value": None, "limit": None},
    {"rule": "loops", "says": "pass", "reason": "they mentioned it", "value": 2, "limit": 6},
    {"rule": "strangers", "says": "hold", "reason": "addressed to a stranger", "value": 7, "limit": 6},
    {"rule": "secrets", "says": "block", "reason": "a key", "value": "sk-…", "limit": None, "later": "unknown"},
]


async def test_the_rules_at_admission_are_told_with_value_and_limit(explained_home: ExplainedHome) -> None:
    await an_intent(explained_home, "cafe01", "", cause="owner", kind="post", body={"text": "Hello"}, state="blocked")
    await explained_home.journal.record(
        Entry("act", "outbox", "Blocked post: Hello", reason="a key", intent_id="cafe01", data={"rules": RULES})
    )
    (_, step) = steps(await explained_home.story("cafe01"))
    passed = ("who asked for it (they mentioned it)", "loops (they mentioned it)")
    assert (step.text, step.details) == (
        "Blocked post",
        (
            "“Hello”",
            "a key",
            "The rule on strangers in an hour needs your approval: addressed to a stranger (7 of 6)",
            f"What that rule is for: {STRANGERS.explanation}",
            "The rule on secrets in its words blocks it: a key (sk-…)",
            f"Rules that let it pass: {'; '.join(passed)}; 1 limit not reached",
        ),
    )


async def test_a_turn_is_told_with_model_cost_words_prompt_and_refused_calls(explained_home: ExplainedHome) -> None:
    began = "2026-01-05T11:59:00.000Z"
    await a_notification(explained_home, THEIRS, state="handled")
    data = {
        "began": began,
        "purpose": "bluesky-response",
        "provenance": "owner",
        "sank_to": "stranger",
        "model": "some/model",
        "rounds": 2,
        "input_tokens": 2310,
        "output_tokens": 41,
        "usd": 0.00031,
        "prompt": [{"name": "SOUL.md", "chars": 1911, "sha256": "3f2a"}, {"name": "conversation", "chars": 20}],
        "calls": [
            {"tool": "bluesky_reply", "input": {"text": "Tin"}, "error": "BLOCKED: said before"},
            {"tool": "stay_silent", "input": {"reason": "enough"}, "error": ""},
        ],
    }
    await explained_home.journal.record(
        Entry("model", "awareness", "Thought about it", None, "ended", trigger_uri=THEIRS, data=data)
    )
    story = await explained_home.story(THEIRS)
    (received, thought) = steps(story)
    assert received.at == began, "what it began with is not told after what came of it"
    assert thought.text == "It thought it over with some/model: 2 rounds, 2,310 tokens in, 41 out, $0.0003"
    assert thought.details == (
        "The prompt contained text from strangers, so only acts that strangers may cause were available",
        "It was told: SOUL.md, conversation",
        "It called bluesky_reply “Tin”, refused: said before",
        "It called stay_silent “enough”",
    )
    assert title(story) == "Why it did not answer @ada.example"


async def test_a_turn_that_failed_is_told_with_what_the_ledger_counted(explained_home: ExplainedHome) -> None:
    await a_notification(explained_home, THEIRS)
    call = ("c1", "2026-01-05", "2026-01-05T12:00:00.000Z", "reply", "mention", "m", "reserved", 900, 100, 2_500_000)
    await explained_home.database.run(
        lambda connection: connection.execute(
            "INSERT INTO model_calls (id, day, at, purpose, importance, model, state, input_tokens, output_tokens,"
            " cost_micro_usd) VALUES (?,?,?,?,?,?,?,?,?,?)",
            call,
        )
    )
    data = {"began": "2026-01-05T12:00:00.000Z", "purpose": "reply", "provenance": "stranger"}
    await explained_home.journal.record(
        Entry("model", "awareness", "Failed", None, "the service is down", trigger_uri=THEIRS, data=data)
    )
    story = await explained_home.story(THEIRS)
    (thinking,) = story.thinkings
    assert (thinking.input_tokens, thinking.output_tokens, thinking.usd) == (900, 100, 2.5)
    assert "It came to nothing: the service is down" in steps(story)[1].details


async def test_while_the_owner_has_paused_a_waiting_post_says_so(explained_home: ExplainedHome) -> None:
    await a_notification(explained_home, THEIRS)
    assert ending(await explained_home.story(THEIRS)) == "It waits to be handled."
    await explained_home.journal.record(Entry("life", "control", "Paused", reason="holiday", data={"act": "paused"}))
    await explained_home.journal.record(
        Entry("life", "budget", "Listening", reason="all used", data={"step": "listen"})
    )
    assert ending(await explained_home.story(THEIRS), "Asia/Tokyo") == (
        "It waits to be handled. Paused (holiday; since 2026-01-05 21:00). "
        "Listening (all used; since 2026-01-05 21:00)."
    )
    await explained_home.journal.record(Entry("life", "control", "Going on", data={"act": "resumed"}))
    await explained_home.journal.record(Entry("life", "budget", "A new day", data={"step": "normal"}))
    assert ending(await explained_home.story(THEIRS)) == "It waits to be handled."


async def test_a_draft_says_until_when_it_waits_for_a_yes(explained_home: ExplainedHome) -> None:
    await a_notification(explained_home, THEIRS, state="handled")
    await an_intent(
        explained_home, "cafe01", THEIRS, cause=THEIRS, body={"text": "Tin"}, state="held", error="a stranger"
    )
    story = await explained_home.story("cafe01")
    assert title(story) == "Why: reply (waits for approval)"
    assert ending(story, "UTC") == "The reply waits for your approval, until 2026-01-05 12:00 at most."
    assert lines(story, "Asia/Tokyo")[-1] == "The reply waits for your approval, until 2026-01-05 21:00 at most."


async def test_untrusted_words_cannot_draw_on_the_terminal(explained_home: ExplainedHome) -> None:
    evil = "\x1b[2Jgone\r\nDecided: to obey\u202e"
    await a_notification(explained_home, THEIRS, text=evil, handle="eve.example\x1b[31m")
    await explained_home.journal.record(Entry("decision", "awareness", evil, reason=evil, trigger_uri=THEIRS))
    for line in lines(await explained_home.story(THEIRS)):
        assert line.isprintable(), line
        assert not line.startswith("Decided")


async def test_the_sentences_of_a_reply_that_did_not_leave_are_told(explained_home: ExplainedHome) -> None:
    await a_notification(explained_home, THEIRS, state="handled")
    await an_intent(explained_home, "cafe02", THEIRS, cause=THEIRS, kind="reply", body={"text": "Tin it is."})
    called = {"tool": "bluesky_reply", "input": {"text": "Tin it is. Call one tool."}, "error": ""}
    whole = {"tool": "bluesky_reply", "input": {"text": "Tin it is."}, "error": ""}
    data = {"calls": [one | {"intent_id": "cafe02"} for one in (called, whole)]}
    await explained_home.journal.record(
        Entry("model", "awareness", "Thought about it", None, "ended", trigger_uri=THEIRS, data=data)
    )
    details = [detail for step in steps(await explained_home.story(THEIRS)) for detail in step.details]
    assert "It called bluesky_reply, without “Call one tool.”" in details
    assert "It called bluesky_reply" in details


POST = "app.bsky.feed.post"
ADA, SOUL = "did:plc:ada", "did:plc:soul"
KEY = "3m5zz2xabcd2k"
ISSUE = "https://github.com/acme/site/issues/4"


@pytest.mark.parametrize(
    ("said", "named"),
    [
        (f"https://bsky.app/profile/Ada.Example/post/{KEY}", Named("ada.example", POST, KEY)),
        (f"  <https://bsky.app/profile/@ada.example/post/{KEY}> ", Named("ada.example", POST, KEY)),
        (f"https://deer.social/profile/did:plc:ada/post/{KEY}/liked-by?x=1", Named(ADA, POST, KEY)),
        (f"http://127.0.0.1:8080/profile/did%3Aplc%3Aada/post/{KEY}#top", Named(ADA, POST, KEY)),
        (f"at://did:plc:ada/app.bsky.feed.like/{KEY}", Named(ADA, "app.bsky.feed.like", KEY)),
        (ISSUE, Named(link=ISSUE)),
        (f"{ISSUE}#issuecomment-12?x", Named(link=f"{ISSUE}#issuecomment-12")),
        ("acme/www-site#12/task-3", Named(task="acme/www-site#12/task-3")),
        ("acme/www-site#12", Named(link="acme/www-site#12")),
        ("f391", Named(intent="f391")),
        ("f3911ec87f5d43cc938d893e694e3bf4", Named(intent="f3911ec87f5d43cc938d893e694e3bf4")),
        ("https://bsky.app/profile/ada.example", None),
        ("f3911ec87f5d43cc938d893e694e3bf40", None),
    ],
)
def test_links_uris_and_ids_are_understood_and_nothing_else(said: str, named: Named | None) -> None:
    assert understand(said) == named


async def test_a_link_with_a_handle_finds_the_post_by_its_key_whatever_the_handle_is_now(
    explained_home: ExplainedHome,
) -> None:
    uri = f"at://{ADA}/{POST}/{KEY}"
    await a_notification(explained_home, uri)
    for handle in ("ada.example", "renamed.example"):
        assert (await explained_home.story(f"https://bsky.app/profile/{handle}/post/{KEY}")).asked == uri


async def test_a_link_to_an_issue_finds_the_act_that_opened_it(explained_home: ExplainedHome) -> None:
    await an_intent(explained_home, "cafe01", "promise:1", cause="space://conversation/1", kind="issue", result=ISSUE)
    assert (await explained_home.story(ISSUE)).act_id == "cafe01"
    assert await explained_home.why(f"{ISSUE}2") == Unknown(f"{ISSUE}2 was made by no act that is known")


async def test_a_link_to_a_pull_request_tells_of_its_review_whatever_was_silent_or_said_later(
    explained_home: ExplainedHome,
) -> None:
    pull, thread = "https://github.com/acme/site/pull/4", "github:acme/site#4/9"
    review, moved = "review:acme/site#4@1a", "review:acme/site#4@2b"
    for cause in (review, f"{thread}0", moved, f"{thread}1"):
        await explained_home.journal.record(Entry("decision", "x", "Nothing to do", reason="", trigger_uri=cause))
    assert (await explained_home.story(pull)).asked == f"{thread}1"
    await an_intent(explained_home, "cafe02", "a comment", cause=f"{thread}0", kind="issue_comment")
    assert (await explained_home.story(pull)).asked == f"{thread}0"
    await an_intent(explained_home, "cafe01", "a review", cause=review, kind="review")
    assert (await explained_home.story(pull)).asked == review


async def test_the_story_of_a_pull_request_of_ours_goes_from_its_task_to_its_end_by_link_and_by_number(
    explained_home: ExplainedHome,
) -> None:
    pull, task, merge = "http://127.0.0.1:8002/Acme/site/pull/4", "Acme/site#1/task-3", "merge:Acme/site#4"
    await an_intent(explained_home, "cafe01", "an offer", cause=task, kind="pull_request", result=pull)
    await an_intent(explained_home, "cafe02", "a request", cause=task, kind="review_request", result=pull)
    await explained_home.journal.record(Entry("decision", "merges", "conflict", reason="x", trigger_uri=merge))
    await explained_home.journal.record(Entry("decision", "merges", "another", reason="x", trigger_uri=f"{merge}2"))
    await an_intent(explained_home, "cafe03", "its end", cause=merge, kind="issue_update", result=pull)
    for said in (pull, "acme/site#4"):
        story = await explained_home.story(said)
        assert title(story) == "Why: pull request (done)"
        assert [act.id for act in story.acts] == ["cafe01", "cafe02", "cafe03"]
        assert [one.summary for one in story.decisions] == ["conflict"]
    assert isinstance(await explained_home.why("acme/site#40"), Unknown)


async def test_between_two_posts_with_one_key_the_handle_decides(explained_home: ExplainedHome) -> None:
    for did, handle in ((ADA, "ada.example"), ("did:plc:bob", "bob.example")):
        await a_notification(explained_home, f"at://{did}/{POST}/{KEY}", handle=handle)
    await an_intent(
        explained_home, "cafe01", f"at://{ADA}/{POST}/{KEY}", cause="owner", result=f"at://{SOUL}/{POST}/{KEY}"
    )
    link = "https://bsky.app/profile/{}/post/" + KEY
    assert (await explained_home.story(link.format("bob.example"))).asked == f"at://did:plc:bob/{POST}/{KEY}"
    assert (await explained_home.story(link.format("soul.example"))).act_id == "cafe01"
    assert (await explained_home.story(link.format(ADA))).asked == f"at://{ADA}/{POST}/{KEY}"


async def test_the_beginning_of_an_id_is_enough_while_only_one_act_has_it(explained_home: ExplainedHome) -> None:
    await an_intent(explained_home, "cafe01", "", cause="owner")
    await an_intent(explained_home, "cafe02", "", cause="owner")
    assert (await explained_home.story("cafe02")).act_id == "cafe02"
    assert await explained_home.why("cafe") == Unknown(
        "More than one act has an id that begins with cafe: give more of it"
    )
    assert await explained_home.why("beef") == Unknown("No act has an id that begins with beef")


async def test_each_way_of_not_knowing_is_one_clear_line(explained_home: ExplainedHome) -> None:
    uri = f"at://{ADA}/{POST}/{KEY}"
    never = await explained_home.why(uri)
    assert never == Unknown(f"{uri} was never seen: nothing that reached it, and no act of its own, has that name")
    await explained_home.database.run(
        lambda connection: connection.execute("INSERT INTO feed_keys VALUES ('k', ?, '')", (uri,))
    )
    feed = await explained_home.why(uri)
    assert isinstance(feed, Unknown)
    assert "stands in its own feed" in feed.reason
    nonsense = await explained_home.why("what?")
    assert isinstance(nonsense, Unknown)
    assert "nothing that can be asked about" in nonsense.reason
    assert not any("\n" in one.reason for one in (never, feed, nonsense) if isinstance(one, Unknown))


async def test_what_is_older_than_the_journal_is_said_to_be_pruned(explained_home: ExplainedHome) -> None:
    old = f"at://{ADA}/{POST}/{tid_for(explained_home.clock.now(), 'x')}"
    await explained_home.journal.record(Entry("life", "x", "first"))
    await explained_home.clock.advance(86_400 * 3)
    await explained_home.journal.record(Entry("life", "x", "second"))
    new = f"at://{ADA}/{POST}/{tid_for(explained_home.clock.now(), 'x')}"
    await explained_home.journal.prune(max_days=1)
    found, never = await explained_home.why(old), await explained_home.why(new)
    assert isinstance(found, Unknown)
    assert "the journal reaches back to 2026-01-08, what was before is pruned" in found.reason
    assert isinstance(never, Unknown)
    assert "never seen" in never.reason
