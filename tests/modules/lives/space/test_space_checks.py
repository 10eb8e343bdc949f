"""Each check knows its phrases, in whatever quotes and case, and leaves alone what only looks like them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from common.text import phrases
from common.text.phrases import without_first
from modules.lives.space.request_parser import quoted, repo_in, requested_type
from tests.cpu_time import cpu_s

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
            "I'll open it",
            "I\u2019ll open it",
            "i'LL  \n open it",
            "**I'll** open it",
            "I will do that",
            "Let me draft it",
            "I'm going to write it",
            "I am going to write it",
            "I\u2019m opening one now",
            "I'm creating it",
            "I'd like to create one",
            "I want to create it",
            "I want to open it",
            "I should create it",
            "I should open it",
            "I'll happily do it",
            "I'd be happy to create it",
            "I'm happy to create it",
            "about to open",
            "about to build it",
            "I'll be opening it",
            "I'll be the one to do it",
            "Let me know; I'll do it",
            "I\u200b'll open it",
        ],
        [
            "Let me know what you think",
            "Let me see",
            "Let me push back",
            "let me ask you",
            "Let me just say",
            "let me add that it rains",
            "Let me be blunt",
            "I'll admit that",
            "I'll say it again",
            "I will be honest",
            "I\u2019ll note that",
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
            "can we open one?",
            "I can see why",
            "You'll open it",
            "Hawaii'll do",
            "about to rain",
            "outlet me",
            "I wanted to open it",
        ],
    ),
    "echo opener": (
        phrases.check_echo_opener,
        [
            "I agree with that",
            "I'm aligned",
            "I like Marvin's idea",
            "I like sh-marvin.x's idea",
            "Building on that",
            "Great point",
            "Great points, both of you",
            "Great points Rebecca",
            "Good points all around",
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
            "I like that it rains",
            "The one thing I'd change",
            "One thing I'd change",
            "I'm with Marvin",
            "I'm with @sh-marvin.",
            "  Same here",
            "This resonates",
            "Strongly agree",
            "I share Rebecca's worry",
            "I second this",
            'On "caching": yes',
            "On “caching” — yes",
            "On “caching”—yes",
        ],
        [
            "To address the point",
            "Great pointers in the guide",
            "Good pointing devices are rare",
            "Points matter",
            "A point is missing",
            "I'd address it",
            "I agreed once",
            "Exactly-once delivery is hard",
            "I like thermal printers",
            "Secondly",
            "I seconded it",
            "Well, I agree",
            'On "caching" I differ',
            "On caching: yes",
            "Additions help",
            "I'm without words",
            "",
        ],
    ),
    "deference": (
        deference,
        [
            "if Marvin opens it",
            "If @marvin opens it",
            "if someone drafts it",
            "once they decide",
            "if folks want",
            "if SH-Rebecca is up",
            "once someone creates it",
            "once the issue is up, fine",
            "when Marvin does",
            "I'll wait for Marvin",
            "I\u2019ll wait for the issue",
            "happy to review once it is there",
            "once you open the issue",
            "if they create a new issue",
        ],
        [
            "if it does",
            "once the sun does rise",
            "when the page opens",
            "if you open the page in dark mode, contrast fails",
            "if you open it in a browser",
            "if marvinette opens it",
            "once. The site is up",
            "if you want more detail",
            "I'll wait",
        ],
    ),
    "repo amnesia": (
        phrases.check_repo_amnesia,
        [
            "Which repo?",
            "what repo is it",
            "What\u2019s the repo?",
            "which repository",
            "what repository",
            "please drop the repo",
            "share the repo",
            "where is it to be filed?",
            "where was it",
            "Where should I put it",
            "where should we look",
            "where do I go",
            "can you share the\nlink",
            "can you drop me a url",
            "the repo you want",
            "the repository we want",
        ],
        [
            "the repository is clean",
            "whichever repo",
            "where the wild things are",
            "where it ends. She filed it",
            "can you share your thoughts",
            "repost it",
        ],
    ),
    "meta-discussion": (
        phrases.check_meta_discussion,
        [
            "the issue should contain steps",
            "it should include tests",
            "Acceptance criteria matter",
            "a checklist for it",
            "checklist that works",
            "I'd structure it",
            "I\u2019d organise it",
            "I'd scope it",
            "the issue would help",
            "the plan could be short",
            "items for the plan",
            "items in the list",
        ],
        ["it should rain", "a checklist", "I'd rather not", "the plan is short", "items forever", "shoulder coverage"],
    ),
    "scope inflation": (
        phrases.check_scope_inflation,
        [
            "I'd also add tests",
            "One more thing",
            "I\u2019d add a test",
            "one thing I'd do",
            "the extra piece",
            "I'd insist on it",
            "I want to add it",
            "to add to that",
            "to supplement it",
            "I'd tack on a test",
            "I'd append it",
        ],
        ["I'd address it", "one thing is clear", "the extra mile", "I added it", "supplement it"],
    ),
    "action language": (
        phrases.check_action_language,
        [
            "I'll do it",
            "I will do it",
            "Let me take it",
            "I'm going to",
            "I am going to",
            "I'm drafting it",
            "I\u2019m filing it",
            "I am submitting it",
            "about to post",
            "about to make it",
        ],
        ["I'll admit", "Let me know", "I'm thinking", "about to rain", "I'd like to create it", "we'll do it"],
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


LONG = 50_000
HOSTILE = {
    "letters": "a" * LONG,
    "dots": "." * LONG + "x",
    "spaces": " " * LONG + "x",
    "once": "once " * (LONG // 5),
    "where": "where " * (LONG // 6),
    "can you share": "can you share " * (LONG // 14),
    "brackets": "(" * LONG,
    "steps": "1) " * (LONG // 3),
    "digits": "1" * LONG,
    "fences": "```\n" * (LONG // 4),
    "links": "https://." * (LONG // 9),
    "a link of dots": "https://" + "." * LONG,
    "repositories": "github.com/" * (LONG // 11),
    "an owner": "github.com/" + "a-" * (LONG // 2),
    "an open quote": 'On "' + "a" * LONG,
    "quotes": '"' * LONG,
    "closings": '.")' * (LONG // 3),
    "promises": "I'll just " * (LONG // 10),
    "deferring": "if you open a a a " * (LONG // 18),
    "names": "@a " * (LONG // 3),
    "invisible": "\u200b" * LONG,
    "a name of dots": "I'm with " + "." * LONG,
    "new issues": "create a a a " * (LONG // 13),
}
READERS: dict[str, Callable[[str], object]] = {
    **{name: check for name, (check, _, _) in CHECKS.items()},
    "count": phrases.count_sentences,
    "first": without_first,
    "repo": repo_in,
    "asked": requested_type,
    "quoted": quoted,
}


@pytest.mark.perf
@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_long_message_costs_no_more_than_its_length(hostile: str) -> None:
    assert cpu_s(lambda: [read(HOSTILE[hostile]) for read in READERS.values()]) < 3
