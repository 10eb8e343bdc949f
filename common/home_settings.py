"""The few settings by which a command finds what a SOUL wrote and shows it, read without loading the whole model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from common.clock import is_timezone
from common.env_file import given


@dataclass(frozen=True, slots=True)
class HomeSettings:
    """The SOUL's name, where its `.memory` lies (None: in its home), and its owner's time zone ("": the machine's)."""

    agent_name: str
    memory_dir: Path | None
    soul_timezone: str


def load_home_settings(home: Path) -> HomeSettings:
    """Read them from `<home>/.env` and the environment; what else stands there is not looked at.

    Raises:
        ConfigError: one of them is missing or wrong; then every variable is named that is.

    """
    values = given(home)
    name, folder, timezone = values.get("agent_name"), values.get("memory_dir"), values.get("soul_timezone", "")
    if name is None or not is_timezone(timezone):
        from common.settings import load_settings  # noqa: PLC0415 - takes time to load, and tells all that is wrong

        settings = load_settings(home)
        return HomeSettings(settings.agent_name, settings.memory_dir, settings.soul_timezone)
    return HomeSettings(name, Path(folder) if folder else None, timezone)
