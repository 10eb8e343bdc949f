"""The scripted mind's knowledge, and how it finds ideas and fills phrases for one turn.

The phrase files are loaded and checked once. What was said here before, or recently by us, is not repeated. Sums in
people's text (`17 + 25`) are calculated.

Small commands are built from their parts in `tools.yaml`: a program, its tests, and the plan for it. A request is
known only if each of its words is: "a word counter" is written, "a word counter with a web page" is
not.
"""

import operator
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import yaml
from pydantic import TypeAdapter

from common.facts import TurnFacts
from common.text.graphemes import fit_post_text, grapheme_len
from common.text.strings import straighten

Row = Mapping[str, Any]

_MAKEFILE = ".PHONY: test\ntest:\n\tpython3 -m unittest\n"
_MAIN = '''

def main(arguments):
    """Print the answer. Return 0, or 2 after a line about what cannot be used."""
    try:
{call}
    except (ValueError, OSError) as error:
        print(f"usage: python3 {name}.py {use}\\n{{error}}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
'''
_CALL = "        print(answer(arguments))\n"
_CALL_WITH_FILE = """        if not arguments:
            raise ValueError("needs a file")
        print(answer(Path(arguments[0]).read_text("utf-8-sig"), arguments[1:]))
"""
_TESTS = '''import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

COMMAND = Path(__file__).with_name("{name}.py")


def run(*arguments, text=None, folder=None):
    """Run the command in a folder, on a file with this text if there is one. Return its exit code and its output."""
    if folder is None:
        with tempfile.TemporaryDirectory() as made:
            return run(*arguments, text=text, folder=made)
    if text is not None:
        Path(folder, "input").write_text(text, encoding="utf-8")
        arguments = ("input", *arguments)
    ran = subprocess.run(
        [sys.executable, COMMAND, *arguments], cwd=folder, capture_output=True, text=True, timeout=30
    )
    return ran.returncode, ran.stdout.rstrip("\\n")


class {title}Test(unittest.TestCase):
{tests}

if __name__ == "__main__":
    unittest.main()
'''
_DONE = (
    "`python3 {name}.py {use}` {title}. What it cannot use is answered with its usage and exit code 2."
    " `make test` runs it on {count} examples and needs nothing but Python."
)


def tool_rows(tools: Mapping[str, Any]) -> Iterator[Row]:
    """Return a row for each tool, in the format of `coding.yaml`."""
    return (_row(tool, tools["words"]) for tool in tools["tools"])


def _row(tool: Row, words: str) -> Row:
    name, title = tool["name"], f"Write a command that {tool['title']}, with tests"
    files = {f"{name}.py": _program(tool), f"test_{name}.py": _tests(tool), "Makefile": _MAKEFILE}
    about = f"`python3 {name}.py {tool['use']}` {tool['title']}."
    count = len(tool.get("prints", ())) + len(tool["refuses"]) + tool.get("checks", "").count("def test_")
    return {
        "match": tool["match"],
        "words": f"{words} {tool['words']} {title}",
        "label": tool["label"],
        "title": f"A command that {tool['title']}",
        "goal": f"A command {tool['title']}.",
        "tasks": [{"title": title, "description": about, "files": [*files, "README.md"]}],
        "use": f"python3 {name}.py {_quoted(tool['example'])}",
        "shows": "The answer, or one line about what it cannot use.",
        "files": files,
        "run": "make test",
        "done": _DONE.format(name=name, use=tool["use"], title=tool["title"], count=count),
    }


def _program(tool: Row) -> str:
    """Return the text of the program."""
    used = {"sys", *tool.get("imports", ())}
    imported = [f"import {one}" for one in sorted(used)]
    reads = tool.get("reads") == "file"
    needs_path = reads or "Path(" in tool["code"]
    named = sorted([*tool.get("from", ()), *(["pathlib import Path"] if needs_path else [])])
    imported += [f"from {one}" for one in named]
    head = f'"""{tool["title"][:1].upper()}{tool["title"][1:]}: python3 {tool["name"]}.py {tool["use"]}"""'
    main = _MAIN.format(call=_CALL_WITH_FILE if reads else _CALL, name=tool["name"], use=tool["use"])
    gap = "\n\n" if not tool["code"].startswith(("def", "class")) else "\n\n\n"
    imports, code = "\n".join(imported), tool["code"].rstrip()
    return f"{head}\n\n{imports}{gap}{code}\n{main}"


