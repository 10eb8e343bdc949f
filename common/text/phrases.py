"""Phrases, lists and sentences of a message, with one predicate for each. Pure; linear in the text's length.

Patterns are for text with straight quotes and single spaces, in any case, as whole words; see `plain`. Gaps are
bounded, so that a long message costs no more than its length.
"""

from collections.abc import Iterable
from functools import lru_cache

import regex

from common.text.markdown import in_code
from common.text.patterns import lazy_regex
from common.text.strings import normalize_quotes

_INVISIBLE = lazy_regex(r"\p{Cf}+")
_SPACE = lazy_regex(r"\s+")
_PEER_SETS_REMEMBERED = 64
_MESSAGES_REMEMBERED = 8


@lru_cache(maxsize=_MESSAGES_REMEMBERED)
def plain(message: str) -> str:
    """Return `message` in the form for the patterns: straight quotes, nothing invisible, single spaces, trimmed."""
    return _SPACE.sub(" ", _INVISIBLE.sub("", normalize_quotes(message))).strip()


def _whole(*phrases: str) -> regex.Pattern[str]:
    return lazy_regex(rf"(?<!\w)(?:{'|'.join(phrases)})(?!\w)", regex.IGNORECASE)


_ADVERB = r"(?:(?:just|only|also|still|simply|gladly|honestly|freely) )?"
_MAKING = r"opening|creating|drafting|filing|submitting"
_MADE = r"open|create|draft|file|submit|write|build"
_BE = rf"be(?! (?:the one|happy to|glad to|{_MAKING}|writing|building|making|posting)\b)"
_WORDS_ONLY = (
    rf"{_ADVERB}(?:admit|say|note|ask|disagree|stop|wait|stay|leave it|take that|push back|concede|not|never|{_BE})\b"
)
_LET_ME_ONLY = (
    rf"{_ADVERB}(?:know|see|push back|ask|say|add|admit|note|disagree|think|explain|clarify|not|never|{_BE})\b"
)
_I_WILL = rf"I(?:'ll| will)(?! {_WORDS_ONLY})"
_LET_ME = rf"let me(?! {_LET_ME_ONLY})"
_GOING_TO = r"I(?:'m| am) going to"

EMPTY_PROMISE = _whole(
    _I_WILL,
    _LET_ME,
    _GOING_TO,
    r"I(?:'m| am) (?:opening|creating)",
    r"I(?:'d| would) like to create",
    r"I want to (?:create|open)",
    r"I should (?:create|open)",
    r"I(?:'d| would) be happy to create",
    r"I(?:'m| am) happy to create",
    rf"about to (?:{_MADE})",
)
"""Matches an announcement of work without a commitment; an announcement of mere words does not count."""

NON_OWNER_ACTION = _whole(
    _I_WILL, _LET_ME, _GOING_TO, rf"I(?:'m| am) (?:{_MAKING})", rf"about to (?:{_MADE}|make|post)"
)
"""Matches an announcement of work by an agent that was not elected to do it."""

REPO_AMNESIA = _whole(
    r"(?:which|what) repo(?:sitory)?",
    r"what(?:'s| is) the repo",
    r"(?:drop|share) the repo",
    r"where\b[^.!?]{0,60} filed",
    r"where was it",
    r"where should (?:I|we)",
    r"where do (?:I|we|you)",
    r"can you (?:drop|share|post|give)\b[^.!?]{0,60} (?:repo|link|url)",
    r"the repo(?:sitory)? (?:you|we) want",
)
"""Matches a question for a repository that everybody knows."""

META_DISCUSSION = _whole(
    r"should (?:include|cover|have|contain)",
    r"acceptance criteria",
    r"checklist (?:for|that|with)",
    r"I(?:'d| would) (?:structure|organi[sz]e|frame|scope|define)",
    r"the (?:issue|plan) (?:would|could|should)",
    r"items (?:for|in) the",
)
"""Matches talk about what an artefact should contain, instead of making it."""

SCOPE_INFLATION = _whole(
    r"I(?:'d| would)(?: also)? add",
    r"one more thing",
    r"one thing I(?:'d| would)",
    r"the extra (?:thing|piece|bit)",
    r"I(?:'d| would) insist on",
    r"I want to add",
    r"to add to that",
    r"to supplement",
    r"I(?:'d| would) (?:tack on|append)",
)
"""Matches additions to a request beyond what was asked."""

