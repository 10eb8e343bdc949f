"""Tells people the story of one post, act or silence in time order; text by others cannot change the layout.

Only reads the database, so it can be asked whether the SOUL runs or not. Nothing is looked up on the network.
"""

import dataclasses
import re
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import Any

from common.clock import local, parse_iso
from common.constants import OWNER_CAUSE
from common.errors import SoulError
from common.text.graphemes import shortened
from common.text.handles import with_handles
from common.text.untrusted import clean, one_line
from common.wording import counted, deed, number, part_name, told_reason, wrapped
from common.wording import rule as rule_words
from modules.runtime.database.database import Database
from modules.runtime.journal.types import CUT_OFF
from modules.runtime.llm.dialect import without_status
from modules.services.coding.policy import CodingStep
from modules.services.craft.proposals import proposal_stands
from modules.services.explanation.story import (
    Act,
    Call,
    Movement,
    Received,
    RuleSaid,
    Story,
    StoryEntry,
    Thinking,
    Unknown,
    find,
    gather,
    thread_of,
)
from modules.services.inbox.messages import MESSAGES
from modules.services.outbox.rules.rules import ETIQUETTE_RULES

_WIDTH = 100
_QUOTED_CHARS = 300
_CALL_CHARS = 160
_CODED = ("path", "command", "text", "summary", "reason")
"""The arguments of a coding step that are shown; the first that is present is used."""
_LATE_S = 600
_SENTENCES = re.compile(r"(?<=[.!?…])\s+")
_EXPLANATIONS = {one.name: one.explanation for one in ETIQUETTE_RULES}
_CAME = {
    "mention": "mentioned it",
    "reply": "replied to it",
    "quote": "quoted it",
    "message": "wrote it a direct message",
}
_A_POST = "post of theirs in the same thread"
_KINDS = {"message": "message of theirs"}
_WORDS_OF = {
    "stranger": "The prompt contained text from strangers, so only acts that strangers may cause were available",
    "peer": "The prompt contained a peer's words, so only acts that peers may cause were available",
    "self": "The prompt contained only its own words",
    "owner": "The prompt contained only your words and its own",
}
_ALIVE = {"done", "held", "pending", "sending"}


@dataclass(frozen=True, slots=True)
class StoryStep:
    """One event. `at` is ISO-8601 UTC, or "" if unknown; `details` are lines below it."""

    at: str
    text: str
    details: tuple[str, ...] = ()


def title(story: Story, timezone: str = "") -> str:
    """Return the heading of the story."""
    act = next((act for act in story.acts if act.id == story.act_id), None)
    whom = _whom(story)
    if act is not None:
        return f"Why: {_what(act, timezone)}"
    if story.coding and story.asked == story.cause:
        return f"How it worked on {story.asked}"
    alive = [act for act in story.acts if act.state in _ALIVE]
    if alive:
        return f"Why: {_what(min(alive, key=lambda act: act.kind != 'reply'), timezone)}"
    if story.trigger and story.trigger.state == "pending":
        return f"Why it has not answered {whom} yet"
    is_posts = story.asked.startswith(("at://", MESSAGES, "github:"))
    if story.proposal or (story.decisions and not is_posts):
        told = proposal_stands(story.proposal) if story.proposal else story.decisions[-1].summary
        return f"Why: {_short(told)}"
    return f"Why it did not answer {whom}"


def steps(story: Story, timezone: str = "") -> list[StoryStep]:
    """Return the events in time order, beginning with the cause. Times in words are those of `timezone`."""
    texts = {act.id: act.own_text for act in story.acts}
    told = [_thinking(thinking, texts) for thinking in story.thinkings]
    told += [_decided(decided) for decided in story.decisions]
    told += [_coded(step) for step in story.coding]
    for act in story.acts:
        told += _way(act, story.cause)
    if story.proposal:
        about = tuple(map(_short, story.rests_on))
        told.append(StoryStep(story.proposal.at, "It looked at how to get better", about))
    told = sorted((_by_handle(step, story) for step in told), key=lambda step: step.at)
    first = min((step.at for step in told), default="")
    if story.trigger:
        return [_received(story.trigger, first, timezone), *told]
    return [StoryStep(first, "You asked for it in the terminal"), *told] if _is_owner_s(story.cause) else told