def _tests(tool: Row) -> str:
    """Return the text of its tests: one per example, one for all refused input, and those for random results."""
    tests = [_example(name, *case) for name, case in tool.get("prints", {}).items()]
    text = ', text=""' if tool.get("reads") == "file" else ""
    refused = "".join(f"        self.assertEqual(run(*{one!r}{text})[0], 2)\n" for one in tool["refuses"])
    tests.append(f"    def test_refuses_what_it_cannot_use(self):\n{refused}")
    if "checks" in tool:
        tests.append("".join(f"    {line}\n" if line else "\n" for line in tool["checks"].splitlines()))
    return _TESTS.format(name=tool["name"], title=tool["name"].capitalize(), tests="\n".join(tests))


def _example(name: str, arguments: list[str], printed: str, text: str | None = None) -> str:
    given = "" if text is None else f", text={text!r}"
    return f"    def test_{name}(self):\n        self.assertEqual(run(*{arguments!r}{given}), (0, {printed!r}))\n"


def _quoted(example: str) -> str:
    """Return the example as typed in a shell: quoted if it has special characters."""
    return f"'{example}'" if re.search(r"[^\w\s./-]", example) else example


FIELDS = ("sea", "mend", "table", "street")
GENERAL = "street"
ANY = "any"

_WORD = re.compile(r"[a-zà-ÿ]{3,}")
_PHRASES = files("town.mind") / "phrases"
COMMON = frozenset((_PHRASES / "common.txt").read_text("utf-8").split())


@dataclass(frozen=True)
class Idea:
    """A statement, a question that goes with it, possible answers (by field), and a closing remark."""

    say: str
    ask: str
    answers: Mapping[str, str]
    more: str

    def __post_init__(self) -> None:
        if ANY not in self.answers:
            raise ValueError(f"{self.say!r} needs an answer for `{ANY}`")

    @cached_property
    def stems(self) -> frozenset[str]:
        """The telling words of the statement and the question."""
        return stems(f"{self.say} {self.ask}")


@dataclass(frozen=True, slots=True)
class Slip:
    """A call that a mind makes wrongly until it has written a skill that says how to make it.

    `friction` begins with the tool, to which the mind passes `text` as a list, and says how that is refused; the other
    fields are the skill.
    """

    friction: str
    name: str
    purpose: str
    page: str
    turns: tuple[str, ...]

    @property
    def tool(self) -> str:
        """The tool that is called wrongly."""
        return self.friction.partition(" ")[0]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of interest of a mind.

    `words` recognise it; `general` is true of most of it; `beyond` says what is outside it; `notes` are posts by
    themselves; `slip` is a call that a mind of this field makes wrongly, if any.
    """

    name: str
    label: str
    words: frozenset[str]
    beyond: tuple[str, ...]
    general: tuple[str, ...]
    notes: tuple[str, ...]
    ideas: tuple[Idea, ...]
    slip: Slip | None = None


@dataclass(frozen=True, slots=True)
class PhraseKind:
    """A kind of statement, how to recognise it, and what to do: reply, thought, like, exit or silent.

    `say` holds phrases by field.
    """

    name: str
    match: re.Pattern[str]
    say: Mapping[str, tuple[str, ...]]
    act: str = "reply"


@dataclass(frozen=True)
class Bank:
    """All phrases and programs.

    `known_from` counts the ideas in which a stem occurs; `lines` is the rest of `talk.yaml` by its headings, `room` is
    `room.yaml`, `code` the rows of `coding.yaml` and of `tools.yaml`.
    """

    fields: Mapping[str, Field]
    known_from: Mapping[str, int]
    intents: tuple[PhraseKind, ...]
    lines: Mapping[str, Any]
    room: dict[str, Any]
    code: tuple[Mapping[str, Any], ...]

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """The words of what can be built and talked about."""
        said = (word for row in self.code for word in _WORD.findall(f"{row['words']} {row.get('title', '')}".lower()))
        return frozenset(said).union(*(field.words for field in self.fields.values()))

    def ideas(self) -> Iterator[Idea]:
        """Return every idea of every field."""
        return (idea for field in self.fields.values() for idea in field.ideas)

    def intent_of(self, text: str) -> PhraseKind | None:
        """Return the kind of statement that `text` makes, if it is a usual one."""
        return next((intent for intent in self.intents if intent.match.search(text)), None)

    def asked_in(self, text: str) -> Idea | None:
        """Return the idea whose question occurs in `text`."""
        flat = flatten(text)
        return next((idea for idea in self.ideas() if flatten(idea.ask) in flat), None)

    def invited_in(self, text: str) -> str:
        """Return the kind of general invitation in `text`; "" if there is none."""
        flat = flatten(text)
        kinds = self.lines["invite"].items()
        return next((kind for kind, phrases in kinds for phrase in phrases if flatten(phrase) in flat), "")

    def field_of(self, text: str) -> Field | None:
        """Return the field that most words of `text` belong to, if any do. The general field loses ties."""
        words = _WORD.findall(text.lower())
        scores = {name: sum(word in field.words for word in words) for name, field in self.fields.items()}
        best = max(scores, key=lambda name: (scores[name], name != GENERAL))
        return self.fields[best] if scores[best] else None


@cache
def load_bank() -> Bank:
    """Read the phrase files, once per process. Raises `ValueError` if one is invalid."""
    fields = {name: TypeAdapter(Field).validate_python({"name": name, **_read(name)}) for name in FIELDS}
    known_from = Counter(stem for field in fields.values() for idea in field.ideas for stem in idea.stems)
    lines = _read("talk")
    intents = TypeAdapter(tuple[PhraseKind, ...]).validate_python([_intent(raw) for raw in lines.pop("intents")])
    code = (*_load("coding"), *tool_rows(_read("tools")))
    return Bank(fields, known_from, intents, lines, _read("room"), code)


def stems(text: str) -> frozenset[str]:
    """Return the telling words of a text, cut so that `tides` matches `tide` and `mended` matches `mending`."""
    words = (word for word in _WORD.findall(text.lower()) if word not in COMMON)
    return frozenset(re.sub(r"(?:ings?|ed|es|s|e)$", "", word) or word for word in words)


def flatten(text: str) -> str:
    """Return a text for comparison: lower case, straight quotes, single spaces."""
    return " ".join(straighten(text).lower().split())


def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = _load(name)
    return content


def _load(name: str) -> Any:  # noqa: ANN401 - any YAML
    return yaml.safe_load((_PHRASES / f"{name}.yaml").read_text("utf-8"))


def _intent(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an intent with its parts parsed; a plain list of phrases is for any field."""
    said = raw.get("say") or {}
    by_field = {ANY: said} if isinstance(said, list) else said
    return {**raw, "match": re.compile(raw["match"], re.IGNORECASE), "say": by_field}


