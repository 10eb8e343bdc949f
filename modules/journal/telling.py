"""A story in words: step by step in time order, for people. Pure; nothing that was written by others can draw here."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from common.clock import local, parse_iso
from modules.foreign_text import one_line
from modules.journal.story import Act, Call, Decided, Movement, Received, RuleSaid, Story, Thinking

_WIDTH = 100
_QUOTED_CHARS = 300
_CALL_CHARS = 160
_LATE_S = 600
_VERBS = {"reply": "replied", "like": "liked", "post": "posted", "repost": "reposted", "follow": "followed"}
_ENDS = {
    "held": "waits for your yes",
    "pending": "has not left yet",
    "sending": "is on its way",
    "blocked": "was blocked",
    "failed": "failed",
    "expired": "expired",
}
_CAME = {"mention": "mentioned it", "reply": "replied to it", "quote": "quoted it"}
_WORDS_OF = {
    "stranger": "other people's words were in it, so it could do only what those may cause",
    "peer": "a peer's words were in it, so it could do only what those may cause",
    "self": "only its own words were in it",
    "owner": "only your words and its own were in it",
}
_ALIVE = {"done", "held", "pending", "sending"}


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened. `at` is ISO-8601 UTC, or "" if that is not known; `details` are lines below it."""

    at: str
    text: str
    details: tuple[str, ...] = ()


def title(story: Story) -> str:
    """What the story explains."""
    act = next((act for act in story.acts if act.id == story.act_id), None)
    whom = _whom(story)
    if act is not None:
        return f"Why {_what(act, whom)}"
    alive = [act for act in story.acts if act.state in _ALIVE]
    if alive:
        return f"Why {_what(min(alive, key=lambda act: act.kind != 'reply'), whom)}"
    if story.trigger and story.trigger.state == "pending":
        return f"Why it has not answered {whom} yet"
    return f"Why it did not answer {whom}"


def steps(story: Story) -> list[Step]:
    """What happened, in time order."""
    told = [_received(story.trigger)] if story.trigger else []
    if story.cause == "owner":
        told.append(Step(min((act.created_at for act in story.acts), default=""), "You asked for it in the terminal"))
    told += [_thinking(thinking) for thinking in story.thinkings]
    told += [_decided(decided) for decided in story.decisions]
    for act in story.acts:
        told += [_movement(movement) for movement in act.movements] or [_act(act)]
    return sorted(told, key=lambda step: step.at)


def ending(story: Story) -> str:
    """Where it stands now, if it is not over; and how much of it is not known any more."""
    said = [_standing(act) for act in story.acts if act.state in {"held", "pending", "sending"}]
    if story.trigger and story.trigger.state == "pending" and not said:
        tries = f" (tried {story.trigger.attempts} times)" if story.trigger.attempts else ""
        said.append(f"It waits to be met{tries}.")
    if story.since and any(not act.movements for act in story.acts):
        said.append(f"The journal reaches back to {story.since[:10]}; what was before is pruned.")
    return " ".join(said)


def lines(story: Story, timezone: str = "") -> list[str]:
    """The story for a terminal; times are those of `timezone`, or of this machine."""
    told = [title(story), *(f"  {uri}" for uri in _uris(story))]
    for day, together in groupby(steps(story), key=lambda step: _day(step.at, timezone)):
        told += ["", day] if day else [""]
        for step in together:
            time = f"{local(parse_iso(step.at), timezone):%H:%M:%S}" if step.at else ""
            told += _wrapped(f"{time:<8}  ", step.text)
            for detail in step.details:
                told += _wrapped(" " * 12, detail)
    end = ending(story)
    return [*told, "", *_wrapped("", end)] if end else told


def _whom(story: Story) -> str:
    if story.trigger is None:
        return "you" if story.cause == "owner" else ""
    return f"@{one_line(story.trigger.author)}" if story.trigger.author else "this post"


def _what(act: Act, whom: str) -> str:
    """The act as a clause: `it replied to @kit`, `its reply to @kit waits for your yes`."""
    to = {"reply": f" to {whom}", "like": f" the post of {whom}"}.get(act.kind, "") if whom.startswith("@") else ""
    if act.state == "done":
        return f"it {_VERBS.get(act.kind, f'did this: {act.kind}')}{to}"
    return f"its {act.kind}{to.replace(' the post of', ' of the post of')} {_ENDS.get(act.state, act.state)}"


def _uris(story: Story) -> Iterator[str]:
    act = next((act for act in story.acts if act.id == story.act_id), None)
    if act is None:
        yield story.asked
    elif act.uri:
        yield act.uri
    else:
        yield f"act {act.id}"


