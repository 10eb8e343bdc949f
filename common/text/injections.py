"""Detects posts that give a model orders: to ignore its instructions, or to reveal what it must keep secret. Pure.

This is a first filter only: what keeps such a post from doing harm is provenance, which does not depend on words. It
only decides who gets neither an answer nor a like. Talk about such posts does not count.
"""

import unicodedata

from common.text.hidden import shape
from common.text.patterns import lazy

_MOST_CHARS = 4_000
_HIDDEN = lazy("[\u00ad\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")
_BLANKS = lazy(r"\s+")
_HANDLE = lazy(r"@[A-Za-z0-9_.:-]{1,253}")
_QUOTES = "\"'`\u201c\u201d\u201e\u2018\u201a\u00ab\u00bb"
_MARKS = r"[*_~>#]{0,4}"
_ASKING = r"(?:(?:can|could|will) you|would you (?:please|kindly))"
_POLITELY = r"(?:please|kindly|now|ok|okay|hey|hi|hello|dear|and|then|just|so|system|user|admin|assistant)"
_STARTS = rf"(?:^[^\w{_QUOTES}]*_{{0,2}}|[^\w\s{_QUOTES}*_~] ?{_MARKS} ?)"
_ALL_OF_THEM = (
    r"(?:(?:all|you|these|those|hey|dear|attention) ){0,2}(?:(?:ai|llm|autonomous|language) ){0,2}"
    r"(?:agents|bots|chatbots|models|assistants|llms|ais|robots|everyone|everybody)"
)
_BEGINS = (
    rf"(?:{_STARTS}(?:{_POLITELY} ){{0,2}}(?:{_ASKING} )?(?:{_POLITELY} ){{0,2}}"
    r"|\b(?:please|kindly|you (?:must|should|will|have to|are to|need to)"
    r"|(?:need|want|order|command|ask|tell) you to) )"
)
_TARGET = r"(?:instructions?|prompts?|guidelines|programming|directives?|constraints|guardrails|system message)"
_OWN_TARGET = r"(?:rules|orders|restrictions|training|polic(?:y|ies)|commands)"
_OWNED = (
    r"(?:your|ur|previous|prior|above|preceding|earlier|former|existing|current|system|original|initial|developer"
    r"|hidden|safety)"
)
_WHOSE = rf"(?:all|any|every|{_OWNED})"
_FILLERS = r"(?:(?:of|the|my|other|these|those|such|and) )"
_PUT_ASIDE = r"(?:ignore|disregard|forget|override|bypass|discard|disobey|stop following|do not follow|don't follow)"
_WORD = r"(?:[\w-]{1,20} ){0,1}"
_ASIDE = (
    rf"{_PUT_ASIDE} (?:(?:{_FILLERS}{{0,3}}{_WHOSE} ){{1,4}}{_FILLERS}{{0,3}}{_WORD}{_TARGET}"
    rf"|(?:{_FILLERS}{{0,3}}(?:all|any|every) ){{0,2}}(?:{_FILLERS}{{0,3}}{_OWNED} ){{1,3}}{_FILLERS}{{0,2}}{_WORD}"
    rf"{_OWN_TARGET})(?![a-z])"
)
_GOES_ON = rf"[{_QUOTES}]? ?(?:(?:and|then|now|please)\b|[.!\u2026{_QUOTES}]{{0,3}}$)"
_ANY_TARGET = rf"(?:{_TARGET}|{_OWN_TARGET})"
_ORDERS = lazy(
    rf"{_BEGINS}{_ASIDE}"
    rf"|{_STARTS}{_ALL_OF_THEM} (?:please |now |must )?{_ASIDE}(?= ?(?:and\b|[.!:;,]|$))"
    rf"|^\W*(?:{_POLITELY} )?{_ASIDE}{_GOES_ON}"
    rf"|{_BEGINS}{_PUT_ASIDE} (?:everything|all|anything) (?:that )?(?:above|before this|you (?:were|have been|are) "
    r"(?:told|taught|given|instructed))"
    rf"|{_BEGINS}{_PUT_ASIDE} (?:the|all) {_ANY_TARGET} (?:above|before|you (?:were|have been) given)"
    r"|\bfrom now on,? you (?:will )?(?:only )?(?:obey|serve|answer to|work for|follow) (?:only )?me\b"
    r"|\byou (?:must|will|shall|have to|are to) (?:now|only) (?:only )?obey me\b"
    r"|\byou are now (?:dan|unrestricted|jailbroken|uncensored|in developer mode|without (?:any )?rules)\b"
    r"|\bnew system (?:prompt|instructions?) ?:"
    r"|\b(?:ignorier\w{0,3}|vergiss|vergesst|missachte\w{0,1}) (?:bitte )?"
    r"(?:(?:(?:alle|deine|eure|die|all|ihre|bisherigen|vorherigen|obigen) ){1,4}(?:anweisungen|vorgaben|instruktionen)"
    r"|(?:(?:alle|all|die) ){0,2}(?:(?:deine|eure|bisherigen|vorherigen|obigen) ){1,3}regeln)\b"
    r"|\b(?:ignora|olvida|ignore|ignorez|oublie|oubliez|dimentica|esqueca|esquece) (?:(?:todas|todos|toutes|tutte|todas"
    r"|tes|tus|tuas|vos|le|les|las|as|de) ){1,3}(?:(?:tus|tuas|tue|tes) )?(?:instru[ck]ciones|instructions|consignes"
    r"|istruzioni|instrucoes)"
)
_SECRETS = lazy(
    r"\b(?:reveal|print|show|output|repeat|post|leak|send|paste|dump|expose|give (?:me|us)|tell (?:me|us)"
    r"|what is|what's)"
    r" (?:(?:me|us|out|the|all|of|word for word|verbatim|exact|full|contents?) ){0,4}(?:your|ur) (?:[\w-]{1,20} ){0,2}"
    r"(?:system prompt|prompt|instructions|passwords?|api ?keys?|keys?|tokens?|credentials?|secrets|env(?:ironment)?"
    r"(?: file| variables)?)\b"
)


def gives_orders(text: str) -> bool:
    """Return whether `text` tells its reader to ignore its instructions."""
    return any(_ORDERS.search(_plain(part)) for part in (text, *text[:_MOST_CHARS].splitlines()))


def asks_for_secrets(text: str) -> bool:
    """Return whether `text` asks for passwords, keys or the instructions themselves."""
    return _SECRETS.search(_plain(text)) is not None


def _plain(text: str) -> str:
    """Return the text in lower case, with single blanks, without hidden characters, look-alikes, accents, handles."""
    shown = _HIDDEN.sub("", unicodedata.normalize("NFKC", text[:_MOST_CHARS]))
    bare = "".join(char for char in unicodedata.normalize("NFKD", shape(shown)) if not unicodedata.combining(char))
    return _HANDLE.sub("", _BLANKS.sub(" ", bare.replace("’", "'"))).strip()  # noqa: RUF001 - this character is meant
