"""Each check knows its phrases, in whatever quotes and case, and leaves alone what only looks like them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from common.text import phrases

Check = Callable[[str], bool]


def deference(message: str) -> bool:
    return phrases.check_deference(message, ["Marvin", "sh-rebecca"])


CHECKS: dict[str, tuple[Check, list[str], list[str]]] = {
    "list": (
        phrases.check_list,
        [
            "- one",
            "words\n* one\n* two",
            "• one",
            "   - indented",
            "1. one",
            "  2) two",
            "12345. many",
            "We (1) measure and (2) decide",
            "We 1) measure and then 2) decide",
            "We (3) go on and (4) stop",
            "```\ncode\n```\n- after",
            "```\n- a fence that nothing closes",
        ],
        [
            "well-known things",
            "-5 degrees",
            "**bold** at the start",
            "*emphasis* too",
            "2024. That was the year",
            "1999) was better",
            "3.5 seconds",
            "```\n- in code\n1. too\n```",
            "~~~\n* in code\n~~~",
            "f(1) and f(2)",
            "(see page 1) and (page 2)",
            "only (1) of them",
            "(1) and again (1)",
            "a :) and b :(",
            "— a dash",
            "",
        ],
    ),
    "empty commitment": (
        phrases.check_empty_promise,
        [
            "I will do that",
            "I'm going to write it",
            "I am going to write it",
            "I\u2019m opening one now",
            "I'm creating it",
            "I'd like to create one",
            "I want to create it",
            "I want to open it",
            "I should create it",
            "I should open it",
            "I'd be happy to create it",
            "I'm happy to create it",
            "about to open",
            "about to build it",
            "I'll be opening it",
            "I'll be the one to do it",
        ],
        [
            "Let me know what you think",
            "Let me see",
            "Let me push back",
            "let me ask you",
            "Let me just say",
            "let me add that it rains",
            "I'll say it again",
            "I'll ask Rebecca",
            "I'll disagree",
            "I'll stop here",
            "I'll wait",
            "I'll stay with it",
            "I'll leave it there",
            "I'll take that",
            "I'll push back",
            "I'll concede the point",
            "I'll also note",
            "I will not do it",
            "Hawaii'll do",
        ],
    ),
    "echo opener": (
        phrases.check_echo_opener,
        [
            "I'm aligned",
            "Building on that",
            "Really good point",
            "Excellent points!",
            "Some great points here",
            "Those are great points",
            "You make a good point",
            "EXACTLY",
            "Absolutely!",
            "That's a great idea",
            "Well said",
            "To echo Marvin",
            "To add one thing",
            "I\u2019d add that",
            "I like the tone",
            "One thing I'd change",
            "I'm with Marvin",
            "  Same here",
            "This resonates",
            "Strongly agree",
            "I second this",
            "On “caching” — yes",
        ],
        ["To address the point"],
    ),
    "deference": (
        deference,
        [
            "if Marvin opens it",
            "if someone drafts it",
            "once they decide",
            "if SH-Rebecca is up",
            "once someone creates it",
            "once the issue is up, fine",
            "when Marvin does",
            "I'll wait for Marvin",
            "once you open the issue",
            "if they create a new issue",
        ],
        ["if it does"],
    ),
    "repo amnesia": (
        phrases.check_repo_amnesia,
        [
            "Which repo?",
            "what repo is it",
            "What\u2019s the repo?",
            "please drop the repo",
            "share the repo",
            "where is it to be filed?",
            "Where should I put it",
            "where should we look",
            "where do I go",
            "can you share the\nlink",
            "can you drop me a url",
            "the repo you want",
            "the repository we want",
        ],
        ["the repository is clean"],
    ),
    "meta-discussion": (
        phrases.check_meta_discussion,
        [
            "it should include tests",
            "a checklist for it",
            "checklist that works",
            "I'd structure it",
            "I'd scope it",
            "the issue would help",
            "the plan could be short",
            "items for the plan",
            "items in the list",
        ],
        ["it should rain"],
    ),
    "scope inflation": (
        phrases.check_scope_inflation,
        [
            "I\u2019d add a test",
            "one thing I'd do",
            "the extra piece",
            "I'd insist on it",
            "I'd tack on a test",
            "I'd append it",
        ],
        ["I'd address it"],
    ),
    "action language": (
        phrases.check_action_language,
        ["I'm drafting it", "I\u2019m filing it", "I am submitting it", "about to post", "about to make it"],
        ["I'll admit"],
    ),
}
POSITIVE = [(name, text) for name, (_, positives, _negatives) in CHECKS.items() for text in positives]
NEGATIVE = [(name, text) for name, (_, _positives, negatives) in CHECKS.items() for text in negatives]


def named(value: str) -> str:
    return value.encode("unicode_escape").decode()


@pytest.mark.parametrize(("check", "text"), POSITIVE, ids=named)
def test_a_check_knows_its_phrases(check: str, text: str) -> None:
    assert CHECKS[check][0](text)
    if check != "list":
        assert CHECKS[check][0](text.upper().replace("'", "\u2019"))


@pytest.mark.parametrize(("check", "text"), NEGATIVE, ids=named)
def test_a_check_leaves_alone_what_only_looks_like_its_phrases(check: str, text: str) -> None:
    assert not CHECKS[check][0](text)


@pytest.mark.parametrize(
    ("check", "text"), [pair for pair in POSITIVE if pair[0] not in {"list", "echo opener"}], ids=named
)
def test_a_phrase_is_found_wherever_it_stands(check: str, text: str) -> None:
    assert CHECKS[check][0](f"Tea is ready, {text} (said yesterday)")