def _received(trigger: Received) -> Step:
    who = f"@{one_line(trigger.author)}" if trigger.author else "Somebody"
    text = f"{who} {_CAME.get(trigger.reason, 'wrote')}"
    details = [f"“{one_line(trigger.text, _QUOTED_CHARS)}”"] if trigger.text else []
    details.append(trigger.uri)
    if trigger.at and trigger.received_at and _late(trigger):
        details.append(f"It was written at {trigger.at[:16].replace('T', ' ')} UTC, and seen only now.")
    if trigger.met_with:
        details.append(f"It was met together with a later post of theirs in the same thread: {trigger.met_with}")
    return Step(trigger.received_at, text, tuple(details))


def _late(trigger: Received) -> bool:
    return (parse_iso(trigger.received_at) - parse_iso(trigger.at)).total_seconds() > _LATE_S


def _thinking(thinking: Thinking) -> Step:
    details = []
    if thinking.failed:
        details.append(f"It came to nothing: {thinking.failed}")
    words_of = _WORDS_OF.get(thinking.sank_to or thinking.provenance)
    if words_of:
        details.append(f"Whose words: {words_of}")
    if thinking.prompt:
        parts = (
            f"{part.name} ({part.chars:,} characters{f', {part.sha256}' if part.sha256 else ''})"
            for part in thinking.prompt
        )
        details.append(f"It was told: {', '.join(parts)}")
    details += [_call(call) for call in thinking.calls]
    model = f" with {thinking.model}" if thinking.model else ""
    return Step(thinking.began, f"It thought about “{thinking.purpose}”{model}{_cost(thinking)}", tuple(details))


def _cost(thinking: Thinking) -> str:
    if not thinking.rounds and not thinking.input_tokens:
        return ""
    rounds = f"{thinking.rounds} round{'s' if thinking.rounds != 1 else ''}"
    tokens = f"{thinking.input_tokens:,} tokens in, {thinking.output_tokens:,} out"
    return f": {rounds}, {tokens}, {_dollars(thinking.usd)}"


def _dollars(usd: float | None) -> str:
    if usd is None:
        return "no price known"
    return f"${usd:.2f}" if usd >= 1 else f"${usd:.4f}"


def _call(call: Call) -> str:
    said = f" “{one_line(call.said, _CALL_CHARS)}”" if call.said else ""
    refused = f", refused: {one_line(call.error, _CALL_CHARS)}" if call.error else ""
    return f"It called {call.tool}{said}{refused}"


def _decided(decided: Decided) -> Step:
    begins = {"decision": "Decided: ", "error": "Trouble: "}.get(decided.kind, "")
    reason = one_line(decided.reason, _QUOTED_CHARS)
    because = f"Because: {reason}" if decided.kind == "decision" else reason
    return Step(decided.at, begins + one_line(decided.summary, _QUOTED_CHARS), (because,) if reason else ())


def _movement(movement: Movement) -> Step:
    reason = one_line(movement.reason, _QUOTED_CHARS)
    details = [reason] if reason else []
    details += [_rule(rule) for rule in movement.rules]
    return Step(movement.at, one_line(movement.summary, _QUOTED_CHARS), tuple(details))


def _rule(rule: RuleSaid) -> str:
    counted = "" if rule.value is None else f" ({_number(rule.value)}"
    if counted:
        counted += ")" if rule.limit is None else f" of {_number(rule.limit)})"
    said = {"pass": "lets it pass", "hold": "wants your yes", "block": "blocks it"}.get(rule.says, rule.says)
    reason = f": {one_line(rule.reason, _QUOTED_CHARS)}" if rule.reason else ""
    return f"Rule {rule.rule} {said}{reason}{counted}"


def _number(value: str | float) -> str:
    if isinstance(value, str):
        return one_line(value)
    return f"{int(value):,}" if float(value).is_integer() else f"{value:,.2f}"


def _act(act: Act) -> Step:
    """An act of which the journal holds nothing any more."""
    text = f" “{one_line(act.text, _QUOTED_CHARS)}”" if act.text else f" {act.target}"
    return Step(
        act.created_at, f"{act.kind.capitalize()}{text}: {act.state}", (one_line(act.why, 300),) if act.why else ()
    )


def _standing(act: Act) -> str:
    until = f"until {act.expires_at[:16].replace('T', ' ')} UTC"
    if act.state == "held":
        return f"The {act.kind} waits for your yes {until}."
    return f"The {act.kind} waits for its turn, {until}."


def _day(at: str, timezone: str) -> str:
    if not at:
        return ""
    moment = local(parse_iso(at), timezone)
    return f"{moment:%A} {moment.day} {moment:%B %Y} ({moment:%Z})"


def _wrapped(indent: str, text: str) -> list[str]:
    blank = " " * len(indent)
    return textwrap.wrap(
        text, _WIDTH, initial_indent=indent, subsequent_indent=blank, break_long_words=False, break_on_hyphens=False
    )
