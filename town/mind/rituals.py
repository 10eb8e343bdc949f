"""Rituals: the post that opens one, and the memo of what was said in its thread. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from common.text.graphemes import grapheme_len
from town.mind.bank import Idea
from town.mind.words import MAX_GRAPHEMES, Words, without_questions
from town.model.types import Json

Fields = Mapping[str, tuple[str, ...]]


def open_ritual(words: Words, fields: Fields) -> Json:
    """An idea, and its question to those who are invited; what the owner said is taken up first."""
    ritual, named = "".join(fields["ritual"]), " ".join(f"@{handle}" for handle in fields["invited"])
    heard = f" {words.line('ritual_owner')}" if fields.get("owner") else ""

    def text(idea: Idea) -> str:
        return " ".join(f"{ritual}: {without_questions(idea.say)}{heard} {named} {idea.ask}".split())

    said = " ".join(fields.get("earlier", ()))
    ideas = [words.next_idea(), *words.rng.sample(words.field.ideas, len(words.field.ideas))]
    fitting = [one for one in ideas if text(one).count("?") == 1 and grapheme_len(text(one)) <= MAX_GRAPHEMES]
    return {"text": text(next((one for one in fitting if one.ask not in said), fitting[0]))}


def write_memo(words: Words, fields: Fields) -> Json:
    """What we keep, why, and what we held before: by our part, and by the idea nearest to what was said."""
    part = "".join(fields["part"])
    idea = words.match(" ".join(fields.get("said", ())), words.own_fields) or words.next_idea()
    pick, why = without_questions(idea.say), words.line("ritual_why", part)
    body = f"**I keep:** {pick}\n\n**Why:** {why}\n\n**From now on:** {words.line('ritual_next', part)}"
    return {"title": words.line("ritual_title", part), "body": body}


RITUALS: Mapping[str, Callable[[Words, Fields], Json]] = {
    "ritual-initiation": open_ritual,
    "ritual-memo": write_memo,
}
"""What the tool is handed, by the name of the question."""
