"""What can be learned from how commitments ended: which keep failing, and where to leave off for a while. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import Field

from common.clock import iso, parse_iso_or_none
from common.constants import DAY_MS
from common.schemas import GITHUB_COMMITMENT_TYPES, CommitmentType
from modules.services.agent.attention_list import AttentionNeeds, Failing, Item
from modules.services.commitments.naming import repo_of, title_of
from modules.services.commitments.policy import COMMITMENT_RETENTION_MS, COMMITMENT_STALE_THRESHOLD_MS
from modules.services.commitments.types import LIVE, CommitmentStatus, QueuedCommitment

REPO_COOLDOWN_FAILURES = 5
REPO_COOLDOWN_MS = 2 * DAY_MS

_ERROR_CHARS = 60
_NOTABLE = 2
_GOES_STALE = timedelta(milliseconds=COMMITMENT_STALE_THRESHOLD_MS)
_FAILED: frozenset[CommitmentStatus] = frozenset({"failed", "abandoned"})


@dataclass(frozen=True, slots=True)
class RepoCooldown:
    """Until `until` (ISO-8601 UTC) no commitment is begun in a repository; `reason` is a pattern."""

    owner: str
    repo: str
    until: Annotated[str, Field(alias="cooldownUntil")]
    reason: str = ""


def attention_of(commitments: Iterable[QueuedCommitment], now: datetime) -> AttentionNeeds:
    """Return what deserves attention: the live ones, each with when it goes stale, and what keeps failing.

    That is what failed more than once in one place of the commitments of the last 7 days. They were made in public, so
    nothing of them is private.
    """
    known = sorted(commitments, key=lambda one: one.created_at)
    failures = [one for one in known if one.status in _FAILED and _since(one.created_at, now, COMMITMENT_RETENTION_MS)]
    return AttentionNeeds(
        commitments=tuple(
            Item(title_of(one), one.status.replace("_", " "), at + _GOES_STALE if at else None)
            for one in known
            if one.status in LIVE
            for at in [parse_iso_or_none(one.created_at)]
        ),
        failing=tuple(
            Failing(kind, place, len(errors))
            for (kind, place), errors in sorted(_groups(failures).items())
            if len(errors) >= _NOTABLE
        ),
    )


def new_cooldowns(
    commitments: Iterable[QueuedCommitment], standing: Sequence[RepoCooldown], now: datetime
) -> list[RepoCooldown]:
    """The repositories in which five commitments failed lately, and that are not left alone already.

    What failed before a cooldown is older than that cooldown when it ends, so it does not begin another.
    """
    tried = [
        one
        for one in commitments
        if one.status in _FAILED
        and one.attempt_count
        and one.type in GITHUB_COMMITMENT_TYPES
        and _since(one.last_attempt_at, now, REPO_COOLDOWN_MS)
    ]
    until = iso(now + timedelta(milliseconds=REPO_COOLDOWN_MS))
    found: dict[tuple[str, str], RepoCooldown] = {}
    for (kind, place), errors in _groups(tried).items():
        owner, _, name = place.partition("/")
        if not name or len(errors) < REPO_COOLDOWN_FAILURES or cooldown_of(standing, owner, name, now):
            continue
        found[owner, name] = RepoCooldown(owner, name, until, _line(kind, place, errors))
    return list(found.values())


def cooldown_of(cooldowns: Iterable[RepoCooldown], owner: str, repo: str, now: datetime) -> RepoCooldown | None:
    """The cooldown under which a repository stands, if it does."""
    meant = f"{owner}/{repo}".lower()
    return next(
        (one for one in cooldowns if f"{one.owner}/{one.repo}".lower() == meant and not is_over(one, now)), None
    )


def is_over(cooldown: RepoCooldown, now: datetime) -> bool:
    """Whether it has ended; one whose end nobody can read has."""
    until = parse_iso_or_none(cooldown.until)
    return until is None or until <= now


def _groups(commitments: Iterable[QueuedCommitment]) -> Mapping[tuple[CommitmentType, str], list[str]]:
    groups: defaultdict[tuple[CommitmentType, str], list[str]] = defaultdict(list)
    for one in commitments:
        repo = repo_of(one.params)
        groups[one.type, repo.full_name.lower() if repo else ""].append((one.error or "unknown error")[:_ERROR_CHARS])
    return groups


def _line(kind: CommitmentType, place: str, errors: Sequence[str]) -> str:
    return f"{kind}:{place}: {len(errors)} failures ({'; '.join(dict.fromkeys(errors))})"


def _since(moment: str | None, now: datetime, window_ms: float) -> bool:
    at = parse_iso_or_none(moment)
    return at is not None and now - at <= timedelta(milliseconds=window_ms)
