"""Classifies what the host of a room wants with a message, as far as its form shows: an act, a follow-up, a discussion.

Polite requests have the form of questions, and questions about work look like requests; so explicit requests are tried
first, then questions about work, then discussion. What no form shows is left to a model. Pure.
"""

import re
from dataclasses import dataclass
from typing import Literal

from common.text import intent_rules as rules
from common.text.strings import normalize_quotes

HostIntent = Literal["action_request", "discussion", "follow_up", "withdrawal"]
Confidence = Literal["high", "ambiguous"]

_READ_CHARS = 4000
_FEW_WORDS = 6
_MOST_GREETINGS = 6
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_MAKING = re.compile(rf"(?:{rules.MAKING})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class IntentResult:
    """The intent of a message; `ambiguous`: its form does not show it, and `discussion` is only the safe guess."""

    intent: HostIntent
    confidence: Confidence


_AMBIGUOUS = IntentResult("discussion", "ambiguous")


@dataclass(frozen=True, slots=True)
class _Request:
    """A request that was found: its verb, and its object."""

    verb: str
    rest: str

    @property
    def makes(self) -> bool:
        return _MAKING.fullmatch(self.verb) is not None

    @property
    def wants_opinion(self) -> bool:
        voiced = rules.VOICING.match(self.verb) and rules.OPINION.match(self.rest)
        return bool(voiced) and not rules.WRITTEN_DOWN.search(self.rest)


def classify_host_intent_structural(message: str, *, request_open: bool = False) -> IntentResult:
    """Return what the form of `message` shows.

    Args:
        message: the host's text.
        request_open: whether a host request is still open; "give me the …" is then a follow-up.

    """
    text = _bare(" ".join(normalize_quotes(message[:_READ_CHARS]).split()))
    asks = "?" in rules.LINK.sub("", text)
    request = _request(text)
    follows = rules.holds(rules.FOLLOW_UPS, text) or (
        request_open and rules.holds(rules.FOLLOW_UPS_OF_OPEN_REQUEST, text)
    )
    if follows and not (request and request.makes) and (asks or request_open or len(text.split()) <= _FEW_WORDS):
        return IntentResult("follow_up", "high")
    if request and request.wants_opinion:
        return IntentResult("discussion", "high")
    if request:
        return IntentResult("action_request", "high")
    if rules.SURE_OF_US.match(text):
        return _AMBIGUOUS
    if follows:
        return IntentResult("follow_up", "high")
    talks = _is_talk(text, asks=asks) and not any(map(_perhaps_asked, _SENTENCE.split(text)))
    return IntentResult("discussion", "high") if talks else _AMBIGUOUS


def requests(text: str) -> bool:
    """Return whether the form of `text` asks its reader to do or tell something, without being a question."""
    plain = _bare(" ".join(normalize_quotes(text[:_READ_CHARS]).split()))
    return _request(plain) is not None or any(rules.TELLING.match(_bare(one)) for one in _SENTENCE.split(plain))


def _bare(text: str) -> str:
    """Return `text` without the greeting or name at its beginning; the whole text if there is nothing else."""
    bare = text
    for _ in range(_MOST_GREETINGS):
        greeted = rules.GREETING.match(bare)
        if greeted:
            shorter = bare[greeted.end() :]
            named = rules.GREETED_NAME.match(shorter) if greeted["hello"] else None
            shorter = shorter[named.end() :] if named and not rules.NO_GREETED_NAME.match(shorter) else shorter
        else:
            called = rules.NAME_BEFORE_COMMA.match(bare)
            shorter = bare[called.end() :] if called and not rules.NO_NAME.match(called["name"]) else bare
        if shorter in {bare, ""}:
            break
        bare = shorter
    return bare


def _request(text: str) -> _Request | None:
    """Return the explicit request in `text`: at its beginning, or at that of a later sentence if it is unmistakable."""
    found = _asked(text) or _found(rules.NEEDED.search(text))
    if found or rules.SURE_OF_US.match(text):
        return found
    polite = rules.POLITE.match(text)
    urged = rules.URGED.match(text)
    if urged:
        found = _found(urged, bare=rules.BY_ITSELF.match(text) is not None)
    else:
        found = _found(rules.IMPERATIVE.match(text[polite.end() :] if polite else text), bare=polite is None)
    return found or next(filter(None, map(_asked_later, _SENTENCE.split(text)[1:])), None)


def _asked_later(sentence: str) -> _Request | None:
    bare = _bare(sentence)
    found = _asked(bare) or (_found(rules.URGED.match(bare)) if rules.POLITE.match(bare) else None)
    return found if found and found.rest.strip(" .!?") and not found.wants_opinion else None


def _asked(text: str) -> _Request | None:
    match = rules.ASKED_OF_SOMEBODY.match(text)
    if match and match["gerund"]:
        known = rules.MAKING_GERUND.match(match["gerund"])
        return _Request(match["gerund"], text[match.end() :]) if known else None
    return _found(match)


def _perhaps_asked(sentence: str) -> bool:
    """Return whether somebody seems to be addressed and work is named after that; asking for an opinion is not work."""
    start = rules.PERHAPS_ASKED.search(sentence)
    work = rules.PERHAPS_WORK.search(sentence, start.end()) if start else None
    found = _found(work)
    return found is not None and not found.wants_opinion


def _found(match: re.Match[str] | None, *, bare: bool = False) -> _Request | None:
    """Return the request whose verb a rule found. Only a `bare` first word may be a noun instead."""
    if match is None:
        return None
    words = match.string[match.start("verb") :]
    if rules.NO_WORK.match(words) or (bare and rules.NOUN_INSTEAD.match(words)):
        return None
    return _Request(match["verb"], match.string[match.end() :])


def _is_talk(text: str, *, asks: bool) -> bool:
    is_talk = rules.holds(rules.TALK, text) or (asks and rules.holds(rules.QUESTIONS, text))
    return is_talk or rules.LINK.fullmatch(text) is not None
