"""What SOULs asked on a plan about a task, and what people answered, as every model that works on the task reads it."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.github.types import Comment
from common.text.markdown import without_html_comments
from modules.services.skills.skills import Framer, Skills

_SKILL, _SECTION = "code-review", "Asked"
_COMMENT_CHARS, _MOST_COMMENTS = 2_000, 10


def told_talk(skills: Skills, framer: Framer, talk: Sequence[Comment]) -> str:
    """Return the newest comments, oldest first, with a line that says what they are; "" where there is none."""
    framed = [
        framer.frame(
            "reading",
            author=f"@{one.author}",
            uri=one.html_url,
            text=without_html_comments(one.body).strip()[:_COMMENT_CHARS],
        )
        for one in talk[-_MOST_COMMENTS:]
    ]
    return skills.render(_SKILL, _SECTION, text="\n\n".join(framed)).strip() if framed else ""
