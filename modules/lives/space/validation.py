"""Everything a message must pass before it may be said, but the judge. Pure.

The cheap checks come first, in the order of their table, then the comparison with what was said lately. The first that
stops the message ends the row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from common.constants import ENSEMBLE_ECHO_THRESHOLD
from common.text.echo import find_said_already, find_semantic_echo_ensemble, novelty_threshold
from common.text.stems import tokenize_with_stemming
from common.text.utf16 import u16_len
from modules.lives.space.judging import judge_wanted
from modules.lives.space.saturation import COMPARED_CHARS, role_budget
from modules.lives.space.sentences import count_sentences
from modules.lives.space.types import ValidationContext, ValidationOutcome
from modules.lives.space.validation_rows import CHEAP, ECHO, JUDGED, REPEATED, Stop

REJECTED = "[VALIDATION REJECTED] "
RECOVERED = "[VALIDATION RECOVERED] "

_PARTNERS = 10


def validate_space_message(context: ValidationContext) -> ValidationOutcome:
    """Whether the message may be said; blank words never may, but their commitments may be kept.

    In `message` are the words as they may be said, mended where a check could mend them.
    """
    message = context.message
    if not message.strip():
        return ValidationOutcome(ok=False, should_speak=False, reason="nothing to say", tag="empty", salvage=True)
    recovered: list[str] = []
    for row in CHEAP:
        if not row.stops(context, message):
            continue
        mended = row.mend(context, message) if row.mend else ""
        if not mended:
            return _rejected(row.stop, message, recovered, _figures(context, message))
        recovered.append(row.recovered)
        message = mended
    outcome = ValidationOutcome(
        ok=True,
        should_speak=True,
        signature=RECOVERED + ", ".join(recovered) if recovered else "",
        message=message,
        recovered=tuple(recovered),
        figures=_figures(context, message),
    )
    return outcome if context.commitments else _compared(context, outcome)


def judged_echo(outcome: ValidationOutcome) -> ValidationOutcome:
    """The outcome when the judge found that the message repeats what was said."""
    return _rejected(JUDGED, outcome.message, outcome.recovered, outcome.figures)


def repeated(outcome: ValidationOutcome) -> ValidationOutcome:
    """The outcome when we said the same words within the last days."""
    return _rejected(REPEATED, outcome.message, outcome.recovered, outcome.figures)


def echo_partners(context: ValidationContext) -> tuple[str, ...]:
    """What the message is compared with one by one, and what a judge is shown: the newest ten, oldest first."""
    return context.agent_messages[-_PARTNERS:]


def _compared(context: ValidationContext, outcome: ValidationOutcome) -> ValidationOutcome:
    """With the message compared to what agents said lately, ourselves among them."""
    partners = echo_partners(context)
    if not partners:
        return outcome
    if said := find_said_already(outcome.message, context.agent_messages, context.names):
        figures = {**outcome.figures, "strategy": "word for word", "matched": said}
        return _rejected(ECHO, outcome.message, outcome.recovered, figures)
    compared = outcome.message[:COMPARED_CHARS]
    stems = len(tokenize_with_stemming(compared, context.names))
    echo = find_semantic_echo_ensemble(
        compared,
        partners,
        context.agent_messages,
        ENSEMBLE_ECHO_THRESHOLD,
        novelty_threshold(stems),
        names=context.names,
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
    answers = context.agent_messages[max(0, len(context.agent_messages) - context.counts.agents) :]
    wanted = judge_wanted(
        compared,
        answers,
        echo,
        partners=len(partners),
        commitments=len(context.commitments),
        names=context.names,
    )
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


def _figures(context: ValidationContext, message: str) -> dict[str, float | str]:
    return {
        "chars": u16_len(message),
        "sentences": count_sentences(message),
        "commitments": len(context.commitments),
        "agents_since_host": context.counts.agents,
        "own_since_host": context.counts.own,
        "saturation": context.saturation,
        "budget": role_budget(context.role, context.mode),
        "role": context.role,
        "mode": context.mode,
    }
