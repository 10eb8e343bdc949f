"""The pace of this SOUL in the agent space: `.memory/space-config.json`, read again at each look.

The owner may edit the file while the SOUL runs, and so may the model, within narrower bounds. If the file is no valid
JSON, as during an edit, the last reading stays in force and this is reported once. The file survives crashes (written
in one step) and upgrades (edits are kept).
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from common.clock import Clock, iso, parse_iso_or_none
from common.constants import MINUTE_MS, SECOND_MS, SPACE_RECONNECT_INTERVAL_MS, TEXT_MAX_BYTES
from common.errors import MachineTrouble
from common.files import load_state, read_bounded, save_state
from common.text.untrusted import one_line
from modules.services.skills.skills import Skills

SPACE_CONFIG_FILE = "space-config.json"
SPACE_CHECK_INTERVAL_MS = 5 * SECOND_MS

LIMITS_MS: Mapping[str, tuple[int, int]] = {
    "checkIntervalMs": (2_000, 30_000),
    "reconnectIntervalMs": (30_000, 1_800_000),
    "cooldownMinMs": (3_000, 120_000),
    "cooldownMaxMs": (3_000, 300_000),
    "replyDelayMinMs": (500, 10_000),
    "replyDelayMaxMs": (500, 30_000),
    "reflectionEveryN": (1, 50),
}
"""Minimum and maximum of each number, by its name in the file; all but `reflectionEveryN` are milliseconds."""

MODEL_MAY_CHANGE = frozenset({*LIMITS_MS, "behaviorNotes"})

_PAIRS = (("cooldown_min_ms", "cooldown_max_ms"), ("reply_delay_min_ms", "reply_delay_max_ms"))
_MAX_NOTES_CHARS = 1000
_MAX_REASON_CHARS = 500
_TOLD_CHARS = 300
_BETWEEN_CHANGES = timedelta(minutes=10)
_SKILL = "space-participation"


@dataclass(frozen=True, slots=True)
class SpaceConfig:
    """The pace; times in ms. `last_adjusted_at` is ISO-8601, None if the SOUL itself never adjusted the pace."""

    check_interval_ms: int = SPACE_CHECK_INTERVAL_MS
    reconnect_interval_ms: int = SPACE_RECONNECT_INTERVAL_MS
    cooldown_min_ms: int = 10_000
    cooldown_max_ms: int = 20_000
    reply_delay_min_ms: int = 1_000
    reply_delay_max_ms: int = 3_000
    reflection_every_n: int = 5
    behavior_notes: str = ""
    last_adjusted_at: str | None = None
    last_adjusted_reason: str = ""


_NAMES = {
    field.name: "".join(word if at == 0 else word.capitalize() for at, word in enumerate(field.name.split("_")))
    for field in fields(SpaceConfig)
}
_FIELDS = {name: field for field, name in _NAMES.items()}


def clamp_value(field: str, value: float) -> int:
    """Return `value` rounded to a whole number within the limits of `field`, which is named as in the file."""
    least, most = LIMITS_MS[field]
    return max(least, min(most, math.floor(value + 0.5)))


def enforce_min_max_pairs(config: SpaceConfig) -> SpaceConfig:
    """Return `config` with each maximum that is below its minimum raised to it."""
    raised = {most: max(getattr(config, least), getattr(config, most)) for least, most in _PAIRS}
    return replace(config, **raised)


def config_from(data: Mapping[str, Any], base: SpaceConfig = SpaceConfig()) -> SpaceConfig:
    """Return `base` updated with `data`; unknown keys and values of the wrong kind are ignored."""
    read: dict[str, Any] = {_FIELDS[key]: value for key, raw in data.items() if (value := _value(key, raw)) is not None}
    return enforce_min_max_pairs(replace(base, **read))


def adjusted(config: SpaceConfig, asked: Mapping[str, Any], reason: str, at: str) -> SpaceConfig:
    """Return `config` with the changes that the model asks for and may make; unchanged if none can be granted.

    Changes are meant to be deliberate: for ten minutes after one, no other is granted.
    """
    if _just_adjusted(config.last_adjusted_at, at):
        return config
    granted = config_from({key: value for key, value in asked.items() if key in MODEL_MAY_CHANGE}, config)
    if granted == config:
        return config
    return replace(granted, last_adjusted_at=at, last_adjusted_reason=reason[:_MAX_REASON_CHARS])


def format_space_config_for_prompt(config: SpaceConfig, skills: Skills) -> str:
    """Return what the model is told of its own pace.

    Its own notes are included without a frame, although a room may have influenced them: short, and on one line.
    """
    spoken = {name: _spoken_ms(value) for name, value in asdict(config).items() if name.endswith("_ms")}
    noted = {name: one_line(value, _TOLD_CHARS) for name, value in asdict(config).items() if isinstance(value, str)}
    return skills.render(_SKILL, "Config", **(asdict(config) | noted | spoken))


class SpaceConfigFile:
    """The configuration file. `notice` is a line for the owner about the latest reading, "" if all was well.

    Args:
        path: of the file.
        clock: stamps adjustments.

    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._known = SpaceConfig()
        self._is_readable = True
        self._set_aside = ""
        self.notice = ""

    def load_space_config(self) -> SpaceConfig:
        """Return what the file says now; defaults for what it does not say, the last reading while it is unreadable."""
        try:
            data = json.loads(read_bounded(self._path, TEXT_MAX_BYTES).decode())
            problem = "" if isinstance(data, dict) else "it does not hold a JSON object"
        except FileNotFoundError:
            data, problem = {}, ""
        except (OSError, MachineTrouble, ValueError, RecursionError) as error:
            data, problem = {}, str(error)
        self._is_readable = not problem
        self.notice = f"{self._path.name} cannot be read, so nothing changes: {problem}" if problem else self._set_aside
        if self._is_readable:
            self._known = config_from(data)
        return self._known

    def save_space_config(self, config: SpaceConfig) -> None:
        """Write the file in one step; an old file that cannot be read is kept beside it. Raises `StorageError`."""
        if not self._is_readable:
            self._set_aside = load_state(self._path, {}).notice
        save_state(self._path, {_NAMES[name]: value for name, value in asdict(config).items()})
        self._known, self._is_readable, self.notice = config, True, self._set_aside

    def update_space_config(self, adjustments: Mapping[str, Any], reason: str) -> SpaceConfig:
        """Apply the permitted adjustments with time and reason, and return the result; write only if it changed."""
        before = self.load_space_config()
        after = adjusted(before, adjustments, reason, iso(self._clock.now()))
        if after != before:
            self.save_space_config(after)
        return after

    def ensure(self) -> None:
        """Create the file for the owner if there is none. Raises `StorageError`."""
        if not self._path.exists():
            self.save_space_config(self._known)


def _just_adjusted(last: str | None, now: str) -> bool:
    before, at = parse_iso_or_none(last), parse_iso_or_none(now)
    return before is not None and at is not None and timedelta(0) <= at - before < _BETWEEN_CHANGES


def _value(key: str, raw: object) -> int | str | None:
    if key in LIMITS_MS:
        return _number(key, raw)
    if key not in _FIELDS or not isinstance(raw, str):
        return None
    return raw[:_MAX_NOTES_CHARS] if key == "behaviorNotes" else raw


def _number(key: str, raw: object) -> int | None:
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        return None
    try:
        value = float(raw)
    except (ValueError, OverflowError):
        return None
    return clamp_value(key, value) if math.isfinite(value) else None


def _spoken_ms(value: int) -> str:
    return f"{value / MINUTE_MS:.1f}m" if value >= MINUTE_MS else f"{value / SECOND_MS:.1f}s"