def _by_handle(step: StoryStep, story: Story) -> StoryStep:
    """Return the step with handles instead of DIDs, except in addresses and quotations."""
    kept = ("“", "at://")
    details = (one if one.startswith(kept) else with_handles(one, story.handles) for one in step.details)
    return StoryStep(step.at, step.text, tuple(details))


def ending(story: Story, timezone: str = "") -> str:
    """Return the current state, if it is not over, and how much is no longer known."""
    said = [_standing(act, timezone) for act in story.acts if act.state in {"held", "pending", "sending"}]
    if story.trigger and story.trigger.state == "pending" and not said:
        tries = f" (tried {counted(story.trigger.attempts, 'time')})" if story.trigger.attempts else ""
        said.append(f"It waits to be handled{tries}.")
        said += [
            f"{_short(one.summary)} ({_short(one.reason)}; since {_when(one.at, timezone)})." for one in story.holding
        ]
    if story.since and any(not act.movements for act in story.acts):
        said.append(f"The journal reaches back to {story.since[:10]}; what was before is pruned.")
    return " ".join(said)


def lines(story: Story, timezone: str = "") -> list[str]:
    """Return the story for a terminal; times are those of `timezone`, or of this machine."""
    told = [title(story, timezone), *(f"  {uri}" for uri in _uris(story))]
    for day, together in groupby(steps(story, timezone), key=lambda step: _day(step.at, timezone)):
        told += ["", day] if day else [""]
        for step in together:
            time = f"{local(parse_iso(step.at), timezone):%H:%M:%S}" if step.at else ""
            told += wrapped(f"{time:<8}  ", step.text, _WIDTH)
            for detail in step.details:
                told += wrapped(" " * 12, detail, _WIDTH)
    end = ending(story, timezone)
    return [*told, "", *wrapped("", end, _WIDTH)] if end else told


def _is_owner_s(cause: str) -> bool:
    return cause.partition(":")[0] == OWNER_CAUSE


def _whom(story: Story) -> str:
    if story.trigger is None:
        return "you" if _is_owner_s(story.cause) else thread_of(story.cause)
    return f"@{one_line(story.trigger.author)}" if story.trigger.author else "this post"


def _what(act: Act, timezone: str) -> str:
    """Return the act and its state: `reply to @kit.test (waits for approval)`."""
    is_late = act.state == "pending" and act.leaves_at
    return f"{act.what} ({f'leaves at {_when(act.leaves_at, timezone)}' if is_late else act.stands})"


def _uris(story: Story) -> Iterator[str]:
    act = next((act for act in story.acts if act.id == story.act_id), None)
    if act is None:
        yield story.asked
    elif act.uri:
        yield act.uri
    else:
        yield f"act {act.id}"


def _received(trigger: Received, first: str, timezone: str) -> StoryStep:
    who = f"@{one_line(trigger.author)}" if trigger.author else "Somebody"
    text = f"{who} {_CAME.get(trigger.reason, 'wrote')}"
    details = [f"“{_short(trigger.text)}”"] if trigger.text else []
    details.append(trigger.uri)
    if trigger.at and trigger.received_at and _late(trigger):
        details.append(f"It was written at {_when(trigger.at, timezone)}, and seen only now.")
    if trigger.handled_with:
        details.append(
            f"It was handled together with a later {_KINDS.get(trigger.reason, _A_POST)}: {trigger.handled_with}"
        )
    return StoryStep(min(filter(None, (trigger.received_at, first)), default=""), text, tuple(details))


def _late(trigger: Received) -> bool:
    return (parse_iso(trigger.received_at) - parse_iso(trigger.at)).total_seconds() > _LATE_S


