"""Proves that each check knows its phrases, in any quotes and case, and leaves alone what only looks like them.

Lists are found, and sentences are counted by their ends.
"""

from collections.abc import Callable

import pytest

from common.text import phrases

Check = Callable[[str], bool]


def deference(message: str) -> bool:
    return phrases.check_deference(message, ["Marvin", "sh-rebecca"])


CHECKS: dict[str, tuple[Check, list[str], list[str]]] = {
    "empty commitment": (
        phrases.check_empty_promise,
        ["I'm going to write it", "I\u2019m opening one now", "I'd like to create one", "I want to open it",
         "I should create it", "I'd be happy to create it", "about to build it", "I'll be the one to do it"],
        ["Let me know what you think", "Let me push back", "let me add that it rains", "I'll say it again",
         "I'll leave it there", "I'll also note", "I will not do it", "Hawaii'll do"],
    ),
    "deference": (
        deference,
        ["if SH-Rebecca is up", "once they decide", "once the issue is up, fine", "when Marvin does",
         "I'll wait for Marvin", "if they create a new issue"],
        ["if it does"],
    ),
    "repo amnesia": (
        phrases.check_repo_amnesia,
        ["Which repo?", "what\u2019s the repo?", "please drop the repo", "where is it to be filed?",
         "Where should I put it", "can you share the\nlink", "the repository you want"],
        ["the repository is clean"],
    ),
    "meta-discussion": (
        phrases.check_meta_discussion,
        ["it should include tests", "a checklist for it", "I'd scope it", "the issue would help", "items for the plan"],
        ["it should rain"],
    ),
    "scope inflation": (
        phrases.check_scope_inflation,
        ["I\u2019d add a test", "one thing I'd do", "the extra piece", "I'd insist on it"],
        ["I'd address it"],
    ),
    "action language": (
        phrases.check_action_language,
        ["I'm drafting it", "I\u2019m filing it", "about to post"],
        ["I'll admit"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_knows_its_phrases_wherever_they_stand_and_nothing_else(name: str) -> None:
    check, stopped, passing = CHECKS[name]
    for text in stopped:
        for said in (text, text.upper().replace("'", "\u2019"), f"Tea is ready, {text} (said yesterday)"):
            assert check(said), said
    for text in passing:
        assert not check(text), text


@pytest.mark.parametrize(
    "text",
    ["- one", "words\n* one\n* two", "• one", "   - indented", "  2) two", "We (1) measure and (2) decide",
     "We 1) measure and then 2) decide", "```\ncode\n```\n- after", "```\n- a fence that nothing closes"],
)  # fmt: skip
def test_a_list_is_found(text: str) -> None:
    assert phrases.has_list(text)


@pytest.mark.parametrize(
    "text",
    ["-5 degrees", "**bold** at the start", "2024. That was the year", "3.5 seconds", "```\n- in code\n1. too\n```",
     "~~~\n* in code\n~~~", "(see page 1) and (page 2)", "(1) and again (1)", "— a dash", ""],
)  # fmt: skip
def test_what_only_looks_like_a_list_is_none(text: str) -> None:
    assert not phrases.has_list(text)


SUBSTANCE = (
    "Nightly backups verify checksums before rotating archives offsite, retention windows shrink storage bills, "
    "and restore drills prove everything works."
)


@pytest.mark.parametrize(
    ("message", "count"),
    [
        ("", 0),
        ("no end", 0),
        ("One. Two! Three?", 3),
        ("Wait... what?!", 2),
        ("See https://example.com/a.b.c; then https://example.com/d.", 2),
        ("One; two; three", 2),
        ("v1.2.3 is out", 0),
        ('He said "stop." Then left.', 2),
        ("終わり。始まり\uff01", 2),
    ],
)
def test_sentences_are_counted_by_their_ends(message: str, count: int) -> None:
    assert phrases.count_sentences(message) == count
