"""What the owner set, in `<home>/.env` and in the environment: read here, whoever asks."""

from __future__ import annotations

import os
from pathlib import Path

from dotenv import dotenv_values

from common.errors import ConfigError


def env_file(home: Path) -> Path:
    """Where the settings of `home` lie."""
    return home / ".env"


def given(home: Path) -> dict[str, str]:
    """Return each variable that has a value, by its name in lower case; the environment wins over the file.

    A home without the file has only the environment.

    Raises:
        ConfigError: the file cannot be read.

    """
    file = env_file(home)
    try:
        written = dotenv_values(file, encoding="utf-8") if file.is_file() or file.is_fifo() else {}
    except UnicodeDecodeError:
        raise ConfigError(f"{file} is not UTF-8 text", remedy="Save it as UTF-8.") from None
    except OSError as error:
        why = error.strerror or str(error)
        raise ConfigError(f"{file} cannot be read: {why}", remedy="Give this user read access to it.") from error
    return {name.lower(): value for source in (written, os.environ) for name, value in source.items() if value}
