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

    Without a name it is "", and a time zone that is none counts as not set.

    Raises:
        ConfigError: nobody lives in `home`, nor was one to live there.

    """
    values = given(home).values
    name, folder, timezone = values.get("agent_name"), values.get("memory_dir"), values.get("soul_timezone", "")
    if name is None:
        from common.settings import settings_at_hand  # noqa: PLC0415 - takes time to load, and is rarely needed

        settings_at_hand(home)
    return HomeSettings(name or "", Path(folder) if folder else None, timezone if is_timezone(timezone) else "")