def _thinking(thinking: Thinking, texts: Mapping[str, str]) -> StoryStep:
    details = []
    if thinking.failed:
        details.append(f"It came to nothing: {CUT_OFF.get(thinking.failed, thinking.failed)}")
    if words_of := _WORDS_OF.get(thinking.provenance):
        details.append(words_of)
    if thinking.prompt:
        details.append(f"It was told: {', '.join(part_name(part.name) for part in thinking.prompt)}")
    if thinking.memories:
        which = ", ".join(str(one) for one in thinking.memories)
        details.append(f"It remembered: {which} (`soul memory show ID` tells what)")
    details += [_call(call, texts.get(call.intent_id, "")) for call in thinking.calls]
    model = f" with {thinking.model}" if thinking.model else ""
    return StoryStep(thinking.began, f"It thought it over{model}{_cost(thinking)}", tuple(details))


def _cost(thinking: Thinking) -> str:
    unanswered = thinking.unanswered_tokens
    if not thinking.rounds and unanswered:
        return f": no answer came; {number(unanswered)} tokens are counted, which may have been billed"
    if not thinking.rounds and not thinking.input_tokens:
        return ""
    rounds = f"{counted(thinking.rounds, 'round')}"
    dollars = "" if thinking.usd is None else f", ${thinking.usd:.{2 if thinking.usd >= 1 else 4}f}"
    tries = f"; {number(unanswered)} more for tries without an answer, which may have been billed" if unanswered else ""
    return (
        f": {rounds}, {number(thinking.input_tokens)} tokens in, {number(thinking.output_tokens)} out{dollars}{tries}"
    )


def _call(call: Call, left: str) -> str:
    """Return what was called; `left` are the words that left for it, "" if none did.

    The reason of a refused act is shown with the act.
    """
    said = f" “{_short(call.said, _CALL_CHARS)}”" if call.said and not call.intent_id else ""
    error = "" if call.intent_id else call.error
    refused = f", refused: {_short(without_status(error), _CALL_CHARS)}" if error else ""
    dropped = " ".join(one for one in _SENTENCES.split(call.said) if one not in left) if left else ""
    without = f", without “{_short(dropped, _CALL_CHARS)}”" if dropped else ""
    return f"It called {call.tool}{said}{refused}{without}"


def _coded(step: CodingStep) -> StoryStep:
    """Return the step for a coding step of a task: its cost, what was done, and the errors."""
    dollars = "" if step.usd is None else f", ${step.usd:.4f}"
    took = (
        f"{number(step.input_tokens)} tokens in ({number(step.cached_tokens)} kept), {number(step.output_tokens)} out"
    )
    details = [f"“{_short(step.said)}”"] if step.said else []
    for call, answer in zip_longest(step.calls, step.answers or ()):
        about = next((str(call.input[name]) for name in _CODED if call.input.get(name)), "")
        came = "not carried out yet" if answer is None else f"failed: {answer.content}" if answer.is_error else "done"
        details.append(f"{call.name} {_short(about, _CALL_CHARS)}: {_short(came, _CALL_CHARS)}")
    return StoryStep(step.at, f"Step {step.number} of the code: {took}{dollars}", tuple(details))


def _decided(decided: StoryEntry) -> StoryStep:
    begins = {"decision": "Decided: ", "error": "Trouble: "}.get(decided.kind, "")
    reason = _short(told_reason(decided.reason))
    because = f"Because: {reason}" if decided.kind == "decision" else reason
    return StoryStep(decided.at, begins + _short(decided.summary), (because,) if reason else ())


