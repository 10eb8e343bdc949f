"""What was resolved for the files of a repository, kept in the home for later rounds and reviews of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from common.clock import Clock
from common.files import write_atomic
from modules.services.coding.environment.types import Kept

_FOLDER = "resolved"
_KEPT_S, _KEPT_LACKING_S = 7 * 86_400, 3_600


@dataclass(frozen=True, slots=True)
class KeptVersions:
    """A file for each set of needs, in a folder for each repository.

    It is used for 7 days; where something could not be had, for an hour, as it may be there by then.
    """

    folder: Path
    name: str
    clock: Clock

    @classmethod
    def of(cls, cache: Path, tree: Path, kind: str, needs: list[object], clock: Clock) -> KeptVersions:
        """Return where it is kept for a tree, whose parent is named `<repository>--<what it is for>`."""
        digest = hashlib.sha256(json.dumps(needs).encode()).hexdigest()[:16]
        return cls(cache / _FOLDER / tree.parent.name.partition("--")[0] / kind, f"{digest}.json", clock)

    def read(self) -> Kept | None:
        """Return what is kept for these needs and not too old."""
        return next((kept for name, _, kept in self._all() if name == self.name), None)

    def newest(self) -> str:
        """Return what was resolved last for other needs of the repository and is not too old, or ""."""
        return max(((at, kept.text) for _, at, kept in self._all()), default=(0, ""))[1]

    def write(self, kept: Kept) -> None:
        """Keep what was resolved."""
        self.folder.mkdir(parents=True, exist_ok=True)
        told = {"text": kept.text, "lacks": list(kept.lacks), "at": self.clock.now().timestamp()}
        write_atomic(self.folder / self.name, json.dumps(told))

    def _all(self) -> Iterator[tuple[str, float, Kept]]:
        """Yield each file by name, with when it was written and what it holds; delete those that are too old."""
        for path in self.folder.glob("*.json"):
            with suppress(ValueError, KeyError, TypeError):
                told = json.loads(path.read_text("utf-8"))
                kept, at = Kept(told["text"], tuple(told["lacks"])), float(told["at"])
                if 0 <= self.clock.now().timestamp() - at < (_KEPT_LACKING_S if kept.lacks else _KEPT_S):
                    yield path.name, at, kept
                    continue
            path.unlink(missing_ok=True)
