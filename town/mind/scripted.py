"""The mind that the town ships with: small, scripted, no language model, and the same answer to the same request.

It reads the facts of a request, never the words of its prompt: one row of `TABLE` for each kind of turn. It knows
nothing but them and the phrase files beside it, and remembers nothing.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from common.facts import ExpressionFacts, MemoryFacts, OwnerFacts, PostFacts, QuestionFacts, RoomFacts, ToolOutcome
from common.text.strings import is_empty
from town.mind.bank import ANY, Bank, load_bank
from town.mind.choosing import TOOLS, Choice, choose
from town.mind.posts import post, post_of_two, revised
from town.mind.questions import QUESTIONS
from town.mind.remembering import keep
from town.mind.replies import answer_freely, reply
from town.mind.room import decide
from town.mind.words import Words, fit
from town.model.types import ChatRequest, Completion, Json, Offer, ToolUse

MODEL = "town/small-scripted-mind"

_POST_THIS = re.compile(
    r"^(?:please |could you |can you )*(?:post|publish|share|say)\b(?: this| that)?[:,]?\s*(.*)$",
    re.IGNORECASE | re.DOTALL,
)
_VAGUE = re.compile(r"^(?:something|anything|a (?:post|thought)|what|your)\b|^$", re.IGNORECASE)
_STATUS = re.compile(
    r"\b(status|how (?:do )?things stand|how (?:are|is) (?:you|it|things)|what'?s up|report)\b", re.IGNORECASE
)


class ScriptedMind:
    """A `Mind`. `seed` gives another town with other choices."""

    models = (MODEL,)
    about = "They think with a small scripted mind, not a language model."

    def __init__(self, *, seed: int = 0) -> None:
        self._bank = load_bank()
        self._seed = seed

    async def complete(self, request: ChatRequest) -> Completion:
        return self.answer(request)

    def answer(self, request: ChatRequest) -> Completion:
        """What it thinks, at once."""
        turn, about = _Turn(request, self._bank, _chance(request, self._seed)), request.facts.about
        return TABLE[type(about)](turn, about)


@dataclass(frozen=True, slots=True)
class _Turn:
    """One request, and what its answer is made of."""

    request: ChatRequest
    bank: Bank
    rng: random.Random

    @property
    def offers(self) -> dict[str, Offer]:
        """The tools by name."""
        return {offer.name: offer for offer in self.request.offers}

    def _words(self, *, text: str = "", heard: tuple[str, ...] = (), situation: str = "") -> Words:
        return Words(self.bank, self.request.facts, self.rng, text=text, heard=heard, situation=situation)

    def post(self, about: PostFacts) -> Completion:
        thread = tuple(line.text for line in about.thread)
        words = self._words(text=about.text, heard=(*thread, about.text, *_tried(self.request)))
        choice = choose(about, self.request.facts.agent.handle, self.bank, self.rng)
        if (last := self._last()) and last.failed and last.act == "silent":
            choice = Choice("silent")
        act = next((act for act in (choice.act, *TOOLS) if self._may(TOOLS[act])), None)
        if act is None:
            return self.anything(words)
        known: Json = {"post_uri": about.uri, "post_cid": about.cid, "uri": about.uri, "cid": about.cid}
        if act == "reply":
            pictures = sum(message.pictures for message in self.request.messages)
            known["text"] = reply(words, choice, is_first=all(line.who for line in about.thread), pictures=pictures)
        elif choice.intent and choice.intent.act == act and choice.intent.say:
            known["reason"] = words.say(choice.intent.say)
        else:
            known["reason"] = words.line("reasons", act)
        return _call(self.offers[TOOLS[act]], known | {"closing_type": "like"})

    def expression(self, about: ExpressionFacts) -> Completion:
        tried, last = _tried(self.request), self._last()
        words = self._words(text=" ".join(about.lines), heard=(*about.recent, *(() if last and last.draft else tried)))
        if "bluesky_post" not in self.offers:
            return self.anything(words)
        if last is None:
            text = post(words, about)
        elif not last.failed:
            return Completion(words.line("owner", "done"))
        else:
            text = revised(words, last.draft) if last.draft else post_of_two(words, about)
        return _call(self.offers["bluesky_post"], {"text": text})

    def owner(self, about: OwnerFacts) -> Completion:
        words = self._words(text=about.line, heard=(*_tried(self.request), about.line), situation=about.situation)
        if last := self._last():
            problem = (self.request.messages[-1].text.splitlines() or [""])[0]
            return Completion(words.line("owner", "failed" if last.failed else "done", problem=problem))
        if "bluesky_post" in self.offers and (asked := _POST_THIS.match(about.line)):
            text = asked[1].strip().strip("\"“”'")
            given = post(words, ExpressionFacts()) if _VAGUE.match(text) else fit(text)
            return _call(self.offers["bluesky_post"], {"text": given})
        if about.situation and _STATUS.search(about.line):
            return Completion(words.line("owner", "status"))
        replying = (one for one in self.bank.intents if one.act == "reply" and one.match.search(about.line))
        if intent := next(replying, None):
            return Completion(words.say(intent.say))
        return Completion(answer_freely(words, {ANY: self.bank.lines["owner"]["plain"]}))

    def room(self, about: RoomFacts) -> Completion:
        latest = next((line.text for line in reversed(about.said) if line.who), "")
        words = self._words(text=latest, heard=tuple(line.text for line in about.said))
        if not self.request.offers:
            return self.anything(words)
        return Completion(calls=(ToolUse(self.request.offers[0].name, decide(words, about)),))

    def memory(self, about: MemoryFacts) -> Completion:
        if not self.request.offers:
            return self.anything(self._words())
        offer = self.request.offers[0]
        return Completion(calls=(ToolUse(offer.name, keep(about, (offer.parameters.get("properties") or {}).keys())),))

    def question(self, about: QuestionFacts) -> Completion:
        if answer := QUESTIONS.get(about.question):
            return Completion(answer(about.fields))
        words = self._words(text="\n".join(text for texts in about.fields.values() for text in texts))
        return Completion(words.line("ground")) if about.question == "grounding" else self.anything(words)

    def unknown(self, _: None) -> Completion:
        """A request of another client: its last line is answered as the owner's would be."""
        line = next((one.text for one in reversed(self.request.messages) if one.role == "user"), "")
        return self.anything(self._words(text=line)) if self.request.force else self.owner(OwnerFacts(line))

    def anything(self, words: Words) -> Completion:
        """A request nobody foresaw: a sensible line, or a forced tool filled by its schema."""
        text = fit(answer_freely(words))
        offer = next((offer for name, offer in self.offers.items() if self.request.force in {"any", name}), None)
        return _call(offer, {"text": text}, words) if offer else Completion(text)

    def _last(self) -> ToolOutcome | None:
        outcomes = self.request.facts.outcomes
        return outcomes[-1] if outcomes else None

    def _may(self, tool: str) -> bool:
        return tool in self.offers and self.request.force in {None, "any", tool}


