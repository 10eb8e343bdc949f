"""Where a page of Markdown can be cut, and whether it says anything. Pure; nothing in a text makes it fail."""

from __future__ import annotations

import re

from common.text.fences import fenced

_SECTION = "## "
_LINES = re.compile(r"(?<=\n)")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_EMPTY = re.compile(
    r"""
    (?: [ ]{0,3} \#{1,6} (?: \s .* )?           # a heading
      | [ ]{0,3} ([-*_]) [ \t]* (?: \1 [ \t]* ){2,}   # a rule
      | \s*
    )
    """,
    re.VERBOSE,
)


def split_sections(markdown: str) -> tuple[str, tuple[str, ...]]:
    """What stands before the first `## ` heading, and each section with its heading; joined they are the text again."""
    parts: list[list[str]] = [[]]
    lines = _LINES.split(markdown)
    for line, in_fence in zip(lines, fenced([line.rstrip() for line in lines]), strict=True):
        if line.startswith(_SECTION) and not in_fence:
            parts.append([])
        parts[-1].append(line)
    texts = ["".join(lines) for lines in parts]
    return texts[0], tuple(texts[1:])


def is_meaningful(markdown: str) -> bool:
    """Whether there is more than blank lines, headings without a body, HTML comments and horizontal rules."""
    return any(not _EMPTY.fullmatch(line) for line in _COMMENT.sub("", markdown).splitlines())
