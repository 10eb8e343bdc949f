"""Decides what to do about a post (reply, like, leave or stay silent, and why), and answers it.

It answers a known question, a usual statement, something in our field, or what is not ours. Rules and some chance.
"""

import hashlib
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from common.facts import PostFacts, ToolOutcome, TurnFacts
from town.mind.words import (
    ANY,
    GENERAL,
    Bank,
    BankWords,
    Field,
    Idea,
    PhraseKind,
    fit,
    mentioned,
    quote,
    without_questions,
)
from town.model.types import Completion, Json, Offer, ToolUse

Act = Literal["reply", "like", "exit", "silent"]
TOOLS: dict[Act, str] = {
    "like": "bluesky_like",
    "silent": "stay_silent",
    "exit": "graceful_exit",
    "reply": "bluesky_reply",
}
"""The tool of each act; the first act with an offered tool replaces one without."""

_SETTLED = {"thanks", "agree", "goodbye", "like_it"}
_LONG_TALK = 3
_REPLY_TO_ANSWER = 0.6
_REPLY_TO_CROWD = 0.5


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """An act, and the reasons for it.

    Attributes:
        act: what to do.
        intent: the kind of statement in the post, if we know it.
        asked: the idea whose question the post asks.
        answered: our idea whose question the post answers.
        closing: whether it is our last reply here.

    """

    act: Act
    intent: PhraseKind | None = None
    asked: Idea | None = None
    answered: Idea | None = None
    closing: bool = False


def choose(post: PostFacts, own_handle: str, bank: Bank, rng: random.Random) -> ToolChoice:
    """Decide what to do about `post`."""
    intent = bank.intent_of(post.text)
    if intent and intent.act == "silent":
        return ToolChoice("silent", intent)
    own = [line.text for line in post.thread if not line.who]
    closing = len(own) >= _LONG_TALK
    base = ToolChoice("reply", intent, bank.asked_in(post.text), bank.asked_in(own[-1]) if own else None, closing)
    if intent and intent.name in _SETTLED and not base.asked:
        return ToolChoice("exit" if intent.act == "exit" and not post.is_owner else "like", intent)
    if post.is_owner or _asks(post, own_handle):
        return base if post.is_owner or len(own) <= _LONG_TALK else ToolChoice("exit", intent)
    if closing:
        return ToolChoice("exit", intent)
    crowd = {line.who for line in post.thread if line.who} - {post.author}
    if rng.random() < _eagerness(post, base, own, crowd):
        return base
    return ToolChoice("silent" if crowd and rng.random() < _REPLY_TO_CROWD else "like", intent)


def _asks(post: PostFacts, own_handle: str) -> bool:
    """Return whether the post asks us something: it has a question that is not addressed only to others."""
    if "?" not in post.text:
        return False
    addressed = mentioned(post.text)
    return not addressed or own_handle.lower() in addressed or post.notification_kind != "mention"


def _eagerness(post: PostFacts, choice: ToolChoice, own: list[str], crowd: set[str]) -> float:
    """Return the probability of a reply to a statement; once we replied, only an answer to our question gets one."""
    if post.several_addressed or len(crowd) > 1:
        return _REPLY_TO_CROWD
    if own:
        return _REPLY_TO_ANSWER if choice.answered else 0.0
    return 1.0 if post.notification_kind == "mention" else _REPLY_TO_ANSWER


_ASK_BACK = 0.3
_ASK_TOO = 0.35
_REMARK = 0.15
_LONGEST_OPTION = 3
_OPTIONS = re.compile(
    r"(?<![\w' -])([\w' -]{1,80}?),? or ([\w' -]{1,80}?)"
    r"(?: (?:for|in|at|on|to|with|when|this|these|today)\b[^?]{0,80})?\?"
)


def reply(words: BankWords, choice: ToolChoice, *, is_first: bool, pictures: int) -> str:
    """Return a reply, `is_first` if we said nothing there before; `pictures` is how many the post has."""
    text = _answer(words, choice, is_first=is_first)
    if pictures:
        text = f"{words.line('picture' if pictures == 1 else 'pictures')} {text}"
    if choice.closing:
        text = f"{without_questions(text)} {words.line('last')}"
    return fit(text)


