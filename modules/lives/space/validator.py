"""Everything a message must pass before it may be said.

The cheap checks come first, in the order of their table, then the comparison with what was said lately, then our own
lines of the last days, then a judge. The first check that stops the message ends the row. The judge is asked at most
once for a message, and only in a talk where several agents have answered the same words of the host: one who repeats a
point in other words shares no word with it. The first two answers, questions, commitments, short remarks and words that
bring a new figure, link or name of code need no judge.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from common.clock import Clock
from common.constants import DAY_MS, ECHO_JUDGE_BORDERLINE_LOW, ECHO_SHORT_STEMS, ENSEMBLE_ECHO_THRESHOLD
from common.schemas import Commitment
from common.text.echo import EnsembleEchoResult, find_said_already, find_semantic_echo_ensemble, novelty_threshold
from common.text.stems import tokenize_with_stemming
from common.text.strings import dedup_key
from common.text.utf16 import u16_len
from modules.lives.space.checks import CHEAP, ECHO, JUDGED, REPEATED, Stop
from modules.lives.space.classifiers import EchoJudge
from modules.lives.space.journal_reporter import LOOP, SPOKE
from modules.lives.space.phrases import count_sentences
from modules.lives.space.policy import COMPARED_CHARS, role_budget
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.types import ValidationOutcome
from modules.runtime.journal.journal import Journal

ECHO_JUDGE_NOVELTY_HIGH = 0.40
SPACE_OWN_LINES_KEPT_MS = 7 * DAY_MS

_FEWEST_ANSWERS = 2
_AFTER_MARK = " )\"'*_"
_FACT = re.compile(r"https?://\S*\w|`[^`\n]+`|#\d+|(?<![\w.])\d+(?:[.,:]\d+)*")


@dataclass(frozen=True, slots=True)
class JudgeWanted:
    """Whether to ask the judge, and why or why not."""

    should: bool
    reason: str


def judge_wanted(
    message: str,
    answers: Sequence[str],
    echo: EnsembleEchoResult,
    *,
    partners: int,
    commitments: int = 0,
    names: Collection[str] = (),
) -> JudgeWanted:
    """Whether `message` should be judged.

    Args:
        message: what is about to be said.
        answers: what agents, we among them, have said since the host last spoke, oldest first.
        echo: what the comparison of words found.
        partners: how many messages it was compared with.
        commitments: how many are made with it.
        names: who is in the room.

    """
    near = echo.score >= ECHO_JUDGE_BORDERLINE_LOW and echo.novelty < ECHO_JUDGE_NOVELTY_HIGH
    refusals = (
        (commitments > 0, "it promises something"),
        (echo.is_echo, "it is an echo already"),
        (partners < _FEWEST_ANSWERS, "too little was said to repeat"),
        (not near and len(answers) < _FEWEST_ANSWERS, "few have answered the host yet"),
        (not near and message.rstrip(_AFTER_MARK).endswith("?"), "it asks something"),
        (not near and len(tokenize_with_stemming(message, names)) < ECHO_SHORT_STEMS, "it is too short for a point"),
        (not near and bool(new_facts(message, answers)), "it brings a new figure, link or name of code"),
    )
    for refused, reason in refusals:
        if refused:
            return JudgeWanted(should=False, reason=reason)
    told = "its words come near to what was said" if near else "one more answer to the same words of the host"
    return JudgeWanted(should=True, reason=told)


def new_facts(message: str, said: Sequence[str]) -> tuple[str, ...]:
    """Figures, links and names of code in `message` that nobody has used, in order."""
    known = {fact for text in said for fact in _FACT.findall(text)}
    return tuple(fact for fact in dict.fromkeys(_FACT.findall(message)) if fact not in known)


_FEWEST_WORDS = 4


@dataclass(frozen=True, slots=True)
class OwnLines:
    """Our lines, as `journal` tells them."""

    journal: Journal
    clock: Clock

    async def hold(self, message: str) -> bool:
        """Whether we said the same words within the last days; a greeting of up to three words may come again."""
        if len(message.split()) < _FEWEST_WORDS:
            return False
        since = self.clock.now() - timedelta(milliseconds=SPACE_OWN_LINES_KEPT_MS)
        key = dedup_key(message)
        return any(dedup_key(said) == key for said in await self.journal.messages(LOOP, SPOKE, since))


REJECTED = "[VALIDATION REJECTED] "
RECOVERED = "[VALIDATION RECOVERED] "

_PARTNERS = 10


def validate_space_message(
    message: str, commitments: Sequence[Commitment], snapshot: RoomSnapshot
) -> ValidationOutcome:
    """Whether the message may be said; blank words never may, but their commitments may be kept.

    In `message` are the words as they may be said, mended where a check could mend them.
    """
    if not message.strip():
        return ValidationOutcome(ok=False, should_speak=False, reason="nothing to say", tag="empty", salvage=True)
    recovered: list[str] = []
    for row in CHEAP:
        if not row.stops(message, commitments, snapshot):
            continue
        mended = row.mend(message, commitments, snapshot) if row.mend else ""
        if not mended:
            return _rejected(row.stop, message, recovered, _figures(message, commitments, snapshot))
        recovered.append(row.recovered)
        message = mended
    outcome = ValidationOutcome(
        ok=True,
        should_speak=True,
        signature=RECOVERED + ", ".join(recovered) if recovered else "",
        message=message,
        recovered=tuple(recovered),
        figures=_figures(message, commitments, snapshot),
    )
    return outcome if commitments else _compared(outcome, snapshot)


def judged_echo(outcome: ValidationOutcome) -> ValidationOutcome:
    """The outcome when the judge found that the message repeats what was said."""
    return _rejected(JUDGED, outcome.message, outcome.recovered, outcome.figures)


def repeated(outcome: ValidationOutcome) -> ValidationOutcome:
    """The outcome when we said the same words within the last days."""
    return _rejected(REPEATED, outcome.message, outcome.recovered, outcome.figures)


def echo_partners(snapshot: RoomSnapshot) -> tuple[str, ...]:
    """What a message is compared with one by one, and what a judge is shown: the newest ten, oldest first."""
    return snapshot.agent_messages[-_PARTNERS:]


def _compared(outcome: ValidationOutcome, snapshot: RoomSnapshot) -> ValidationOutcome:
    """With the message compared to what agents said lately, ourselves among them."""
    said, names, partners = snapshot.agent_messages, snapshot.names, echo_partners(snapshot)
    if not partners:
        return outcome
    if again := find_said_already(outcome.message, said, names):
        figures = {**outcome.figures, "strategy": "word for word", "matched": again}
        return _rejected(ECHO, outcome.message, outcome.recovered, figures)
    compared = outcome.message[:COMPARED_CHARS]
    stems = len(tokenize_with_stemming(compared, names))
    echo = find_semantic_echo_ensemble(
        compared, partners, said, ENSEMBLE_ECHO_THRESHOLD, novelty_threshold(stems), names=names
    )
    figures = {
        **outcome.figures,
        "score": echo.score,
        "novelty": echo.novelty,
        "strategy": echo.strategy,
        "matched": echo.matched_message or "",
    }
    if echo.is_echo:
        return _rejected(ECHO, outcome.message, outcome.recovered, figures)
    answers = said[max(0, len(said) - snapshot.counts.agents) :]
    wanted = judge_wanted(compared, answers, echo, partners=len(partners), names=names)
    return replace(outcome, figures={**figures, "judge": wanted.reason}, judge=wanted.should)


def _rejected(
    stop: Stop, message: str, recovered: Sequence[str], figures: Mapping[str, float | str]
) -> ValidationOutcome:
    return ValidationOutcome(
        ok=False,
        should_speak=False,
        reason=stop.reason,
        check=stop.check,
        signature=REJECTED + stop.signature,
        tag=stop.tag,
        salvage=stop.salvage,
        message=message,
        recovered=tuple(recovered),
        figures=figures,
    )


def _figures(message: str, commitments: Sequence[Commitment], snapshot: RoomSnapshot) -> dict[str, float | str]:
    return {
        "chars": u16_len(message),
        "sentences": count_sentences(message),
        "commitments": len(commitments),
        "agents_since_host": snapshot.counts.agents,
        "own_since_host": snapshot.counts.own,
        "saturation": snapshot.saturation,
        "budget": role_budget(snapshot.role, snapshot.mode),
        "role": snapshot.role,
        "mode": snapshot.mode,
    }


@dataclass(frozen=True, slots=True)
class MessageValidator:
    """Weighs for a SOUL whose lines of the last days are `own_lines`."""

    judge: EchoJudge
    own_lines: OwnLines

    async def validate(
        self, message: str, commitments: tuple[Commitment, ...], snapshot: RoomSnapshot
    ) -> ValidationOutcome:
        """What becomes of `message`, said with `commitments`."""
        outcome = validate_space_message(message, commitments, snapshot)
        if outcome.ok and not commitments and await self.own_lines.hold(outcome.message):
            return repeated(outcome)
        if not (outcome.ok and outcome.judge):
            return outcome
        echo = await self.judge.is_echo_by_llm_judge(outcome.message, echo_partners(snapshot))
        return judged_echo(outcome) if echo else outcome
