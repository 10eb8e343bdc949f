"""The state of a home of a fleet, from its Sandbox and its pod. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from modules.runtime.sleep_note import Figures
from soul.exit_codes import ASLEEP, ExitCode

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