_ANYBODY = r"someone|somebody|anyone|anybody|folks|they|you"
_THING = r"(?:\w+ ){0,3}(?:issue|plan|PR|pull request|ticket)"


@lru_cache(maxsize=_PEER_SETS_REMEMBERED)
def deference(peers: frozenset[str]) -> regex.Pattern[str]:
    """Return a pattern of waiting for somebody else to do it: one of `peers`, or anybody."""
    names = [rf"@?{regex.escape(plain(name))}" for name in sorted(peers) if plain(name)]
    who = "|".join([*names, _ANYBODY])
    return _whole(
        rf"if (?:{who}) (?:opens|creates|does|drafts|wants|is up)",
        r"if folks want",
        rf"once (?:{who}) (?:opens|creates|does|decides?)",
        r"once\b[^.!?]{0,80}? is up",
        rf"when (?:{who}) (?:does|opens|creates)",
        rf"(?:if|once|when) (?:{_ANYBODY}) (?:open|create|draft) {_THING}",
        r"I(?:'ll| will) wait for",
        r"happy to review once",
    )


_URL = lazy_regex(r"https?://\S*[^\s.,;:!?)\]\"'}>]")
_END = lazy_regex(r"(?<![.!?])[.!?]++[\"'”’)\]*_]*+(?=\s|\Z)|[。！？]++|;(?=\s)")  # noqa: RUF001 - these characters
_LINE_END = lazy_regex(r"\n")


def count_sentences(message: str) -> int:
    """Return the number of sentence ends: full stops, question and exclamation marks, semicolons, outside of links."""
    return len(_ends(message))


def _ends(message: str) -> list[int]:
    masked = _URL.sub(lambda link: "x" * len(link[0]), message)
    return [found.end() for found in _END.finditer(masked)]


_ITEM = lazy_regex(r"[ \t]*(?:[-•*]|(?![0-9]{4}[.)])[0-9]++[.)])\s")
_STEP = lazy_regex(r"(?<!\S)\(?([0-9]{1,2})\)(?=\s)|[()]")


def has_list(message: str) -> bool:
    """Return whether a line outside code begins like a list item, or steps are numbered `(1) … (2)` in the text.

    A year does not begin an item, nor do words in bold.
    """
    lines = message.splitlines()
    prose = [line for line, code in zip(lines, in_code(lines), strict=True) if not code]
    return any(_ITEM.match(line) for line in prose) or _counts_up("\n".join(prose))


def _counts_up(text: str) -> bool:
    """Return whether a number in brackets is followed by the next one. `(see page 3)` is a remark, not a step."""
    depth, last = 0, None
    for found in _STEP.finditer(text):
        sign = found[0]
        if sign == "(":
            depth += 1
        elif sign == ")" or (depth and not sign.startswith("(")):
            depth = max(depth - 1, 0)
        elif last is not None and int(found[1]) == last + 1:
            return True
        else:
            last = int(found[1])
    return False


def check_empty_promise(message: str) -> bool:
    """Return whether work is announced. Call it only for messages without a commitment."""
    return EMPTY_PROMISE.search(plain(message)) is not None


def check_deference(message: str, peers: Iterable[str] = ()) -> bool:
    """Return whether the author waits until one of `peers`, or anybody, does it."""
    return deference(frozenset(peers)).search(plain(message)) is not None


def check_repo_amnesia(message: str) -> bool:
    """Return whether it asks for the repository. Call it only if that is known."""
    return REPO_AMNESIA.search(plain(message)) is not None


def check_meta_discussion(message: str) -> bool:
    """Return whether it is about what an artefact should contain."""
    return META_DISCUSSION.search(plain(message)) is not None


def check_scope_inflation(message: str) -> bool:
    """Return whether it adds more to a request."""
    return SCOPE_INFLATION.search(plain(message)) is not None


def check_action_language(message: str) -> bool:
    """Return whether it announces the author's own work. Call it only for members who are not the assignee."""
    return NON_OWNER_ACTION.search(plain(message)) is not None
