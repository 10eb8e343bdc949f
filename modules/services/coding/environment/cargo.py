"""Reads what a Cargo repository needs, and how Cargo copies it: from one registry, running no build script."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from common.trees import small_text, walk
from modules.services.coding.environment.types import PackageManager, PackageNeeds
from modules.services.coding.suite_files import CARGO, NOT_SOURCE

PAGE, LOCK = "Cargo.toml", "Cargo.lock"

_CONFIG = """[source.crates-io]
replace-with = "vendored"
[source.vendored]
directory = "cargo/vendor"
"""
"""Leads Cargo to the copies, for runs without a network."""
_PROBE_PAGE = '[package]\nname = "p"\nversion = "0.1.0"\n[dependencies]\ncfg-if = "1"\n'
_PAGE_BYTES, _LOCK_BYTES = 200_000, 4_000_000
_MOST_FILES = 20_000
_NAME_CHARS = 60
_WITHOUT_PACKAGES = frozenset({"package", "metadata", "features"})


def cargo_manager(registry: str) -> PackageManager:
    """Return how Cargo is run: from one registry, or from its own where that is ""."""
    ours = ("source.crates-io.replace-with='ours'", f"source.ours.registry='sparse+{registry.rstrip('/')}/'")
    cargo = " ".join(["cargo", *(f"--config {shlex.quote(one)}" for one in ours if registry)])
    made = f"mkdir -p /tmp/p/src && cd /tmp/p && touch src/lib.rs && printf %s {shlex.quote(_PROBE_PAGE)} >{PAGE}"
    copied = f"{cargo} vendor -q --locked --versioned-dirs --respect-source-config {CARGO}/vendor >/dev/null"
    return PackageManager(
        name="cargo",
        folder=CARGO,
        lock=LOCK,
        index=registry,
        env={"CARGO_NET_RETRY": "1", "CARGO_REGISTRIES_CRATES_IO_PROTOCOL": "sparse"},
        probe=f"{made} && {cargo} fetch -q",
        resolve=f"{cargo} fetch -q",
        install=f"{copied} && printf %s {shlex.quote(_CONFIG)} >{CARGO}/config.toml",
        needs=cargo_needs,
    )


def cargo_needs(tree: Path) -> PackageNeeds:
    """Return what Cargo needs to see of a tree; nothing where that names no package from elsewhere."""
    files = dict(_files(tree))
    if PAGE not in files:
        return PackageNeeds()
    try:
        pages = [tomllib.loads(text) for path, text in files.items() if path.endswith(PAGE)]
    except (tomllib.TOMLDecodeError, RecursionError):
        return PackageNeeds(lacks=(f"{PAGE} cannot be read",))
    if elsewhere := list(dict.fromkeys(name for page in pages for name in _from_git(page))):
        return PackageNeeds(
            lacks=tuple(f"{name[:_NAME_CHARS]} is not taken from its Git repository" for name in elsewhere)
        )
    is_locked = LOCK in files
    has_some = "source = " in files[LOCK] if is_locked else any("dependencies" in text for text in files.values())
    return PackageNeeds(files, is_locked=is_locked) if has_some else PackageNeeds()


def _from_git(table: Mapping[str, object]) -> Iterator[str]:
    """Yield the names of the packages that a page takes from Git repositories."""
    for name, value in table.items():
        if isinstance(value, Mapping) and name not in _WITHOUT_PACKAGES:
            yield from [name] if "git" in value else _from_git(value)


def _files(tree: Path) -> Iterator[tuple[str, str]]:
    """Yield each `Cargo.toml`, the lock, and the names of the sources, by which Cargo knows what a package builds."""
    count = 0
    for folder, folders, names in walk(tree):
        folders[:] = [name for name in folders if name not in NOT_SOURCE]
        for name in names:
            is_page, is_lock = name == PAGE, name == LOCK and not folder
            text = (
                small_text(tree / folder / name, _LOCK_BYTES if is_lock else _PAGE_BYTES) if is_page or is_lock else ""
            )
            if text is None or not (text or name.endswith(".rs")):
                continue
            yield f"{folder}/{name}" if folder else name, text
            if (count := count + 1) >= _MOST_FILES:
                return