SIGNS: Mapping[str, str] = {
    "plus": "+",
    "minus": "-",
    "times": "*",
    "multiplied by": "*",
    "divided by": "/",
    "over": "/",
    "x": "*",
    "\u00d7": "*",
    "\u00f7": "/",
    "\u2212": "-",
    "\u2013": "-",
}
"""Operators as people write them."""

_DO: Mapping[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_FIRST = ("*/", "+-")
_BLANKS = r"\s{1,3}"
_WORDS = "|".join(re.escape(word) for word in sorted(SIGNS, key=len, reverse=True) if word.isascii() and word != "x")
_BARE = "+*x\u00d7\u00f7\u2212"
_SIGN = rf"(?:\s{{0,3}}[{_BARE}]\s{{0,3}}|{_BLANKS}(?:[-/\u2013]|{_WORDS}){_BLANKS})"
_SUM = re.compile(rf"(?<![\w.,:/-])\d{{1,9}}+(?:{_SIGN}\d{{1,9}}+){{1,8}}(?![\w/:-]|[.,]\d)", re.IGNORECASE)
_PART = re.compile(rf"\d+|[-+*/x\u00d7\u00f7\u2212\u2013]|{_WORDS}", re.IGNORECASE)
_PLACES = 3


def solve(text: str) -> str:
    """Return the result of the first sum in `text`; "" if there is none or it has no result."""
    found = _SUM.search(text)
    if found is None:
        return ""
    parts: list[Fraction | str] = [
        Fraction(part) if part.isdigit() else SIGNS.get(part.lower(), part) for part in _PART.findall(found[0])
    ]
    try:
        for signs in _FIRST:
            parts = _reduced(parts, signs)
    except ZeroDivisionError:
        return ""
    (result,) = parts
    return _told(Fraction(result))


def _reduced(parts: list[Fraction | str], signs: str) -> list[Fraction | str]:
    """Return the sum with these operators applied."""
    done = parts[:1]
    for sign, number in zip(parts[1::2], parts[2::2], strict=True):
        if sign in tuple(signs):
            done[-1] = _DO[str(sign)](Fraction(done[-1]), Fraction(number))
        else:
            done += [sign, number]
    return done


def _told(result: Fraction) -> str:
    if result.denominator == 1:
        return f"{result.numerator:,}" if abs(result) > 9999 else str(result.numerator)  # noqa: PLR2004 - four digits
    return f"{float(result):.{_PLACES}f}".rstrip("0")


MAX_GRAPHEMES = 300
_GOLDEN = 0.6180339887  # golden ratio: steps of this fraction of a circle take longest to come back to an earlier place
_ENOUGH_WORDS = 5
_TELLING = 0.3  # a word that names a topic and occurs in at most three ideas
_NEAR = 1.5
_ENGLISH_SHARE = 0.3
ADDRESS = re.compile(r"(?:https?://|github\.com/)\S+|@[\w.-]+", re.IGNORECASE)
"""A link or a handle."""
_LETTERS = re.compile(r"[^\W\d_]+")
_SHORT = frozenset("a am an are as at be by do go he i if in is it me my no of on or so to up us we you".split())  # noqa: SIM905 - prose
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_BLANK = re.compile(r"\{(\w+)\}")
_HANDLE = re.compile(r"(?<![\w@])@((?:[a-z0-9-]+\.)+[a-z][a-z0-9-]*)", re.IGNORECASE)
_JOINED = re.compile(r"\s(?:and|but|because|so|when|while|who|which)\s", re.IGNORECASE)


class BankWords:
    """The bank's phrases for one agent that is to say something about `text`.

    Args:
        bank: the phrases.
        facts: of the turn; they say who the agent is and what time it is.
        rng: seeded with the facts: the same turn finds the same words.
        text: what is spoken about.
        earlier: what was said before and must not be repeated.
        situation: the status line, if the owner asks.

    """

    def __init__(
        self,
        bank: Bank,
        facts: TurnFacts,
        rng: random.Random,
        *,
        text: str = "",
        earlier: Iterable[str] = (),
        situation: str = "",
    ) -> None:
        self.bank = bank
        self.rng = rng
        self.text = text
        self.situation = situation
        self.agent = facts.agent
        self.name = facts.agent.name[:1].upper() + facts.agent.name[1:] or "someone"
        lines = [line for part in facts.agent.self_lines.values() for line in part]
        self.field = bank.field_of("\n".join([facts.agent.soul, *lines])) or bank.fields[GENERAL]
        self.own_fields = tuple({name: bank.fields[name] for name in (self.field.name, GENERAL)}.values())
        self._minute = minute_of(facts.at)
        self._earlier = flatten(" ".join(earlier))

    @property
    def neighbours(self) -> dict[str, str]:
        """The handles that SELF.md names under relationships, each with its line."""
        lines = self.agent.self_lines.get("relationships", ())
        own = self.agent.handle.lower()
        return {handle: line for line in lines for handle in _HANDLE.findall(line) if handle.lower() != own}

    def fresh(self, text: str) -> bool:
        """Return whether this was not said here before."""
        return flatten(text) not in self._earlier

    def pick(self, phrases: Sequence[str]) -> str:
        """Return one of them, preferably one not said before; one without a quote if nothing can be quoted."""
        usable = [phrase for phrase in phrases if "{quote}" not in phrase or quote(self.text)] or list(phrases)
        return self.rng.choice([phrase for phrase in usable if self.fresh(phrase)] or usable)

    def line(self, *path: str, **more: str) -> str:
        """Return a phrase of `talk.yaml` by its headings, filled in."""
        found: Any = self.bank.lines
        for key in path:
            found = found[key]
        return self.fill(self.pick(found), **more)

    def say(self, said: Mapping[str, Sequence[str]]) -> str:
        """Return one of the phrases for our field or for any, filled in."""
        return self.fill(self.pick([*said.get(self.field.name, ()), *said.get(ANY, ())]))

    def fill(self, phrase: str, **more: str) -> str:
        """Return a phrase with its blanks filled: from `more`, from who the agent is, or from what is spoken about."""
        blanks: dict[str, Callable[[], str]] = {
            "quote": lambda: quote(self.text),
            "name": lambda: self.name,
            "label": lambda: self.field.label,
            "focus": lambda: self._line_of("currentFocus"),
            "value": lambda: self._line_of("values"),
            "question": lambda: self._line_of("questions"),
            "beyond": lambda: self.pick(self.field.beyond),
            "ask": lambda: self.next_idea().ask,
            "thought": lambda: self.next_idea().say,
            "situation": lambda: self.situation,
            "sum": lambda: solve(self.text) or "More than I can count",
        }
        values = {key: more[key] if key in more else blanks[key]() for key in _BLANK.findall(phrase)}
        if ": {focus}" in phrase:
            values["focus"] = lower_first(values["focus"])
        return phrase.format(**values)

    def match(self, text: str, fields: Iterable[Field]) -> Idea | None:
        """Return the idea nearest to `text` that was not said here, if one is near enough."""
        words = stems(text)
        best: Idea | None = None
        most = 0.0
        for field in fields:
            topics = stems(" ".join(field.words)) & words
            for idea in field.ideas:
                shared = {stem: 1 / self.bank.known_from[stem] for stem in idea.stems & words}
                near = sum(shared.values())
                telling = any(shared[stem] >= _TELLING for stem in topics & shared.keys())
                if near > most and (telling or near >= _NEAR) and self.fresh(idea.say):
                    best, most = idea, near
        return best

    def next_page(self) -> tuple[Idea, bool]:
        """Return the idea for this minute, in an order of our own, and whether to turn it round; skip what was said.

        Each idea is there twice: to be said, and to be turned round (its question first, with an answer of our own).
        """
        pages = [(idea, turned) for idea in self.field.ideas for turned in (False, True)]
        random.Random(self.name).shuffle(pages)
        start = int(self._minute * _GOLDEN % 1 * len(pages))
        walk = pages[start:] + pages[:start]
        return next((page for page in walk if self.fresh(page[0].say) and self.fresh(page[0].ask)), walk[0])

    def next_idea(self) -> Idea:
        """Return the idea of `next_page`."""
        return self.next_page()[0]

    def is_english(self, text: str) -> bool:
        """Return whether `text` may be English; a text of too few words counts as English."""
        words = _LETTERS.findall(ADDRESS.sub(" ", text).lower())
        known = sum(word in COMMON or word in _SHORT or word in self.bank.vocabulary for word in words)
        return len(words) < _ENOUGH_WORDS or known / len(words) > _ENGLISH_SHARE

    def _line_of(self, part: str) -> str:
        """Return a line of SELF.md that reads as a sentence; an idea of ours if there is none."""
        lines = [line for line in self.agent.self_lines.get(part, ()) if is_sentence(line)]
        if lines:
            return self.pick(lines)
        idea = self.next_idea()
        return idea.ask if part == "questions" else idea.say


def minute_of(at: str) -> int:
    """Return the minute of the day, 0 for an unknown time."""
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return 0
    return moment.hour * 60 + moment.minute


def mentioned(text: str) -> tuple[str, ...]:
    """Return the handles that a text mentions, in lower case."""
    return tuple(handle.lower() for handle in _HANDLE.findall(text))


def quote(text: str, *, shortest: int = 3, longest: int = 10) -> str:
    """Return a piece of someone's own words, short enough to be quoted; "" if there is none."""
    bare = re.sub(r"https?://\S+|@[\w.-]+", " ", straighten(text))
    pieces = [piece.strip(" \"'-") for piece in re.split(r"[.,;:!?\n()\u2013\u2014]+|\s-\s", bare)]
    parts = [part for piece in pieces for part in (piece, *_JOINED.split(piece))]
    whole = [part for part in parts if shortest <= len(part.split()) <= longest and '"' not in part]
    return max(whole, key=len, default="")


def is_sentence(line: str) -> bool:
    """Return whether a line of SELF.md can stand by itself."""
    return len(line.split()) >= _ENOUGH_WORDS and line[0].isupper() and line.endswith((".", "?", "!"))


def lower_first(text: str) -> str:
    """Return `text` for use inside a sentence; `I`, names in quotes and abbreviations keep their capital."""
    return text if re.match(r"(?:I\b|[A-Z]{2}|\W)", text) else text[:1].lower() + text[1:]


def without_questions(text: str) -> str:
    """Return the sentences that are not questions; the whole text if that leaves none."""
    return " ".join(part for part in SENTENCE_END.split(text) if not part.endswith("?")) or text


def fit(text: str) -> str:
    """Return at most 300 graphemes: as many whole sentences as fit."""
    while grapheme_len(text) > MAX_GRAPHEMES:
        shorter = " ".join(SENTENCE_END.split(text)[:-1])
        if not shorter:
            return fit_post_text(text, max_graphemes=MAX_GRAPHEMES)
        text = shorter
    return text
