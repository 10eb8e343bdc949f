"""Reads settings and home for commands that only look or stop something: mistakes in `.env` do not prevent them."""

import sys
from collections.abc import Callable
from pathlib import Path

from common.errors import ConfigError, SettingsError
from common.redact import Redactor
from common.settings import Settings, read_settings
from modules.runtime.home import Home
from soul.terminal.output import write_lines


def settings_to_run(root: Path) -> Settings:
    """Return the settings of a home. Raises `SettingsError` with every mistake that `soul run` refuses."""
    settings, mistakes = examined_settings(root)
    if mistakes:
        raise SettingsError(mistakes)
    return settings


def examined_settings(root: Path, content: bytes | None = None) -> tuple[Settings, list[ConfigError]]:
    """Return the valid settings of a home, or of `content` as if it were its `.env`, and the mistakes.

    There is one error for each mistake that `soul run` refuses. Raises `ConfigError` if there is no SOUL in `root`.
    """
    # NOTE(self): imported here, so that a command that only looks need not wait for it.
    from common.settings import unknown_keys  # noqa: PLC0415

    settings, mistakes = read_settings(root, content)
    mistakes = [*unknown_keys(root, content=content), *mistakes]
    checks: dict[str, Callable[[], object]] = {"MEMORY_DIR": lambda: Home.at(root, settings.memory_dir)}
    if settings.budget_usd_per_day is not None:
        from common.clock import SystemClock  # noqa: PLC0415
        from modules.runtime.budget.budget import refuse_unpriced  # noqa: PLC0415

        checks["BUDGET_USD_PER_DAY"] = lambda: refuse_unpriced(settings, SystemClock().now())
    if settings.storage_url:
        from modules.runtime.watched_storage import storage_of  # noqa: PLC0415 - most homes have none

        checks["STORAGE_URL"] = lambda: storage_of(settings, root)
    for name, check in checks.items():
        try:
            check()
        except ConfigError as error:
            error.setting = error.setting or name
            mistakes.append(error)
    return settings, mistakes


def at_hand(root: Path, *, needs: tuple[str, ...] = ()) -> tuple[Settings, Home]:
    """Return valid settings and home; print mistakes on standard error.

    Raises:
        ConfigError: there is no SOUL, or a setting whose name begins with one of `needs` may be wrong.

    """
    settings, mistakes = read_settings(root)
    if wrong := [one for one in mistakes if needs and (not one.setting or one.setting.upper().startswith(needs))]:
        raise SettingsError(wrong)
    clean = Redactor(settings.secrets).text
    for mistake in mistakes:
        write_lines(f"◆ Settings: {clean(str(mistake))} (`soul run` refuses it)", to=sys.stderr)
    return settings, Home.at(root, settings.memory_dir)
