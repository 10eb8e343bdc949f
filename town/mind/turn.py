"""One request as a row of the table answers it: its facts, its tools, and the phrases to answer with."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from common.facts import ToolOutcome, TurnFacts
from town.mind.bank import Bank
from town.mind.replies import answer_freely
from town.mind.words import BankWords, fit
from town.model.types import Completion, Json, Offer, ToolUse

_TOLD = {"text", "reason", "closing_type"}


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
        """Chance drawn from the facts: the words of a prompt change nothing."""
        said = repr((self.seed, self.facts, self.force, list(self.offers)))
        return random.Random(hashlib.sha256(said.encode()).digest())

    @property
    def first_offer(self) -> Offer | None:
        """The first tool, where there is one."""
        return next(iter(self.offers.values()), None)

    @property
    def last(self) -> ToolOutcome | None:
        """What came of the last call, where there was one."""
        return self.facts.outcomes[-1] if self.facts.outcomes else None

    @property
    def tried(self) -> tuple[str, ...]:
        """The texts of the calls so far."""
        return tuple(outcome.text for outcome in self.facts.outcomes)

    def words(self, *, text: str = "", earlier: tuple[str, ...] = (), situation: str = "") -> BankWords:
        """The phrases for `text`; what was said `earlier` is not said again."""
        return BankWords(self.bank, self.facts, self.rng, text=text, earlier=earlier, situation=situation)

    def may(self, tool: str) -> bool:
        """Whether the tool may be called."""
        return tool in self.offers and self.force in {None, "any", tool}

    def anything(self, words: BankWords) -> Completion:
        """The answer to a request nobody foresaw: a sensible line, or a forced tool filled by its schema."""
        text = fit(answer_freely(words))
        tool = next((name for name in self.offers if self.force in {"any", name}), None)
        return self.call(tool, {"text": text}, words) if tool else Completion(text)

    def call(self, tool: str, known: Json, words: BankWords | None = None) -> Completion:
        """A call with what is known and fits the tool; what it requires beyond that is made up by type."""
        parameters = self.offers[tool].parameters
        properties = parameters.get("properties") or {"text": {}}
        required = set(parameters.get("required") or ())
        given = {name: known[name] for name in properties if name in known and (name in _TOLD or name in required)}
        told = {name for name, value in given.items() if value is not None and str(value).strip()}
        missing = [name for name in properties if name in required and name not in told]
        made_up = {name: _made_up(properties[name], words) for name in missing}
        return Completion(calls=(ToolUse(tool, given | made_up),))


def _made_up(schema: Json, words: BankWords | None) -> object:
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