TABLE: Mapping[type[object], Callable[[_Turn, Any], Completion]] = {
    PostFacts: _Turn.post,
    ExpressionFacts: _Turn.expression,
    OwnerFacts: _Turn.owner,
    RoomFacts: _Turn.room,
    MemoryFacts: _Turn.memory,
    QuestionFacts: _Turn.question,
    type(None): _Turn.unknown,
}
"""What answers each kind of turn."""


def _tried(request: ChatRequest) -> tuple[str, ...]:
    """The texts of our calls so far."""
    return tuple(str(call.input.get("text", "")) for message in request.messages for call in message.calls)


def _chance(request: ChatRequest, seed: int) -> random.Random:
    """Drawn from the facts, so that the words of a prompt change nothing; without facts from the messages."""
    known = request.facts if request.facts.about else request.messages
    said = repr((seed, known, _tried(request), request.force, [offer.name for offer in request.offers]))
    return random.Random(hashlib.sha256(said.encode()).digest())


def _call(offer: Offer, known: Json, words: Words | None = None) -> Completion:
    """A call with what is known and fits the tool; what it requires beyond that is made up by type."""
    properties = offer.parameters.get("properties") or {"text": {}}
    required = set(offer.parameters.get("required") or ())
    told = {"text", "reason", "closing_type"}
    given = {name: known[name] for name in properties if name in known and (name in told or name in required)}
    missing = [name for name in properties if name in required and is_empty(given.get(name))]
    made_up = {name: _made_up(properties[name], words) for name in missing}
    return Completion(calls=(ToolUse(offer.name, given | made_up),))


def _made_up(schema: Json, words: Words | None) -> object:
    """The smallest sensible value of a JSON Schema."""
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