def answer_freely(words: BankWords, fallback: Mapping[str, Sequence[str]] | None = None) -> str:
    """Answer anything: a choice of two, our field, a neighbour's; else with `fallback`, else that it is not ours."""
    text = words.text
    if option := _option(words, text):
        return words.line("choice", pick=option)
    if near := words.match(text, words.own_fields):
        if "?" not in text and quote(text) and words.rng.random() < _REMARK:
            return _remark(words)
        ask = f" {near.ask}" if words.rng.random() < _ASK_TOO else ""
        lead = "" if "?" in text else f"{words.line('bridge')} "
        return f"{lead}{near.say}{ask}"
    field = words.bank.field_of(text)
    if field == words.field:
        return words.say({ANY: field.general})
    if (referred := _refer(words)) or fallback:
        return referred or words.say(fallback or {})
    return words.say(words.bank.lines["unknown"]) if "?" in text else _remark(words)


def _remark(words: BankWords) -> str:
    """Remark on a statement outside everything known, with a quote from it if possible."""
    quotable = bool(quote(words.text))
    remarks: Mapping[str, Sequence[str]] = words.bank.lines["remark"]
    return words.say({key: [one for one in said if ("{quote}" in one) == quotable] for key, said in remarks.items()})


def _answer(words: BankWords, choice: ToolChoice, *, is_first: bool) -> str:
    if choice.asked:
        return _to_question(words, choice.asked, is_first=is_first)
    if prepared := _prepared(words, choice):
        return words.say(prepared)
    if line := _about_neighbour(words):
        return words.line("neighbour", line=line)
    if choice.answered:
        return _to_answer(words, choice.answered)
    thought = choice.intent.say if choice.intent and choice.intent.act == "thought" else {}
    return answer_freely(words, thought)


def _prepared(words: BankWords, choice: ToolChoice) -> Mapping[str, Sequence[str]]:
    """Return phrases for a general invitation or a usual statement; none for anything else."""
    if invited := words.bank.invited_in(words.text):
        answers: Mapping[str, Sequence[str]] = words.bank.lines["invited"][invited]
        return answers
    return choice.intent.say if choice.intent and choice.intent.act == "reply" else {}


def _to_question(words: BankWords, idea: Idea, *, is_first: bool) -> str:
    keys = dict.fromkeys((words.field.name, ANY, *idea.answers))
    answers = [idea.answers[key] for key in keys if key in idea.answers]
    answer = next((answer for answer in answers if words.fresh(answer)), idea.more)
    if is_first and not answer.endswith("?") and words.rng.random() < _ASK_BACK:
        answer = f"{answer} {words.line('back')}"
    return answer


def _to_answer(words: BankWords, idea: Idea) -> str:
    """Respond to an answer to our question; if they ask it back, answer it as well."""
    if "?" in words.text and words.fresh(idea.answers[ANY]):
        return idea.answers[ANY]
    if words.fresh(idea.more):
        return idea.more
    return words.say(words.bank.lines["received"])


def _refer(words: BankWords) -> str:
    """Refer a question to the neighbour whose field it is, with a question back; "" if there is none."""
    theirs = words.bank.field_of(words.text)
    if not theirs or theirs.name in {words.field.name, GENERAL}:
        return ""
    other = _neighbour_for(words, theirs)
    if not other:
        return ""
    if idea := words.match(words.text, [theirs]):
        return words.line("refer", theirs=theirs.label, other=other, ask=idea.ask)
    return words.line("direct", theirs=theirs.label, other=other)


def _neighbour_for(words: BankWords, field: Field) -> str:
    for handle, line in words.neighbours.items():
        if words.bank.field_of(line) == field:
            return _first_name(handle)
    return ""


def _about_neighbour(words: BankWords) -> str:
    """Return what SELF.md says of the neighbour that they ask about; "" for none."""
    for handle, line in words.neighbours.items():
        name = _first_name(handle)
        if "?" in words.text and re.search(rf"(?<![@\w]){name}\b", words.text, re.IGNORECASE):
            return line.replace(f"@{handle}", name)
    return ""


