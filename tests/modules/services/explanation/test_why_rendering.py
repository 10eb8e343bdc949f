"""A story is told in order, in words, with what the rules counted; and nothing foreign can draw on the terminal."""

from __future__ import annotations

from modules.runtime.journal.types import Entry
from modules.services.explanation.why import ending, lines, steps, title
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
    assert (step.text, step.details) == (
        "Blocked post",
        (
            "“Hello”",
            "a key",
            "The rule on strangers in an hour needs your approval: addressed to a stranger (7 of 6)",
            f"What that rule is for: {STRANGERS.explanation}",
            "The rule on secrets in its words blocks it: a key (sk-…)",
            "Rules that let it pass: points (12 of 4,000); who asked for it, loops (they mentioned it)",
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
        "It was told: SOUL.md (1,911 characters), conversation (20 characters)",
        "It called bluesky_reply “Tin”, refused: BLOCKED: said before",
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
    assert title(story) == "Why its reply to @ada.example waits for your approval"
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
