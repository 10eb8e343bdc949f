"""A home that tries a newer image before the others, judged by its Sandbox and its pod. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic import TypeAdapter, ValidationError

from common.clock import parse_iso
from common.errors import UsageError
from soul.exit_codes import ANEW, ASLEEP, ExitCode
from soul.fleet.policy import figures_of, image_of, is_held, last_exit, mode_of, restarts_of, state_of

UPGRADE = "soul.town/upgrade"
"""The annotation that holds a `Canary`, from which a roll-out continues."""
_TRIED = timedelta(hours=48)
_STARTS_WITHIN = timedelta(minutes=10)
_RESTARTS = 3
_GOOD_ENDS = {0, ANEW, ASLEEP, ExitCode.IN_USE}
_RISE = 10
"""A rise by this many frictions that is also at least half of those before is not chance."""


@dataclass(frozen=True, slots=True)
class Canary:
    """The state of a home that tries a newer `image`; times are ISO-8601.

    Attributes:
        before: its image before the trial.
        ready: since when it is known to have been awake with the new image; "" if it is not known.
        frictions: its frictions within a week when the trial began; None if unknown.
        stopped: why the roll-out was stopped because of it; "" if it was not.
        woken: whether the roll-out has woken it with the new image.

    """

    image: str
    before: str
    began: str
    ready: str = ""
    frictions: int | None = None
    stopped: str = ""
    woken: bool = False

    def text(self) -> str:
        """Return the value of the annotation, as JSON."""
        return json.dumps(asdict(self))


_CANARY = TypeAdapter(Canary)


def canary_of(sandbox: Mapping[str, Any]) -> Canary | None:
    """Return the trial of a home, or None if it tries no image."""
    try:
        return _CANARY.validate_json((sandbox["metadata"].get("annotations") or {}).get(UPGRADE, ""))
    except ValidationError:
        return None


def has_woken(canary: Canary, sandbox: Mapping[str, Any], pod: Mapping[str, Any] | None) -> bool:
    """Return whether the home is awake with the image, or was and has fallen asleep since."""
    if mode_of(sandbox) == "Suspended":
        return canary.woken and not is_held(sandbox) and image_of(sandbox) == canary.image
    return state_of(sandbox) == "awake" and image_of(pod or {}) == canary.image


def trouble_of(canary: Canary, sandbox: Mapping[str, Any], pod: Mapping[str, Any] | None, now: datetime) -> str:
    """Return why no other home should take the image; "" if nothing speaks against it."""
    is_new = image_of(pod or {}) == canary.image
    if is_new and (code := last_exit(pod)) is not None and code not in _GOOD_ENDS:
        return f"its process ended with code {code}"
    if is_new and (restarts := restarts_of(pod)) >= _RESTARTS:
        return f"its process was started again {restarts} times"
    if not canary.ready and now - parse_iso(canary.began) > _STARTS_WITHIN:
        return f"it was not awake within {_STARTS_WITHIN.total_seconds() / 60:g} minutes"
    figures = figures_of(sandbox)
    if figures is None or canary.frictions is None:
        return ""
    is_rise = figures.frictions - canary.frictions >= max(_RISE, canary.frictions / 2)
    return f"its frictions within a week rose from {canary.frictions} to {figures.frictions}" if is_rise else ""


def has_tried(canary: Canary, now: datetime) -> bool:
    """Return whether the home has run with the image for long enough."""
    return bool(canary.ready) and now - parse_iso(canary.ready) >= _TRIED


def canaries_of(told: str, homes: int) -> int:
    """Return how many of `homes` try the image: `told` is a number, or a share such as 5%. Raises `UsageError`."""
    number = told.removesuffix("%")
    if not number.isdecimal() or not (count := int(number)):
        raise UsageError(f"{told} is neither a number of homes nor a share", remedy="Write 3, or 5%.")
    return min(homes, math.ceil(homes * count / 100) if told.endswith("%") else count)
