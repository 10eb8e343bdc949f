"""Rules for thoughts of the SOUL's own: when one is due, its starting point, and its invitation to answer. Pure."""

import random
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from common.clock import parse_iso_or_none
from common.constants import MINUTE_MS, PORTABLE_MAX_GRAPHEMES
from common.design_catalog import DesignSource, speaks_of_design
from common.errors import SkillError
from common.files import Json
from common.intervals import EXPRESSION_MAX_INTERVAL_MS, EXPRESSION_MIN_INTERVAL_MS
from common.result import Decision
from common.text.closings import asks
from common.text.graphemes import grapheme_len
from common.text.strings import dedup_key
from common.wording import counted
from modules.runtime.scheduler.policy import QUIET_HOURS_END, is_quiet_hours
from modules.services.identity.identity import SelfExtract

EXPRESSION_SOURCES_REMEMBERED = 3
DAILY_POST_LIMIT = 12
DESIGN_SHARE = 0.5
_BEHIND_SHARE = 0.75

Tone = Literal["curious", "supportive", "reflective", "celebratory"]

_MORNING_HOURS = 3
FURTHEST_MORNING = timedelta(days=1, hours=_MORNING_HOURS)
"""The furthest that a moment of `next_morning` can be ahead."""
_SOONEST_MS = (2 * MINUTE_MS, 10 * MINUTE_MS)
_TONE_UNTIL: tuple[tuple[int, Tone], ...] = (
    (10, "curious"),
    (14, "supportive"),
    (18, "reflective"),
    (24, "celebratory"),
)

_SOURCES: Mapping[str, Callable[[SelfExtract], tuple[Sequence[str], ...]]] = {
    "purpose": lambda me: ([me.purpose],),
    "values": lambda me: (me.values,),
    "questions": lambda me: (me.questions,),
    "patterns": lambda me: (me.patterns,),
    "learnings": lambda me: (me.learnings,),
    "explorations": lambda me: (me.explorations,),
    "currentFocus": lambda me: (me.current_focus,),
    "relationships": lambda me: (me.relationships,),
    "identity": lambda me: ([me.identity or me.name],),
    "values+patterns": lambda me: (me.values, me.patterns),
    "questions+learnings": lambda me: (me.questions, me.learnings),
    "purpose+focus": lambda me: ([me.purpose], me.current_focus),
}
_VARIABLE = re.compile(r"\{\{\s*(?P<name>value[12]?|designName|designUrl)\s*\}\}")
_TASTE, _INSPIRATION = "visualTaste", "designInspiration"

