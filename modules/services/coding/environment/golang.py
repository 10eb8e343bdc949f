"""Reads what a Go repository needs, and how Go downloads it: from one proxy, each module by its hash in `go.sum`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from common.trees import small_text, walk
from modules.services.coding.environment.types import PackageManager, PackageNeeds
from modules.services.coding.suite_files import GO, NOT_SOURCE

_PROXY = 'export GOPROXY="${GOPROXY:-$(go env GOPROXY | sed "s/[,|]direct$//")}"'
"""The one that is set or that Go has by itself, without repositories."""
_PROBE = f'{_PROXY} && echo "$GOPROXY" && go mod download -json golang.org/x/mod@v0.12.0'
"""Asks the proxy for a module that we name."""
_INSTALL = (
    f"{_PROXY} && go mod download"
    f' && kept="$GOMODCACHE" && export GOMODCACHE="$PWD/{GO}" && GOPROXY="file://$kept/cache/download" go mod download'
)
"""Downloads into what is kept, and copies from there what this repository needs."""

_LOOPBACK = re.compile(r"//(?:localhost|127\.0\.0\.1)(?=[:/]|$)")
"""Go would ask these past the gateway, and find nothing: it takes no HTTP proxy for them, but for other spellings."""
_PAGE, _SUM = "go.mod", "go.sum"
_NAMES = frozenset({_PAGE, _SUM, "go.work", "go.work.sum"})
_VENDORED = "vendor/modules.txt"
_REQUIRES = re.compile(r"^[ \t]*require\b", re.MULTILINE)
_MOST_BYTES, _MOST_FILES = 4_000_000, 500


def go_manager(proxy: str) -> PackageManager:
    """Return how Go is run: with one proxy, no file of settings, and `go.sum` alone for what is genuine."""
    proxy = _LOOPBACK.sub("//LOCALHOST", proxy)
    env = {"GOENV": "off", "GOFLAGS": "-modcacherw", "GOSUMDB": "off", "GOTOOLCHAIN": "local", "GOVCS": "*:off"}
    return PackageManager(
        name="go",
        folder=GO,
        lock=_SUM,
        index=proxy,
        env=env | ({"GOPROXY": proxy} if proxy else {}),
        probe=_PROBE,
        resolve="",
        install=_INSTALL,
        needs=go_needs,
    )


def go_needs(tree: Path) -> PackageNeeds:
    """Return what Go needs to see of a tree; nothing where that names no module, or brings them all."""
    files = dict(_files(tree))
    is_needed = _PAGE in files and any(_REQUIRES.search(text) for text in files.values())
    if not is_needed or (tree / _VENDORED).exists():
        return PackageNeeds()
    if _SUM not in files:
        return PackageNeeds(lacks=(f"{_PAGE} names modules, and there is no {_SUM} with their hashes",))
    return PackageNeeds(files, is_locked=True)


def _files(tree: Path) -> Iterator[tuple[str, str]]:
    count = 0
    for folder, folders, names in walk(tree):
        folders[:] = [name for name in folders if name not in NOT_SOURCE]
        for name in sorted(_NAMES.intersection(names)):
            if (text := small_text(tree / folder / name, _MOST_BYTES)) is not None and count < _MOST_FILES:
                count += 1
                yield f"{folder}/{name}" if folder else name, text
