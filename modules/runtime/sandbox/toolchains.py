"""Finds the compilers of this machine that a run would not see, or not find, by itself."""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from modules.runtime.sandbox.policy import PATH
from modules.runtime.sandbox.types import Shared

_GO = Path("/usr/local/go")


def toolchains(env: Mapping[str, str] = os.environ, path: str = PATH) -> tuple[Shared, ...]:
    """Return the folders to share with runs, read-only: the default toolchain of rustup, and Go in `/usr/local/go`.

    Each has its programs in `bin`. Nothing is returned for a program that runs find by themselves, in `path`.
    """
    rust = None if shutil.which("cargo", path=path) else _rust(Path(env.get("RUSTUP_HOME") or Path.home() / ".rustup"))
    go = None if shutil.which("go", path=path) else _GO
    found = [Shared(name, folder) for name, folder in (("rust", rust), ("go", go)) if folder]
    return tuple(one for one in found if (one.path / "bin").is_dir())


def _rust(rustup: Path) -> Path | None:
    with suppress(OSError, tomllib.TOMLDecodeError, KeyError):
        name = str(tomllib.loads((rustup / "settings.toml").read_text("utf-8"))["default_toolchain"])
        return next(iter(sorted((rustup / "toolchains").glob(f"{name}*"))), None)
    return None
