"""A post of one's own: a line of SELF.md or an idea from the bank, with an easy question."""

from __future__ import annotations

from common.text.graphemes import grapheme_len
from town.mind.bank import ANY, Idea, flatten
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
    neighbour = _neighbour_due(words)
    if not neighbour and words.rng.random() < _OWN_LINE and (own := _from_self(words)):
        return fit(own)
    idea, turned = words.next_page()
    if turned:
        back = words.line("back_to", handle=neighbour) if neighbour else words.line("back")
        return fit(f"{idea.ask} {idea.answers[ANY]} {back}")
    return fit(f"{idea.say} {_asked_of(words, idea, neighbour) if neighbour else idea.ask}")


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
    """A neighbour to speak to: when the prompt names one, or when our latest post spoke to none."""
    neighbours = words.scene.me.neighbours()
    named = [handle for handle in neighbours if handle in words.scene.text]
    if named:
        return named[0]
    latest = words.scene.recent.strip().splitlines()[:1]
    lately = any(f"@{handle}" in line for handle in neighbours for line in latest)
    return "" if lately or not neighbours else words.rng.choice(sorted(neighbours))


def _asked_of(words: Words, idea: Idea, handle: str) -> str:
    forms: list[str] = words.bank.lines["address"]
    plain = [form for form in forms if ":" not in idea.ask or ":" not in form]
    return words.fill(words.pick(plain), handle=handle, ask=lower_first(idea.ask), Ask=idea.ask)


def _revised(words: Words, draft: str) -> str:
    if "?" in draft and words.rng.random() < _LEAVE_AS_IS:
        return draft
    near = words.match(draft, [words.field]) or words.next_idea()
    whole = f"{draft} {words.line('widen') if '?' in draft else near.ask}"
    return whole if grapheme_len(whole) <= MAX_GRAPHEMES else fit(draft)