def _way(act: Act, cause: str) -> Iterator[StoryStep]:
    """Yield the steps of an act; its words are shown once, at the first."""
    about = [f"“{_short(act.own_text)}”"] if act.own_text else [act.target] if act.target not in {"", cause} else []
    if not act.movements:
        yield StoryStep(
            act.created_at, f"{deed(act.kind).capitalize()}: {act.state}", (*about, *filter(None, [_short(act.why)]))
        )
    for place, movement in enumerate(act.movements):
        head, _, _ = movement.summary.partition(": ")
        reason = f"You changed it to “{_short(movement.words)}”" if movement.words else told_reason(movement.reason)
        details = [*(about if place == 0 else []), _short(reason), *_rules(movement)]
        yield StoryStep(movement.at, _short(head), tuple(filter(None, details)))


def _rules(movement: Movement) -> Iterator[str]:
    """Yield each rule that stood in the way, with its reason and purpose, and one line about the others.

    The reason why an act is held belongs to its whole movement and was shown before.
    """
    rules = movement.rules
    for rule in (one for one in rules if one.says != "pass"):
        verb = "blocks it" if rule.says == "block" else "needs your approval"
        is_told = movement.state == "held" and rule.says == "hold"
        if is_told and rule.rule == "approval":
            continue
        why = "" if is_told else f": {_short(rule.reason)}"
        yield f"The rule on {rule_words(rule.rule)} {verb}{why}{_counted(rule)}"
        if explanation := _EXPLANATIONS.get(rule.rule):
            yield f"What that rule is for: {explanation}"
    passed = [rule for rule in rules if rule.says == "pass"]
    told = [f"{rule_words(rule.rule)} ({_short(rule.reason)})" for rule in passed if rule.reason]
    if others := len(passed) - len(told):
        told.append(f"{counted(others, 'limit')} not reached")
    if told:
        yield f"Rules that let it pass: {'; '.join(told)}"


def _counted(rule: RuleSaid) -> str:
    if rule.value is None or rule.rule == "approval":
        return ""
    return f" ({_number(rule.value)})" if rule.limit is None else f" ({_number(rule.value)} of {_number(rule.limit)})"


def _number(value: str | float) -> str:
    if isinstance(value, str):
        return _short(value)
    return number(value) if float(value).is_integer() else f"{value:,.2f}"


def _short(text: str, length: int = _QUOTED_CHARS) -> str:
    """Return text, which others may have written, on one line and shortened."""
    return shortened(clean(text), length)


def _standing(act: Act, timezone: str) -> str:
    if act.state == "pending" and act.leaves_at:
        why = f": {_short(act.waits_for)}" if act.waits_for else ""
        return f"The {deed(act.kind)} leaves at {_when(act.leaves_at, timezone)}{why}."
    if act.state == "pending" and act.waits_for:
        return f"The {deed(act.kind)} cannot leave yet: {_short(act.waits_for)}."
    waits = "for your approval," if act.state == "held" else "for its turn,"
    return f"The {deed(act.kind)} waits {waits} until {_when(act.expires_at, timezone)} at most."


def _when(at: str, timezone: str) -> str:
    return f"{local(parse_iso(at), timezone):%Y-%m-%d %H:%M}"


def _day(at: str, timezone: str) -> str:
    if not at:
        return ""
    moment = local(parse_iso(at), timezone)
    return f"{moment:%A} {moment.day} {moment:%B %Y} ({moment:%Z})"


def story_of(connection: sqlite3.Connection, what: str) -> Story:
    """Return the story of `what`: a link to a post or thread, an `at://` uri, a task, or an act's id or its prefix.

    Raises `SoulError` if there is none.
    """
    found = find(connection, what)
    story = found if isinstance(found, Unknown) else gather(connection, found)
    if isinstance(story, Unknown):
        raise SoulError(story.reason)
    return story


def as_json(story: Story) -> dict[str, Any]:
    """Return the story for programs: the fields of `Story`, with its title."""
    return {"title": title(story), **dataclasses.asdict(story)}


async def tell(database: Database, what: str, timezone: str = "") -> list[str]:
    """Return the lines of the story for the owner's terminal. Raises as `story_of`."""
    return lines(await database.run(lambda connection: story_of(connection, what)), timezone)