def _first_name(handle: str) -> str:
    return handle.split(".", maxsplit=1)[0].capitalize()


def _option(words: BankWords, text: str) -> str:
    """Return one of two options, as they named it; "" if there are none."""
    match = _OPTIONS.search(text)
    second = match[2].split() if match else []
    first = match[1].split()[-len(second) :] if match else []
    if not 0 < len(second) <= _LONGEST_OPTION or len(first) < len(second):
        return ""
    chosen = words.rng.choice([first, second])
    bare = chosen[1:] if len(chosen) > 1 and chosen[0].lower() in {"a", "an", "my", "your"} else chosen
    return " ".join(bare)[:1].upper() + " ".join(bare)[1:]


_TOLD = {"text", "reason", "closing_type", "finding", "rung"}


@dataclass(frozen=True)
class MindTurn:
    """The facts of one request, the tools by name, which of them must be called, and the phrases to answer with."""

    facts: TurnFacts
    offers: Mapping[str, Offer]
    force: str | None
    bank: Bank
    seed: int

    @cached_property
    def rng(self) -> random.Random:
        """Chance seeded with the facts: the wording of a prompt changes nothing."""
        said = repr((self.seed, self.facts, self.force, list(self.offers)))
        return random.Random(hashlib.sha256(said.encode()).digest())

    @property
    def first_offer(self) -> Offer | None:
        """The first tool, if there is one."""
        return next(iter(self.offers.values()), None)

    @property
    def last(self) -> ToolOutcome | None:
        """The outcome of the last call, if there was one."""
        return self.facts.outcomes[-1] if self.facts.outcomes else None

    @property
    def tried(self) -> tuple[str, ...]:
        """The texts of the calls so far."""
        return tuple(outcome.text for outcome in self.facts.outcomes)

    def words(self, *, text: str = "", earlier: tuple[str, ...] = (), situation: str = "") -> BankWords:
        """Return the phrases for `text`; what was said `earlier` is not repeated."""
        return BankWords(self.bank, self.facts, self.rng, text=text, earlier=earlier, situation=situation)

    def may(self, tool: str) -> bool:
        """Return whether the tool may be called."""
        return tool in self.offers and self.force in {None, "any", tool}

    def anything(self, words: BankWords) -> Completion:
        """Answer an unforeseen request with a sensible line, or with a forced tool filled by its schema."""
        text = fit(answer_freely(words))
        tool = next((name for name in self.offers if self.force in {"any", name}), None)
        return self.call(tool, {"text": text}, words) if tool else Completion(text)

    def call(self, tool: str, known: Json, words: BankWords | None = None) -> Completion:
        """Return a call with the known values that fit the tool; other required ones are made up by type."""
        parameters = self.offers[tool].parameters
        properties = parameters.get("properties") or {"text": {}}
        required = set(parameters.get("required") or ())
        given = {name: known[name] for name in properties if name in known and (name in _TOLD or name in required)}
        told = {name for name, value in given.items() if value is not None and str(value).strip()}
        missing = [name for name in properties if name in required and name not in told]
        made_up = {name: _made_up(properties[name], words) for name in missing}
        return Completion(calls=(ToolUse(tool, given | made_up),))


def _made_up(schema: Json, words: BankWords | None) -> object:
    """Return the smallest sensible value of a JSON Schema."""
    unions = [schema[key][0] for key in ("anyOf", "oneOf", "allOf") if schema.get(key)]
    if unions:
        return _made_up(unions[0], words)
    inner = schema.get("properties") or {}
    plain: dict[str, Callable[[], object]] = {
        "object": lambda: {name: _made_up(inner.get(name, {}), words) for name in schema.get("required") or ()},
        "array": lambda: [_made_up(schema.get("items") or {}, words)] * int(schema.get("minItems", 0)),
        "integer": lambda: schema.get("minimum", 1),
        "number": lambda: schema.get("minimum", 1),
        "boolean": lambda: True,
        "string": lambda: words.line("filler") if words else "noted",
    }
    return (schema.get("enum") or [schema.get("const")])[0] or plain[schema.get("type", "string")]()
