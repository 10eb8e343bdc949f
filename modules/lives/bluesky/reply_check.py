"""Finds faults of a reply: a repetition, a loop, our instructions, empty thanks, a cut-off, or a lie. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from common.text.closings import asks, content_words, only_acknowledges, only_thanks, without_handles
from common.text.echo import (
    find_said_already,
    find_semantic_echo,
    find_semantic_echo_ensemble,
    is_loop,
    plain_words,
    tokenize_for_comparison,
)
from common.text.handles import WORD
from common.text.host_intent import requests
from common.text.patterns import lazy, lazy_regex
from common.text.strings import normalize_post_text

_MOST_CHARS = 2_000
_BEFORE = r"(?:really |actually |truly |just |most definitely |definitely |certainly |indeed |very much )?"
_REAL = r"(?:real |actual |living |genuine |ordinary )*"
_PERSON = rf"(?:an? )?{_REAL}(?:human being|human|person|man|woman)\b"
_PROGRAM = r"(?:an? )?(?:bot|chatbot|robot|ai|a\.i\.|program|machine|language model|artificial intelligence)\b"
_GOES_ON = "but|and|or|nor|so|just|at all|here|if|I|like|lol|though|either|und|aber|et|mais|y|pero|e|ma|mas"
_ALONE = rf"(?!\s+(?!(?:{_GOES_ON})\b)\w)"
"""What is denied ends here: "not an AI researcher" and "no bot that sells things" say nothing of their writer."""
_QUOTED = lazy(r"[\"`\u201c\u201e][^\"`\u201c\u201d]{1,200}[\"`\u201c\u201d]|\u00ab[^\u00bb]{1,200}\u00bb")
_ASKED = r"(?<!whether )(?<!if )(?<!that )"
_CLAIMS = lazy(
    "(?:"
    + "|".join(
        (
            rf"\b{_ASKED}I(?:'m| am) {_BEFORE}{_PERSON}",
            rf"\bI(?:'m| am) (?:really |actually |certainly |definitely )?(?:not|no) {_PROGRAM}{_ALONE}",
            rf"\bI(?:'m not| am not|'m no) {_PROGRAM}{_ALONE}",
            r"\bich bin (?:doch |wirklich |natürlich )?(?:ein|eine) (?:echte[rs]? )?(?:mensch|person|mann|frau)\b",
            rf"\bich bin (?:doch |wirklich )?kein(?:e)? (?:bot|chatbot|roboter|programm|maschine|ki)\b{_ALONE}",
            r"\bje suis (?:bien |vraiment )?(?:une (?:vraie )?personne|un (?:vrai )?humain|un être humain)",
            rf"\bje ne suis pas (?:un|une) (?:bot|robot|ia|programme|machine)\b{_ALONE}",
            r"(?<!\bno )\bsoy (?:una persona|un humano|un ser humano|humano|humana)\b",
            rf"\bno soy (?:un |una )?(?:bot|robot|ia|programa|máquina)\b{_ALONE}",
            r"(?<!\bnon )\bsono (?:una persona|un essere umano|un umano)\b",
            rf"\bnon sono (?:un |una |un')?(?:bot|robot|ia|programma|macchina)\b{_ALONE}",
            r"(?<!\bnão )\bsou (?:uma pessoa|um humano|um ser humano)\b",
            rf"\bnão sou (?:um |uma )?(?:bot|robô|ia|programa|máquina)\b{_ALONE}",
        )
    )
    + r")(?![-'?]|\s+(?:rights|readable|\?))",
    re.IGNORECASE,
)
_SAYS_IT = lazy(rf"\bI(?:'m| am) (?:indeed |really |actually )?{_PROGRAM}", re.IGNORECASE)
"""A text that also says this is no lie: "I am an AI agent, and not a bot that sells things"."""
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u02bc": "'"})


def claims_to_be_a_person(text: str) -> bool:
    """Return whether `text` says in the first person that its writer is a human being, or is not a program.

    Words in quotation marks are those of others, unless they are the whole text.
    """
    plain = " ".join(text[:_MOST_CHARS].translate(_APOSTROPHES).split())
    beside = _QUOTED.sub('""', plain)
    plain = beside if content_words(beside) else plain
    return _CLAIMS.search(plain) is not None and _SAYS_IT.search(plain) is None


_RUN_WORDS, _RUN_CHARS = 10, 20
_SENTENCE_WORDS = 4
_LEAST_WORDS = 2
_LINES = 2
_PLACEHOLDER = lazy(r"\{\{\w{1,40}\}\}")
_LABELLED = lazy(r"(: @?\{\{\w{1,40}\}\}) ")
_SENTENCES = lazy(r"(?<=[.!?\u2026])\s+")
_PIECES = lazy_regex(r"(?V1)(?<=[.!?])[^\S\n]|(?<=[\p{STerm}--[.!?]])|\n")
_EDGES = " \t-*>\"'.!:;\u2026\u201c\u201d"

Runs = frozenset[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Scaffold:
    """The words that only our own prompt has: `runs` of ten words, whole `sentences`, and patterns of whole `lines`."""

    runs: Runs = frozenset()
    sentences: frozenset[str] = frozenset()
    lines: tuple[re.Pattern[str], ...] = ()

    def is_in(self, text: str, said: Sequence[str] = ()) -> bool:
        """Return whether `text` has a run or a sentence that none of `said` has, or two of `lines`, or is just one."""
        pieces = _pieces(text)
        runs, sentences = self.runs.intersection(_runs(text)), self.sentences.intersection(pieces)
        if (runs and runs - word_runs(said)) or (sentences and sentences - _sentences(said)):
            return True
        held = sum(any(line.fullmatch(piece) for line in self.lines) for piece in pieces)
        return bool(pieces) and held >= min(len(pieces), _LINES)


def scaffold_of(templates: Iterable[str], told: Iterable[str], others: Iterable[str] = ()) -> Scaffold:
    """Return the scaffold of one prompt.

    Args:
        templates: sections of skills, with their variables.
        told: such sections as they were rendered, without the words of others.
        others: texts whose words may be said, such as the SOUL's own pages.

    """
    templates, told = tuple(templates), tuple(told)
    lines = (_line(piece) for text in templates for piece in _pieces(_LABELLED.sub(r"\1\n", text)))
    ours, others = (*templates, *told), tuple(others)
    sentences = _sentences(ours) - _sentences(others)
    return Scaffold(word_runs(ours) - word_runs(others), sentences, tuple(filter(None, lines)))


def sayable(text: str, scaffold: Scaffold, said: Sequence[str] = ()) -> str:
    """Return `text` with each sentence once and without those that must not be sent; "" if nothing is left.

    These are the sentences that have words of our prompt which none of `said` has, or that call their writer a person.
    """
    kept: list[str] = []
    seen: set[str] = set()
    for line in text.splitlines():
        pieces = [piece for piece in _SENTENCES.split(line) if piece.strip().lower() not in seen]
        seen.update(piece.strip().lower() for piece in pieces if piece.strip())
        kept.append(" ".join(one for one in pieces if not unsayable(one, scaffold, said)))
    return "\n".join(kept).strip()


def word_runs(texts: Iterable[str]) -> Runs:
    """Return all runs of ten words in a row; a variable ends a run."""
    parts = (part for text in texts for part in _PLACEHOLDER.split(text))
    return frozenset(run for part in parts for run in _runs(part))


def _runs(text: str) -> Iterable[tuple[str, ...]]:
    """Yield the runs of a text: ten words; without spaces, where each sign is a word, as many as have 20 characters."""
    words = WORD.findall(" ".join(plain_words(text)))
    for start in range(len(words) - _RUN_WORDS + 1):
        run = words[start : start + _RUN_CHARS]
        size = next((size for size in range(_RUN_WORDS, len(run) + 1) if sum(map(len, run[:size])) >= _RUN_CHARS), 0)
        if size:
            yield tuple(run[:size])


def _sentences(texts: Iterable[str]) -> frozenset[str]:
    """Return the sentences of four words or more, as `_pieces` returns them, without those that have a variable."""
    pieces = (piece for text in texts for piece in _pieces(text) if not _PLACEHOLDER.search(piece))
    return frozenset(piece for piece in pieces if len(plain_words(piece)) >= _SENTENCE_WORDS)


def _pieces(text: str) -> list[str]:
    """Return lines and sentences in lower case, with single spaces, without punctuation around them or headings."""
    pieces = (piece.strip() for piece in _PIECES.split(text) if not piece.lstrip().startswith("#"))
    return [bare for piece in pieces if (bare := " ".join(piece.lower().split()).strip(_EDGES))]


def _line(piece: str) -> re.Pattern[str] | None:
    """Return a pattern for a piece of a template; None if too little of it is ours.

    After a label of one word, a variable matches a single word; after a longer one, anything. Elsewhere a variable
    counts only in a line with a digit or a handle, since "Today is a good day" is nobody's prompt.
    """
    first, *rest = _PLACEHOLDER.split(piece)
    words = plain_words(" ".join((first, *rest)))
    is_label = bool(rest) and first.rstrip("@ ").endswith(":")
    if len(words) < (1 if is_label else _LEAST_WORDS):
        return None
    gap = r"\S{1,300}" if is_label and len(words) == 1 else ".{1,300}"
    named = "(?=.*[0-9@])" if rest and not is_label else ""
    return re.compile(named + gap.join(re.escape(part) for part in (first, *rest)))


ReplyProblem = Literal["person", "instructions", "loops", "repeats", "repeats them", "unfinished", "thanks", "peers"]
"""A problem of a reply; the name of a subsection of `Answers` in the skill `bluesky-tools`."""

_ECHO_FROM = 0.8
_NOVELTY = 0.25
_QUOTED_WORDS = 5
_OWN_WORDS = 5
_PRIVATE_WORDS = 3
_CHOSEN_WORDS = 3
_UNFINISHED_WORDS = 4
_TRAILS_OFF = lazy(r"(?:\u2026|\.\.\.)[\s\"'\u201d]*$")


@dataclass(frozen=True, slots=True)
class SuspectedEcho:
    """A post that a reply may merely repeat, as its words alone suggest, and the problem that it then has."""

    post: str
    problem: Literal["repeats", "peers"]


def reply_problem(
    text: str,
    said: Sequence[str],
    scaffold: Scaffold,
    *,
    may_thank: bool,
    asked: str = "",
    others_said: Sequence[str] = (),
) -> ReplyProblem | None:
    """Return why a reply must not be sent as it is, whatever a judge would say about it; None if it may.

    Args:
        text: the reply.
        said: the posts of its thread, ours included, oldest first.
        scaffold: the words that only our own prompt has.
        may_thank: whether thanks alone are enough.
        asked: the text that is answered; if it asks for something, agreement or a sign may be the answer; if it is a
            question, what we said before it may be said again.
        others_said: of what was said, what others said, which is not said again in any case.

    """
    if found := unsayable(text, scaffold, said) or _form_problem(text):
        return found
    if is_verbatim(text, (asked, *others_said) if asks(asked) else said):
        return "repeats"
    says_nothing = only_thanks if calls_for_answer(asked) else only_acknowledges
    return "thanks" if not may_thank and says_nothing(text) else None


def calls_for_answer(text: str) -> bool:
    """Return whether a text asks its reader something, or for something."""
    return asks(text) or requests(text)


def suspected_echo(text: str, said: Sequence[str], peers_said: Sequence[str] = ()) -> SuspectedEcho | None:
    """Return the post that a reply may merely repeat; None if its words are its own.

    Words alone cannot tell a denial from a repetition, so a judge has to confirm it.

    Args:
        text: the reply.
        said: the posts of its thread, ours included.
        peers_said: what peers wrote in the thread: a reply must say something that none of them said.

    """
    near = find_semantic_echo(text, said, _ECHO_FROM)
    given_back = near.matched_message if near.is_echo else next((post for post in said if gives_back(text, post)), "")
    if given_back:
        return SuspectedEcho(given_back, "repeats")
    echo = find_semantic_echo_ensemble(text, peers_said, peers_said, novelty_threshold=_NOVELTY)
    if not (echo.is_echo or echo.is_near):
        return None
    return SuspectedEcho(
        echo.matched_message or find_semantic_echo(text, peers_said).matched_message or peers_said[-1], "peers"
    )


def unsayable(text: str, scaffold: Scaffold, said: Sequence[str] = ()) -> Literal["person", "instructions"] | None:
    """Return why `text` must not be sent: it calls its writer a person, or has words of our prompt; None if it may."""
    if claims_to_be_a_person(text):
        return "person"
    return "instructions" if scaffold.is_in(text, said) else None


def repeats(text: str, original: str) -> bool:
    """Return whether `text` is a run of three or more words of `original`, ignoring handles, links and punctuation.

    What is inside a question, or at its beginning in three words, may be the choice that it offers.
    """
    words, others = (plain_words(normalize_post_text(one)) for one in (text, original))
    is_run = len(words) >= _CHOSEN_WORDS and f" {' '.join(words)} " in f" {' '.join(others)} "
    if not is_run or not asks(original):
        return is_run
    pieces = [plain_words(normalize_post_text(piece)) for piece in _pieces(original)]
    begun = any(list(chain(*pieces[at:]))[: len(words)] == words for at in range(len(pieces)))
    return begun and (len(words) > _CHOSEN_WORDS or words in pieces)


def said_before(text: str, said: Sequence[str]) -> bool:
    """Return whether `text` begins with one of `said`, or one of them with `text`: what follows may be a question."""
    words = normalize_post_text(text)
    return any(one and (one.startswith(words) or words.startswith(one)) for one in map(normalize_post_text, said))


def is_verbatim(text: str, said: Sequence[str]) -> bool:
    """Return whether one of `said` is `text` word for word, apart from handles."""
    return find_said_already(without_handles(text), [without_handles(post) for post in said]) is not None


def tells(text: str, private: str) -> bool:
    """Return whether `text` contains a line or sentence of `private` word for word, or one of its runs of words."""
    said = f" {' '.join(tokenize_for_comparison(text))} "
    lines = [words for piece in _pieces(private) if len(words := tokenize_for_comparison(piece)) >= _PRIVATE_WORDS]
    return any(f" {' '.join(words)} " in said for words in lines) or not word_runs([private]).isdisjoint(_runs(text))


def _form_problem(text: str) -> Literal["loops", "unfinished"] | None:
    """Return whether a text repeats itself in a loop, or is a few words that end in dots; a longer text may do so."""
    if is_loop(text):
        return "loops"
    is_cut = _TRAILS_OFF.search(text) and len(plain_words(text)) <= _UNFINISHED_WORDS
    return "unfinished" if is_cut else None


def gives_back(text: str, post: str) -> bool:
    """Return whether `text` contains a whole post word for word, with little else."""
    words, theirs = plain_words(normalize_post_text(text)), plain_words(normalize_post_text(post))
    if len(theirs) < _QUOTED_WORDS:
        return False
    whole, part = f" {' '.join(words)} ", f" {' '.join(theirs)} "
    return part in whole and len(content_words(whole.replace(part, " ", 1))) < _OWN_WORDS
