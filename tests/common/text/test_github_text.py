"""Tests of which accounts a text on GitHub mentions, and which issues it closes, as GitHub reads it."""

import pytest

from common.text.github_text import mentioned_logins, own_words, without_closing_words

CALLS = (
    "@ada-soul what do you think?", "Thanks (@ada-soul)!", "Hi **@ada-soul**, hi", "@Ada-Soul's idea", "so, @ada-soul.",
    "- [ ] @ada-soul does it", "| who |\n|---|\n| @ada-soul |", "> Before.\n\n@ada-soul", "你好@ada-soul",
    "~~no~~ @ada-soul", "<details>\n@ada-soul please\n</details>", "&#64;ada-soul", "a <br> @ada-soul", "_@ada-soul_",
    "<blockquote>\n\nBefore.\n\n</blockquote>\n\n@ada-soul", "<a href=x>this</a>, @ada-soul", "`<code>` @ada-soul",
    "<details>\n@ada-soul why does `(?<![a-z])` match?\n</details>",
)  # fmt: skip
NO_CALLS = (
    "> @ada-soul what do you think?\n\nThanks, we are done here.", "> one\n@ada-soul in the same quote", "`@ada-soul`",
    "```\n@ada-soul\n```", "~~~py\n@ada-soul", "    @ada-soul", "<!-- @ada-soul please review -->\nNothing.",
    "a <!-- @ada-soul --> b", "mail ada@ada-soul.dev", "https://github.com/@ada-soul", "npm i @ada-soul/core",
    "@ada-soul.test", "org@ada-soul", "[@ada-soul](https://example.com)", "![@ada-soul](x.png)", "@ada-soul-two",
    "<pre>\n@ada-soul\n</pre>", "- > @ada-soul", "see @@ada-soul", "", "a <code>@ada-soul</code> b",
    "a <a href=x>@ada-soul</a>", "<blockquote>\n\n@ada-soul\n\n</blockquote>", "<blockquote>\n\n`x`\n\n- @ada-soul",
    "<blockquote>\n<blockquote>\n\nx\n\n</blockquote>\n\n@ada-soul\n\n</blockquote>",
)  # fmt: skip


@pytest.mark.parametrize("text", CALLS)
def test_who_is_spoken_to_is_called(text: str) -> None:
    assert mentioned_logins(text) == {"ada-soul"}


def test_a_login_of_an_enterprise_has_an_underscore() -> None:
    assert mentioned_logins("@ada_acme, ask _@bea_") == {"ada_acme", "bea"}


@pytest.mark.parametrize("text", NO_CALLS)
def test_what_is_quoted_code_or_unseen_calls_nobody(text: str) -> None:
    assert "ada-soul" not in mentioned_logins(text)


@pytest.mark.parametrize(
    "quoted",
    [
        "> please do\nthis work, start now", "- > please do", "1. > please do", "```\nplease do\n```", "    please do",
        "<blockquote>please do</blockquote>", "<blockquote>\n\nplease do\n\n</blockquote>", "> No.\u2028please do",
        "<!-- please do -->", "`please do`",
    ],
)  # fmt: skip
def test_what_somebody_else_said_is_in_nobodys_own_words(quoted: str) -> None:
    assert " ".join("\n".join(own_words(f"{quoted}\n\nNot now.")).split()) == "Not now."


CLOSES = (
    "Closes #7", "closes: #7", "FIXES #7", "fixed GH-7", "resolve octo/site#7", "Resolves https://github.com/o/r/issues/7",
    "Closes [#7](https://github.com/o/r/issues/7)", "**Closes** #7", "fix <https://github.com/o/r/pull/7>",
    "closes\n#7",
)  # fmt: skip


@pytest.mark.parametrize("text", CLOSES)
def test_words_that_close_an_issue_lose_their_force_without_a_hidden_character(text: str) -> None:
    defused = without_closing_words(f"The goal: {text}.")
    assert " issue" in defused
    assert defused.replace(" issue", "", 1) == f"The goal: {text}."
    assert without_closing_words(defused) == defused


def test_other_words_stay_as_they_are() -> None:
    for text in ("We fixed it, see #7", "a close call for #7", "It closes at 7", "prefix #7", "See #7"):
        assert without_closing_words(text) == text
