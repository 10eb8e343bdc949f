"""Where words alone cannot tell whether a text repeats another: the words are alike, and the sense may differ. Pure.

"Slate lasts a shorter time than copper" has nearly the words of "Slate lasts longer than copper". Which words are
opposites no list knows whole; so any such difference is a doubt, and whoever asks a judge decides it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from common.text.polarity import spell_denials
from common.text.stems import STOPWORDS, common_stem, plain_words

_FEWEST_SHARED = 2
_MOST_REPLACED = 2
_MOST_WORDS = 120
_COMPARING = "than"
_PASSIVE = "by"
_DENIALS = frozenset({"not", "no", "never", "nor", "neither", "nobody", "nothing", "none", "without", "cannot"})
_HEDGES = frozenset({"think", "agre", "agree", "belief", "believ", "guess", "yes", "indeed", "exact", "true", "right"})


def doubtful_echo(text: str, said: Iterable[str]) -> str:
    """Return the one of `said` that has most words with `text` in common, if it may mean something else; "" if not."""
    words = _words(text)
    nearest, shared = "", 0.0
    for one in said:
        share = _overlap(words, _words(one))
        if share > shared:
            nearest, shared = one, share
    return nearest if nearest and _may_differ(words, _words(nearest)) else ""


def _words(text: str) -> tuple[str, ...]:
    return tuple(plain_words(spell_denials(text))[:_MOST_WORDS])


def _telling(words: Iterable[str]) -> list[str]:
    """The stems of the words that carry something, in order."""
    return [stem for word in words if word not in STOPWORDS and (stem := common_stem(word)) not in _HEDGES]


def _overlap(one: tuple[str, ...], two: tuple[str, ...]) -> float:
    mine, theirs = Counter(_telling(one)), Counter(_telling(two))
    both = mine.total() + theirs.total()
    return 2 * (mine & theirs).total() / both if both else 0.0


def _may_differ(one: tuple[str, ...], two: tuple[str, ...]) -> bool:
    """Whether a comparison, a denial, a figure, one word in the place of another, or the roles differ."""
    mine, theirs = _telling(one), _telling(two)
    new, gone = Counter(mine) - Counter(theirs), Counter(theirs) - Counter(mine)
    if len(set(mine) & set(theirs)) < _FEWEST_SHARED:
        return False
    passive = (_PASSIVE in one) != (_PASSIVE in two)
    turns = not new and not gone and (passive or (_PASSIVE not in one and _exchanges(mine, theirs)))
    compares = _COMPARING in one and _COMPARING in two and bool(new or gone)
    denies = sum(word in _DENIALS for word in one) != sum(word in _DENIALS for word in two)
    counts = any(stem[0].isdigit() for stem in (*new, *gone))
    replaces = bool(new) and bool(gone) and min(len(new), len(gone)) <= _MOST_REPLACED
    return turns or compares or denies or counts or replaces


def _exchanges(mine: list[str], theirs: list[str]) -> bool:
    """Whether more than one run of words changed its place: an adverb or a clause that moves says the same."""
    if mine == theirs:
        return False
    first = next(place for place, pair in enumerate(zip(mine, theirs, strict=True)) if pair[0] != pair[1])
    last = next(place for place in range(len(mine), 0, -1) if mine[place - 1] != theirs[place - 1])
    one, two = mine[first:last], theirs[first:last]
    return not any([*one[cut:], *one[:cut]] == two for cut in range(1, len(one)))
