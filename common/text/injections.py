"""Posts that give a model orders: to put its instructions aside, or to hand out what it keeps to itself. Pure.

A floor, not a wall: what stops a post like these from doing harm is provenance, which does not depend on words. Here is
only decided who gets neither an answer nor a like. Talk about such posts is none.
"""

from __future__ import annotations

import re
import unicodedata

from common.text.lookalikes import shape

_MOST_CHARS = 4_000
_HIDDEN = re.compile("[\u00ad\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")
_BLANKS = re.compile(r"\s+")
_HANDLE = re.compile(r"@[\w.:-]{1,253}")
_BEGINS = (
    r"(?:(?:^|[.!?:;,()\]\n-]) ?(?:(?:please|now|ok|okay|hey|hi|hello|and|then|just|so|system|user|admin|assistant) )?"
    r"|\b(?:please|you (?:must|should|will|have to|are to|need to)|(?:need|want|order|command|ask|tell) you to) )"
)
_TARGET = (
    r"(?:instructions?|rules|prompts?|guidelines|programming|directives?|constraints|orders|guardrails|restrictions"
    r"|training|polic(?:y|ies)|system message|commands)"
)
_WHOSE = (
    r"(?:all|any|every|your|previous|prior|above|preceding|earlier|former|existing|current|system|original|initial"
    r"|developer|hidden|safety)"
)
_FILLERS = r"(?:(?:of|the|my|other|these|those|such|and) )"
_PUT_ASIDE = r"(?:ignore|disregard|forget|override|bypass|discard|disobey|stop following|do not follow|don't follow)"
_ORDERS = re.compile(
    rf"{_BEGINS}{_PUT_ASIDE} (?:{_FILLERS}{{0,3}}{_WHOSE} ){{1,4}}{_FILLERS}{{0,3}}(?:[\w-]{{1,20}} ){{0,1}}{_TARGET}\b"
    rf"|{_BEGINS}{_PUT_ASIDE} (?:everything|all|anything) (?:that )?(?:above|before this|you (?:were|have been|are) "
    r"(?:told|taught|given|instructed))"
    rf"|{_BEGINS}{_PUT_ASIDE} (?:the|all) {_TARGET} (?:above|before|you (?:were|have been) given)"
    r"|\bfrom now on,? you (?:will )?(?:only )?(?:obey|serve|answer to|work for|follow) (?:only )?me\b"
    r"|\byou are now (?:dan|unrestricted|jailbroken|uncensored|in developer mode|without (?:any )?rules)\b"
    r"|\bnew system (?:prompt|instructions?) ?:"
    r"|\bignorier\w{0,3} (?:bitte )?(?:(?:alle|deine|die|all|ihre|bisherigen|vorherigen|obigen) ){1,4}"
    r"(?:anweisungen|regeln|vorgaben|instruktionen)"
    r"|\b(?:ignora|olvida|ignore|ignorez|oublie|oubliez|dimentica|esqueca|esquece) (?:(?:todas|todos|toutes|tutte|todas"
    r"|tes|tus|tuas|vos|le|les|las|as|de) ){1,3}(?:(?:tus|tuas|tue|tes) )?(?:instru[ck]ciones|instructions|consignes"
    r"|istruzioni|instrucoes)"
)
_SECRETS = re.compile(
    r"\b(?:reveal|print|show|output|repeat|post|leak|send|paste|dump|expose|give (?:me|us)|tell (?:me|us)"
    r"|what is|what's)"
    r" (?:(?:me|us|out|the|all|of|word for word|verbatim|exact|full|contents?) ){0,4}your (?:[\w-]{1,20} ){0,2}"
    r"(?:system prompt|prompt|instructions|passwords?|api ?keys?|keys?|tokens?|credentials?|secrets|env(?:ironment)?"
    r"(?: file| variables)?)\b"
)


def gives_orders(text: str) -> bool:
    """Whether `text` tells its reader to put its instructions aside."""
    return _ORDERS.search(_plain(text)) is not None


def asks_for_secrets(text: str) -> bool:
    """Whether `text` wants to be told passwords, keys or the instructions themselves."""
    return _SECRETS.search(_plain(text)) is not None


def _plain(text: str) -> str:
    """Lower case, one blank between words, without what hides, what looks alike, accents and handles."""
    shown = _HIDDEN.sub("", unicodedata.normalize("NFKC", text[:_MOST_CHARS]))
    bare = "".join(char for char in unicodedata.normalize("NFKD", shape(shown)) if not unicodedata.combining(char))
    return _HANDLE.sub("", _BLANKS.sub(" ", bare.replace("’", "'"))).strip()  # noqa: RUF001 - the sign meant