_LINK = re.compile(r"https?://\S+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PostingDecision(Decision):
    """Whether an original post fits now, and by which rule (`code`)."""

    code: Literal["daily_limit", "quiet_hours", "within_limits"]


class ExpressionPrompt(NamedTuple):
    """What to think about, and the source that it comes from."""

    prompt: str
    source: str


def next_expression_time(
    now: datetime,
    last: datetime | None,
    rng: random.Random,
    min_ms: float = EXPRESSION_MIN_INTERVAL_MS,
    max_ms: float = EXPRESSION_MAX_INTERVAL_MS,
    *,
    soonest_ms: tuple[float, float] = _SOONEST_MS,
) -> datetime:
    """Return when to post next: an interval after the `last` time, so that a restart neither hastens nor delays it.

    It is never sooner than a random moment within `soonest_ms` from now, which is also when a first post is due.
    """
    soon = now + timedelta(milliseconds=rng.uniform(*soonest_ms))
    return soon if last is None else max(soon, last + timedelta(milliseconds=rng.uniform(min_ms, max_ms)))


def next_morning(now: datetime, rng: random.Random) -> datetime:
    """Return a random moment in the next morning after the local time `now`, at most three hours into it."""
    morning = now.replace(hour=QUIET_HOURS_END, minute=0, second=0, microsecond=0)
    if morning <= now:
        morning += timedelta(days=1)
    return morning + timedelta(hours=rng.uniform(0, _MORNING_HOURS))


def can_post_original(posts_today: int, local_hour: int, most: int = DAILY_POST_LIMIT) -> PostingDecision:
    """Return whether one more original post fits this day, of at most `most`, and this local hour (0-23)."""
    if posts_today >= most:
        reason = f"daily limit of {counted(most, 'post')} reached"
        return PostingDecision(should=False, reason=reason, code="daily_limit")
    if is_quiet_hours(local_hour):
        return PostingDecision(should=False, reason="quiet hours", code="quiet_hours")
    return PostingDecision(should=True, reason="within limits", code="within_limits")


def tone_of(local_hour: int) -> Tone:
    """Return the tone for this local hour (0-23)."""
    return next(tone for until, tone in _TONE_UNTIL if local_hour < until)


def generate_expression_prompt(
    extract: SelfExtract,
    templates: Mapping[str, str],
    recent_sources: Sequence[str],
    rng: random.Random,
    *,
    fallbacks: Sequence[tuple[str, str]],
    suffix: str,
    unanswered: Collection[str] = (),
    design: DesignSource | None = None,
) -> ExpressionPrompt:
    """Return a starting point from SELF.md by a random source, if possible none of the last three.

    Three times in four, a source in `unanswered` comes after all others.

    Args:
        extract: SELF.md by its parts.
        templates: source → text with `{{value}}`, or with `{{value1}}` and `{{value2}}`.
        recent_sources: sources of earlier expressions, oldest first.
        rng: the source of randomness.
        fallbacks: (text, source) for a SELF.md that says too little.
        suffix: ends every prompt.
        unanswered: sources whose posts nobody answered.
        design: a collection of pictures, for a thought that starts from a line about design.

    Raises:
        SkillError: neither a template nor a fallback can be used.

    """
    offers = [
        ExpressionPrompt(fill(templates[source], [rng.choice(some) for some in parts]), source)
        for source, read in _SOURCES.items()
        if source in templates and all(parts := [[item for item in part if item] for part in read(extract)])
    ]
    if design and (taste := f"{_TASTE}-{design.type}") in templates and (lines := lines_of_taste(extract)):
        offers.append(ExpressionPrompt(fill(templates[taste], [rng.choice(lines)], design), taste))
    rng.shuffle(offers)
    behind = {one.source for one in offers if one.source in unanswered and rng.random() < _BEHIND_SHARE}
    offers.sort(key=lambda one: one.source in behind)
    spare = [ExpressionPrompt(text, source) for text, source in fallbacks]
    rng.shuffle(spare)
    if not offers and not spare:
        raise SkillError("no expression prompt: neither SELF.md nor a fallback offers one")
    stale = recent_sources[-EXPRESSION_SOURCES_REMEMBERED:]
    chosen = next((one for one in offers + spare if one.source not in stale), (offers + spare)[0])
    return ExpressionPrompt(f"{chosen.prompt.strip()}\n\n{suffix.strip()}".strip(), chosen.source)


def generate_design_inspiration_prompt(
    templates: Mapping[str, str], design: DesignSource, *, suffix: str
) -> ExpressionPrompt | None:
    """Return a starting point from the pictures of a collection; None if the skill has no template for its kind."""
    source = f"{_INSPIRATION}-{design.type}"
    if source not in templates:
        return None
    return ExpressionPrompt(f"{fill(templates[source], [''], design).strip()}\n\n{suffix.strip()}".strip(), source)


def shows_picture(source: str) -> bool:
    """Return whether a thought from that source shows a picture."""
    return source.partition("-")[0] in {_TASTE, _INSPIRATION}


def lines_of_taste(extract: SelfExtract) -> list[str]:
    """Return the lines of SELF.md about what the SOUL likes to look at."""
    lines = (*extract.explorations, *extract.current_focus, *extract.patterns)
    return [line for line in lines if speaks_of_design(line)]


def fill(template: str, values: Sequence[str], design: DesignSource | None = None) -> str:
    """Return `template` with its variables replaced in a single pass: variables in SELF.md are never expanded."""
    about = {"designName": design.name, "designUrl": design.url} if design else {}
    known = {"value": values[0], "value1": values[0], "value2": values[-1], **about}
    return _VARIABLE.sub(lambda match: known.get(match["name"], ""), template)


def invites(text: str) -> bool:
    """Return whether `text` gives its readers something to answer or to use: a question, or a link."""
    return _LINK.search(text) is not None or (asks(text) and any(map(str.isalnum, text)))


def lacks_invitation(text: str, said: Sequence[str]) -> bool:
    """Return whether neither `text` nor any of our four latest posts invites an answer; `said` has the newest first.

    A feed in which every post asks for an answer tires its readers, and one in which none does speaks to nobody.
    """
    return len(said) >= ENDINGS_APART and not any(invites(one) for one in (text, *said[:ENDINGS_APART]))


ENDINGS_APART = 4
"""How many of our posts after one with an invitation may lack one."""


def add_invitation(text: str, invitations: Sequence[str], most: int = PORTABLE_MAX_GRAPHEMES) -> str:
    """Return `text` followed by one of `invitations`, if one fits into `most` characters; else `text` unchanged.

    The same text gets the same invitation, so that it still counts as said before.
    """
    wholes = [f"{text.rstrip()} {one.strip()}" for one in invitations]
    fitting = [whole for whole in wholes if grapheme_len(whole) <= most]
    return fitting[int(dedup_key(text), 16) % len(fitting)] if fitting else text


def is_expression_plan(state: Json) -> bool:
    """Return whether a stored plan has the expected form: moments, texts and lists."""
    moments = (state.get(name) for name in ("nextExpression", "lastExpression"))
    words = (state.get(name) for name in ("source", "prompt", "selfDigest", "collection"))
    recent = state.get("recentSources", [])
    return (
        all(moment is None or parse_iso_or_none(moment) is not None for moment in moments)
        and all(word is None or isinstance(word, str) for word in words)
        and isinstance(recent, list)
        and all(isinstance(source, str) for source in recent)
        and isinstance(state.get("sharedFindings", []), list)
    )
