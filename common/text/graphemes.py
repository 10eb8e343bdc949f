"""Length as people see it: extended grapheme clusters (Unicode UAX #29)."""

import regex

from common.constants import PORTABLE_MAX_GRAPHEMES

_SENTENCE_END = regex.compile(
    r"(?V1)[.!?\u2026][\"'\u201d\u2019)]*(?=\s|$)|[\p{STerm}--[.!?]]++[\"'\u201d\u2019\u300d\u300f)\uff09]*"
)
_REST = " …"
CLUSTER = regex.compile(r"\p{RI}{2}[\p{GCB=Extend}\p{GCB=SpacingMark}\u200d]*+|\X")
"""One character as readers see it. Flags come first: at each, `\\X` alone would look back to the start of their row."""


def grapheme_len(text: str) -> int:
    """Return how many characters a reader sees."""
    return sum(1 for _ in CLUSTER.finditer(text))


def truncate_graphemes(text: str, max_graphemes: int = PORTABLE_MAX_GRAPHEMES) -> str:
    """Return the longest prefix of at most `max_graphemes`, without splitting a cluster."""
    if max_graphemes <= 0:
        return ""
    for count, match in enumerate(CLUSTER.finditer(text), start=1):
        if count > max_graphemes:
            return text[: match.start()]
    return text


def shortened(text: str, most: int) -> str:
    """Return `text` on one line of at most `most` characters; if it is cut it ends in `…`.

    It is cut between words, and inside a word only if no space is near, as in Japanese; a link is left out as a whole.
    """
    line = " ".join(text.split())
    if grapheme_len(line) <= most:
        return line
    fitting = truncate_graphemes(line, most - 1)
    before, _, part = fitting.rpartition(" ")
    is_whole = line[len(fitting)] == " "
    keeps_part = is_whole or ("://" not in part and len(before) < len(fitting) // 2)
    return f"{(fitting if keeps_part else before).rstrip()}…"


def leading_sentences(text: str, max_graphemes: int = PORTABLE_MAX_GRAPHEMES) -> str:
    """Return as many whole sentences from the start of `text` as fit; "" if not even the first fits."""
    fitting = truncate_graphemes(text, max_graphemes)
    ends = [match.end() for match in _SENTENCE_END.finditer(text) if match.end() <= len(fitting)]
    return fitting[: ends[-1]].strip() if ends else ""


def leading_part(text: str, most: int) -> str:
    """Return `text`, or as many whole sentences or lines from its start as fit, followed by `…`."""
    if grapheme_len(text) <= most:
        return text
    fitting = truncate_graphemes(text, most - len(_REST))
    whole = max(leading_sentences(text, most - len(_REST)), fitting.rpartition("\n")[0].rstrip(), key=len)
    return f"{whole or fitting.rstrip()}{_REST}"


def fit_post_text(text: str, url: str | None = None, max_graphemes: int = PORTABLE_MAX_GRAPHEMES) -> str:
    """Return prose and an optional link that together fit a post; the prose is cut with `…`, the link never.

    Raises:
        ValueError: the link alone does not fit.

    """
    if url and grapheme_len(url) > max_graphemes:
        raise ValueError(f"the link alone is longer than {max_graphemes} characters")
    prose = text.strip()
    tail = f"\n\n{url}" if url else ""
    room = max_graphemes - grapheme_len(tail)
    if not prose or room < 1:
        return url or ""
    if grapheme_len(prose) > room:
        prose = truncate_graphemes(prose, room - 1).rstrip() + "…"
    return prose + tail
