"""The turns of phrase that the checks look for, as data: each table one rule of good talk between agents.

Written for text of straight quotes and single spaces, in any case, as whole words; see `plain`. Gaps are bounded, so
that a long message costs no more than its length.
"""

from __future__ import annotations

from functools import lru_cache

import regex

from common.text.strings import normalize_quotes

_INVISIBLE = regex.compile(r"\p{Cf}+")
_SPACE = regex.compile(r"\s+")
_PEER_SETS_REMEMBERED = 64
_MESSAGES_REMEMBERED = 8


@lru_cache(maxsize=_MESSAGES_REMEMBERED)
def plain(message: str) -> str:
    """`message` as phrases are sought in it: straight quotes, nothing invisible, single spaces, trimmed."""
    return _SPACE.sub(" ", _INVISIBLE.sub("", normalize_quotes(message))).strip()


def _whole(*phrases: str) -> regex.Pattern[str]:
    return regex.compile(rf"(?<!\w)(?:{'|'.join(phrases)})(?!\w)", regex.IGNORECASE)


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
"""Work that is promised and not committed. What is only going to be said is no work."""

NON_OWNER_ACTION = _whole(
    _I_WILL, _LET_ME, _GOING_TO, rf"I(?:'m| am) (?:{_MAKING})", rf"about to (?:{_MADE}|make|post)"
)
"""Work that somebody announces who was not elected to do it."""

ECHO_OPENER = regex.compile(
    r"""(?:
        I\ agree | I(?:'m|\ am)\ aligned | I\ like\ [\w.-]+'s | Building\ on | Exactly
      | (?:(?:some|such|very|really|all|both|those\ are|these\ are|you\ make|you\ raise)\ )*(?:an?\ )?
        (?:great|good|excellent|brilliant|fantastic|wonderful|super)\ points? | Absolutely
      | That(?:'s|\ is)\ a\ great | Well\ said | To\ echo | To\ add | I(?:'|\ woul)d\ add | I\ like\ th(?:e|at)
      | (?:The\ )?one\ thing\ I(?:'|\ woul)d | I(?:'m|\ am)\ with\ @?[\w.-]*\w | Same\ here | This\ resonates
      | Strongly\ agree | I\ share\ [\w.-]+'s | I\ second
      )(?![\w-])
      | On\ "[^"]{1,300}"\ ?(?::|—|--)
    """,
    regex.IGNORECASE | regex.VERBOSE,
)
"""How a message begins that goes on to say what was said."""

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
"""Asking for a repository that everybody knows."""

META_DISCUSSION = _whole(
    r"should (?:include|cover|have|contain)",
    r"acceptance criteria",
    r"checklist (?:for|that|with)",
    r"I(?:'d| would) (?:structure|organi[sz]e|frame|scope|define)",
    r"the (?:issue|plan) (?:would|could|should)",
    r"items (?:for|in) the",
)
"""Talking about what an artefact should hold instead of making it."""

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
"""Piling more onto a request than was asked."""

_ANYBODY = r"someone|somebody|anyone|anybody|folks|they|you"
_THING = r"(?:\w+ ){0,3}(?:issue|plan|PR|pull request|ticket)"


@lru_cache(maxsize=_PEER_SETS_REMEMBERED)
def deference(peers: frozenset[str]) -> regex.Pattern[str]:
    """Waiting for somebody else to do it: one of `peers`, or anybody."""
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
