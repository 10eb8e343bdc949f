"""The state of a home of a fleet, from its Sandbox and its pod, and of one that tries a newer image first. Pure."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from common.clock import parse_iso
from common.errors import UsageError
from modules.runtime.sleep_note import Figures
from soul.exit_codes import ANEW, ASLEEP, ExitCode

HomeState = Literal["awake", "starting", "asleep", "falling asleep", "ended", "failing"]
Mode = Literal["Running", "Suspended"]

HELD, FIGURES = "soul.town/held", "soul.town/figures"
"""The annotations of a Sandbox: the owner wants it to sleep in any case; the figures it told the watcher last."""
_FIGURES = TypeAdapter(Figures)
_ENDS = {
    0: "stopped by itself",
    ExitCode.USAGE: "its arguments are wrong",
    ExitCode.IN_USE: "another copy of the home is active",
    ExitCode.CONFIG: "a setting, a password or SOUL.md is wrong, or its version proved bad",
    ASLEEP: "asleep, and its pod is still there",
}


def mode_of(sandbox: Mapping[str, Any]) -> Mode:
    """Return the mode that a Sandbox is set to."""
    return "Suspended" if sandbox["spec"].get("operatingMode") == "Suspended" else "Running"


def image_of(told: Mapping[str, Any]) -> str:
    """Return the image of a Sandbox or a pod; "" for an empty object."""
    spec = told.get("spec", {})
    return str(spec.get("podTemplate", {"spec": spec})["spec"]["containers"][0]["image"]) if spec else ""


def is_held(sandbox: Mapping[str, Any]) -> bool:
    """Return whether the owner put the home to sleep."""
    return HELD in (sandbox["metadata"].get("annotations") or {})


def figures_of(sandbox: Mapping[str, Any]) -> Figures | None:
    """Return the figures that a home told the watcher last; None if unknown."""
    try:
        return _FIGURES.validate_json((sandbox["metadata"].get("annotations") or {}).get(FIGURES, ""))
    except ValidationError:
        return None


def state_of(sandbox: Mapping[str, Any], pod: Mapping[str, Any] | None = None) -> HomeState:
    """Return the state of a home. Without `pod`, one whose container fails again and again is `starting`."""
    if mode_of(sandbox) == "Suspended":
        return "asleep" if _is_so(sandbox, "Suspended") else "falling asleep"
    if _is_so(sandbox, "Finished"):
        return "ended"
    if _is_so(sandbox, "Ready"):
        return "awake"
    return "failing" if "waiting" in _container(pod).get("state", {}) and last_exit(pod) is not None else "starting"


def detail_of(sandbox: Mapping[str, Any], pod: Mapping[str, Any] | None) -> str:
    """Return what else is known: how its process ended, how often it restarted, what is missing."""
    code, restarts = last_exit(pod), restarts_of(pod)
    told = ["until you wake it"] if is_held(sandbox) else []
    told += [] if code is None else [_ENDS.get(code, f"its process ended with code {code}")]
    if restarts:
        told.append(f"restarts: {restarts}")
    ready = _condition(sandbox, "Ready")
    if not told and mode_of(sandbox) == "Running" and ready.get("status") != "True":
        waiting = _container(pod).get("state", {}).get("waiting", {})
        told.append(str(waiting.get("reason") or ready.get("message") or ready.get("reason") or ""))
    return ", ".join(filter(None, told))


def _is_so(sandbox: Mapping[str, Any], kind: str) -> bool:
    return bool(_condition(sandbox, kind).get("status") == "True")


def _condition(sandbox: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """Return a condition; {} if there is none, or it is older than the newest change of the Sandbox."""
    conditions = sandbox.get("status", {}).get("conditions", ())
    found: Mapping[str, Any] = next((one for one in conditions if one["type"] == kind), {})
    generation = sandbox["metadata"].get("generation", 0)
    return found if found.get("observedGeneration", generation) >= generation else {}


def _container(pod: Mapping[str, Any] | None) -> Mapping[str, Any]:
    statuses = (pod or {}).get("status", {}).get("containerStatuses", ())
    found: Mapping[str, Any] = next(iter(statuses), {})
    return found


def restarts_of(pod: Mapping[str, Any] | None) -> int:
    """Return how often the container of a pod restarted."""
    return int(_container(pod).get("restartCount", 0))


def last_exit(pod: Mapping[str, Any] | None) -> int | None:
    """Return the last exit code of the container's process; None if it has not ended yet."""
    states = (_container(pod).get("state", {}), _container(pod).get("lastState", {}))
    return next((one["terminated"]["exitCode"] for one in states if "terminated" in one), None)


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
