"""The settings and the home for a command that only stops something or looks: a mistake in `.env` does not keep it."""

from __future__ import annotations

import sys
from pathlib import Path

from common.redact import Redactor
from common.settings import Settings, load_settings, settings_at_hand
from modules.runtime.home import Home
from soul.terminal.output import printable, write_lines


def settings_to_run(root: Path, content: bytes | None = None) -> Settings:
    """Return the settings of a home, or those of `content` as if it were its `.env`.

    Raises `ConfigError` for all that `soul run` refuses.
    """
    # NOTE(self): loaded here, so that a command that only looks need not wait for it.
    from common.clock import SystemClock  # noqa: PLC0415
    from common.env_keys import refuse_unknown_keys  # noqa: PLC0415
    from modules.runtime.budget.build import refuse_unpriced  # noqa: PLC0415

    refuse_unknown_keys(root, content=content)
    settings = load_settings(root, content)
    refuse_unpriced(settings, SystemClock().now())
    return settings


def at_hand(root: Path) -> tuple[Settings, Home]:
    """Return what can be read, and say on standard error what cannot. Raises `ConfigError` where nobody lives."""
    settings, problems = settings_at_hand(root)
    if problems:
        clean = Redactor(settings.secrets).text("; ".join(problems))
        write_lines(f"◆ Settings: {printable(clean)} (done without; `soul run` needs it)", to=sys.stderr)
    return settings, Home.at(root, settings.memory_dir)
