"""A post of one's own: a line of SELF.md or an idea from the bank, with an easy question."""

from __future__ import annotations

from common.text.graphemes import grapheme_len
from town.mind.bank import flatten
from town.mind.words import MAX_GRAPHEMES, Words, fit, is_sentence, lower_first

_OWN_LINE = 0.45
_LEAVE_AS_IS = 0.6
_STATEMENTS = {"values", "patterns", "learnings"}
_LISTS = {"explorations", "currentFocus"}


def post(words: Words) -> str:
    """The text of one post."""
    scene = words.scene
    if scene.draft:
        return _revised(words, scene.draft)
    if neighbour := _neighbour_due(words):
        return fit(_to(words, neighbour))
    if words.rng.random() < _OWN_LINE and (own := _from_self(words)):
        return fit(own)
    idea = words.next_idea()
    return fit(f"{idea.say} {idea.ask}")


def _from_self(words: Words) -> str:
    """The lines of SELF.md that the prompt names, as a post; empty if they do not read as one."""
    flat = flatten(words.scene.text)
    named = [line for lines in words.scene.me.lines.values() for line in lines if flatten(line) in flat]
    lines = [line for line in named if words.fresh(line) and is_sentence(line)]
    source = words.scene.source
    if not lines:
        return ""
    if "+" in source:
        return f"{lines[0]} {lines[1]} {words.line('invite', 'pair')}" if len(lines) > 1 else ""
    if lines[0].endswith("?"):
        return f"{lines[0]} {words.line('invite', 'question')}"
    if source in _STATEMENTS:
        return f"{lines[0]} {words.line('invite', 'statement')}"
    if source in _LISTS:
        return f"{words.line('list_lead')} {lower_first(lines[0])} {words.line('invite', 'list')}"
    return ""


def _neighbour_due(words: Words) -> str:
    """A neighbour to speak to: when the prompt names one, or when none was spoken to lately."""
    neighbours = words.scene.me.neighbours()
    named = [handle for handle in neighbours if handle in words.scene.text]
    if named:
        return named[0]
    lately = any(f"@{handle}" in words.scene.recent for handle in neighbours)
    return "" if lately or not neighbours else words.rng.choice(sorted(neighbours))


def _to(words: Words, handle: str) -> str:
    idea = words.next_idea()
    asked = words.line("address", handle=handle, ask=lower_first(idea.ask), Ask=idea.ask)
    return f"{idea.say} {asked}"


def _revised(words: Words, draft: str) -> str:
    if "?" in draft and words.rng.random() < _LEAVE_AS_IS:
        return draft
    near = words.match(draft, [words.field]) or words.next_idea()
    whole = f"{draft} {words.line('widen') if '?' in draft else near.ask}"
    return whole if grapheme_len(whole) <= MAX_GRAPHEMES else fit(draft)
