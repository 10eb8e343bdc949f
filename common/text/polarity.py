"""Tells whether one text denies what another says in nearly the same words: negations, opposites, other figures. Pure.

Words that are counted without order take "do not prune in May" and "prune in May" for the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import regex

from common.text.stems import STOPWORDS, common_stem
from common.text.strings import normalize_quotes

_TOKEN = regex.compile(r"[\p{L}\p{M}\p{N}][\p{L}\p{M}\p{N}']{0,60}|[.,;:!?()\u2013\u2014]")
_NEGATIONS = frozenset(
    {"not", "no", "never", "neither", "nor", "without", "cannot", "cant", "dont", "hardly", "nobody"}
)
_CLAUSE_ENDS = frozenset(
    {"but", "because", "so", "if", "when", "unless", "until", "while", "though", "although", "and"}
)
_NEGATED_STEMS = 2
_DENIAL = regex.compile(
    r"""\W*(?: no(?=[,.;:!\u2013\u2014]) | nope | wrong | not\ (?:so|true|really|quite) | i\ doubt
      | (?:i\ )?(?:respectfully\ |strongly\ )?disagree | on\ the\ contrary | (?:quite\ )?the\ opposite
      | that(?:'s|\ is)(?:\ simply|\ just)?\ (?:wrong|false|not\ true|a\ myth) )\b""",
    regex.IGNORECASE | regex.VERBOSE,
)
_OPPOSITES = """
    more less; most least; always never; before after; increase decrease; increase reduce; raise lower; rise fall
    high low; fast slow; faster slower; good bad; better worse; best worst; easy hard; cheap expensive; big small
    large small; long short; early late; first last; open close; start stop; add remove; keep drop; enable disable
    allow forbid; allow block; accept reject; safe dangerous; safe unsafe; help hurt; help harm; strong weak; hot cold
    warm cold; wet dry; light dark; light heavy; public private; love hate; win lose; gain lose; often rarely
    often seldom; everyone nobody; everything nothing; all none; true false; right wrong; possible impossible
    necessary unnecessary; useful useless; trust distrust; like dislike; agree disagree
    merge split; push pull; buy sell; morning evening; day night; summer winter; north south; above below
"""
_PAIRS = frozenset(
    frozenset(common_stem(word) for word in pair.split()) for line in _OPPOSITES.split("\n") for pair in line.split(";")
    if len(pair.split()) > 1
)  # fmt: skip
_FUNCTION_WORDS_WITH_OPPOSITES = frozenset({"more", "most", "all"})
_MESSAGES_REMEMBERED = 256


@dataclass(frozen=True, slots=True)
class _Said:
    """What a text says: its stems, those that are denied, how many denials, its figures, whether it opens with one."""

    stems: frozenset[str]
    denied: frozenset[str]
    denials: int
    figures: frozenset[str]
    opens_with_denial: bool


def contradicts(message: str, other: str) -> bool:
    """Whether `message` denies what `other` affirms, or the other way round; for texts that share most words."""
    one, two = _read(message), _read(other)
    shared = one.stems & two.stems
    if one.opens_with_denial != two.opens_with_denial:
        return True
    if one.figures and two.figures and not one.figures & two.figures:
        return True
    # NOTE(self): a sentence turned round moves its "not" to other words, and has as many of them as before.
    if one.denials != two.denials and shared & (one.denied ^ two.denied):
        return True
    return any(
        frozenset((mine, theirs)) in _PAIRS for mine in one.stems - two.stems for theirs in two.stems - one.stems
    )


@lru_cache(maxsize=_MESSAGES_REMEMBERED)
def _read(text: str) -> _Said:
    plain = normalize_quotes(text).lower()
    stems, denied, denials, left = set[str](), set[str](), 0, 0
    for token in _TOKEN.findall(plain):
        if token in _NEGATIONS or token.endswith("n't"):
            denials, left = denials + 1, _NEGATED_STEMS
        elif token in _CLAUSE_ENDS or not token[0].isalnum():
            left = 0
        elif token.isdigit() or (token not in STOPWORDS and len(token) > 1):
            stem = common_stem(token)
            stems.add(stem)
            if left:
                denied.add(stem)
                left -= 1
        elif token in _FUNCTION_WORDS_WITH_OPPOSITES:
            stems.add(token)
    figures = frozenset(stem for stem in stems if stem[0].isdigit())
    return _Said(frozenset(stems), frozenset(denied), denials, figures, _DENIAL.match(plain) is not None)
