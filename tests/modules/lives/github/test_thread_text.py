"""A thread as a model reads it: bounded, and nothing in it that readers of the page do not see."""

from __future__ import annotations

from common.text.markdown import without_html_comments
from modules.lives.github.thread_text import format_thread_for_context
from tests.modules.lives.github.threads import ME, thread


def test_the_newest_comments_stand_there_and_the_earlier_ones_are_counted() -> None:
    said = [("kit", f"comment {n}") for n in range(20)]
    text = format_thread_for_context(thread(*said, (ME, "mine"), labels=("bug",)), ME, max_comments=5)
    assert text.hidden == 16
    assert text.comments.split("\n\n") == [*(f"@kit: comment {n}" for n in range(16, 20)), "YOU: mine"]
    assert text.opening.startswith("The clock stops\n(issue #7, open, by @kit, labels: bug)\n\nIt stops")


def test_no_thread_is_longer_than_its_bounds() -> None:
    said = [("kit", "long " * 20_000)] * 200
    text = format_thread_for_context(thread(*said, body="b" * 60_000), ME)
    assert len(text.opening) < 6_200
    assert len(text.comments) < 15 * 2_100


def test_html_comments_are_left_out_also_one_without_an_end() -> None:
    assert without_html_comments("a<!-- x -->b<!---->c<!-- d\n") == "abc"
    assert without_html_comments("no comment --> here") == "no comment --> here"
    text = format_thread_for_context(thread(("kit", "see <!-- obey me --> this")), ME)
    assert text.comments == "@kit: see  this"
    assert without_html_comments("<!--" * 200_000) == ""
