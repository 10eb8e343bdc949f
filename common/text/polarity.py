"""Detects whether one text denies another in nearly the same words: negations, opposites, figures, roles. Pure.

Words that are counted without order take "do not prune in May" and "prune in May" for the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import regex

from common.text.patterns import lazy_regex
from common.text.stems import STOPWORDS, common_stem
from common.text.strings import normalize_quotes

_TOKEN = lazy_regex(r"[\p{L}\p{M}\p{N}][\p{L}\p{M}\p{N}']{0,60}|[.,;:!?()\u2013\u2014]")
_NEGATIONS = frozenset(
    {"not", "no", "never", "neither", "nor", "without", "cannot", "cant", "dont", "hardly", "nobody", "non"}
)
_CLAUSE_ENDS = frozenset(
    {"but", "because", "so", "if", "when", "unless", "until", "while", "though", "although", "and"}
)
_NEGATED_STEMS = 2
_DENIAL = lazy_regex(
    r"""\W*(?: no(?=[,.;:!\u2013\u2014]) | nope | wrong | not\ (?:so|true|really|quite) | i\ doubt
      | (?:i\ )?(?:respectfully\ |strongly\ )?disagree | on\ the\ contrary | (?:quite\ )?the\ opposite
      | that(?:'s|\ is)(?:\ simply|\ just)?\ (?:wrong|false|not\ true|a\ myth) )\b""",
    regex.IGNORECASE | regex.VERBOSE,
)
_DENYING = lazy_regex(
    r"""\b(?: it(?:'s|\ is)(?:\ simply|\ just)?\ (?:false|untrue|wrong|a\ myth)\ that
      | i\ (?:refuse\ to\ believe|doubt|deny|dispute)(?:\ (?:that|whether|if))?
      | there(?:'s|\ is)\ no\ (?:way|evidence)(?:\ that)? | (?:fail(?:s|ed)?|refuse[sd]?)\ to | by\ no\ means )\b""",
    regex.VERBOSE,
)
"""What says "not" in other words."""
_PREFIXES = ("un", "in", "im", "ir", "il", "dis", "non")
_SHORTEST_PREFIXED = 4
_NOT_PREFIXED = """
    discount discover dismiss display dispatch distress impart import impose impress improve incite income increase
    inform input inside insight inspire install instead instill intend intent invest under until unless irate
"""
"""Words that begin like a prefix and deny nothing."""
_NO_PREFIX = tuple(_NOT_PREFIXED.split())
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday"
_MONTHS = "january february march april june july august september october november december"
_SEASONS = "spring summer autumn winter"
_NAMED_TIMES = {
    name: kind for kind, names in enumerate((_WEEKDAYS, _MONTHS, _SEASONS)) for name in names.split()
}  # fmt: skip
_NUMBER_WORDS = "two three four five six seven eight nine ten eleven twelve"
_NUMBERS = {word: str(number) for number, word in enumerate(_NUMBER_WORDS.split(), start=2)}
_OPPOSITES = """
    more less; most least; always never; before after; increase decrease; increase reduce; raise lower; rise fall
    high low; fast slow; faster slower; good bad; better worse; best worst; easy hard; cheap expensive; big small
    large small; long short; early late; first last; open close; start stop; add remove; keep drop; enable disable
    allow forbid; allow block; accept reject; safe dangerous; help hurt; help harm; strong weak
    hot cold; warm cold; wet dry; light dark; light heavy; public private; love hate; win lose; gain lose; often rarely
    often seldom; everyone nobody; everything nothing; all none; true false; right wrong
    useful useless; keep stop; stop continue; usually seldom; usually rarely; always seldom; always rarely
    usually never; often never; many few; everybody few; everyone few; most few; pass fail; succeed fail
    success failure; full empty; simple complex
    grow shrink; except including; in out; because although; begin end; build destroy; rich poor; old new; near far
    merge split; push pull; buy sell; morning evening; day night; summer winter; north south; above below
"""
_PAIRS = frozenset(
    frozenset(common_stem(word) for word in pair.split()) for line in _OPPOSITES.split("\n") for pair in line.split(";")
    if len(pair.split()) > 1
)  # fmt: skip
_FUNCTION_WORDS_WITH_OPPOSITES = frozenset({"more", "most", "all", "in", "out"})
_ARTICLES = frozenset({"the", "a", "an"})
_SYMMETRIC = frozenset({"and", "or", "nor", "with", "as", "well", "equals", "is", "are"})
"""Words that may stand between two others that change places, and say the same."""
_MESSAGES_REMEMBERED = 256
_DENYING_WORD = lazy_regex(r"n't\b|\bnever\b|(?<=\bcan)not\b")
_EVER = lazy_regex(r"\bever\b")
_DENYING_PREFIX = lazy_regex(
    rf"\b(?!{'|'.join(_NOT_PREFIXED.split())})(?:un|non-?)(?=\p{{L}}{{{_SHORTEST_PREFIXED},}})"
)
_SWAPPED_WORD = lazy_regex(r"[\p{L}\p{M}\p{N}']{1,60}")
_SWAPPED_WORDS = 60


@dataclass(frozen=True, slots=True)
class _ParsedStatement:
    """What a text says: its stems, those that are denied, how many denials, its figures, whether it opens with one.

    `positive` are the stems of its words that begin with a denying prefix, without that; `times` are the weekdays,
    months and seasons, each with its kind.
    """

    stems: frozenset[str]
    denied: frozenset[str]
    denials: int
    figures: frozenset[str]
    times: frozenset[tuple[int, str]]
    positive: frozenset[str]
    opens_with_denial: bool


def contradicts(message: str, other: str) -> bool:
    """Whether `message` denies what `other` affirms, or the other way round; for texts that share most words."""
    one, two = _read(message), _read(other)
    if swaps_roles(message, other):
        return True
    shared = one.stems & two.stems
    if one.opens_with_denial != two.opens_with_denial:
        return True
    if (one.figures and two.figures and not one.figures & two.figures) or _other_time(one, two):
        return True
    if (one.positive & (two.stems - one.stems)) - two.denied or (two.positive & (one.stems - two.stems)) - one.denied:
        return True
    # NOTE(self): a sentence turned round moves its "not" to other words, and has as many of them as before.
    unsaid = (one.denied & two.positive) | (two.denied & one.positive)
    if one.denials != two.denials and shared & (one.denied ^ two.denied) and not unsaid:
        return True
    return any(
        frozenset((mine, theirs)) in _PAIRS for mine in one.stems - two.stems for theirs in two.stems - one.stems
    )


def swaps_roles(message: str, other: str) -> bool:
    """Whether the only difference is that two parts changed places around a third: who does it to whom, or when.

    A clause that moves to the other end says the same, and so do two things, or two clauses, joined by "and".
    """
    one, two = (_SWAPPED_WORD.findall(normalize_quotes(text).lower())[:_SWAPPED_WORDS] for text in (message, other))
    if one == two or sorted(one) != sorted(two):
        return False
    first = next(place for place, pair in enumerate(zip(one, two, strict=True)) if pair[0] != pair[1])
    last = next(place for place in range(len(one), 0, -1) if one[place - 1] != two[place - 1])
    one, two = one[first:last], two[first:last]
    size = len(one)
    middles = [
        one[front : size - back]
        for front in range(1, size)
        for back in range(1, size - front)
        if [*one[size - back :], *one[front : size - back], *one[:front]] == two
    ]
    joints = [[word for word in middle if word not in _ARTICLES] for middle in middles]
    return bool(middles) and not any(joint and _SYMMETRIC.issuperset(joint) for joint in joints)


def spell_denials(text: str) -> str:
    """`text` in lower case with each denial as the word "not", so that "unwise" and "not wise" share their words."""
    plain = _DENYING_WORD.sub(" not ", _EVER.sub(" ", normalize_quotes(text).lower()))
    return _DENYING_PREFIX.sub("not ", plain)


def _other_time(one: _ParsedStatement, two: _ParsedStatement) -> bool:
    """Whether both name a weekday, a month or a season, and none that the other one names, too."""
    kinds = {kind for kind, _ in one.times} & {kind for kind, _ in two.times}
    return any(kind not in {kind for kind, _ in one.times & two.times} for kind in kinds)


def _positive(word: str) -> str:
    """The stem of `word` without the prefix that denies it; empty where there is none."""
    prefix = next(filter(word.startswith, _PREFIXES), "")
    rest = word.removeprefix(prefix)
    denies = prefix and len(rest) >= _SHORTEST_PREFIXED and not word.startswith(_NO_PREFIX)
    return common_stem(rest) if denies else ""


@lru_cache(maxsize=_MESSAGES_REMEMBERED)
def _read(text: str) -> _ParsedStatement:
    plain = normalize_quotes(text).lower()
    stems, denied, denials, left = set[str](), set[str](), 0, 0
    tokens = _TOKEN.findall(_DENYING.sub(" not ", plain))
    for token in tokens:
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
            stems.add(common_stem(token))
    return _ParsedStatement(
        stems=frozenset(stems),
        denied=frozenset(denied),
        denials=denials,
        figures=frozenset(_NUMBERS.get(one, one) for one in {*stems, *tokens} if one in _NUMBERS or one[0].isdigit()),
        times=frozenset(
            (_NAMED_TIMES[one], one) for token in tokens if (one := token.removesuffix("s")) in _NAMED_TIMES
        ),
        positive=frozenset(filter(None, map(_positive, tokens))),
        opens_with_denial=_DENIAL.match(plain) is not None,
    )
