"""The objects of the town's cluster, in memory: each change has a number, and the last ones are kept."""

from __future__ import annotations

import asyncio
import copy
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

KubeObject = dict[str, Any]


class ObjectPlace(NamedTuple):
    """The place of an object: `collection` is the path of its kind and namespace."""

    collection: str
    name: str


class ObjectChange(NamedTuple):
    """A change of one object: `ADDED`, `MODIFIED` or `DELETED`."""

    version: int
    collection: str
    kind: str
    told: KubeObject


class TooOld(Exception):
    """The changes since then are no longer kept."""


@dataclass
class KubeObjects:
    """All objects. `remembered` is how many changes a watch can go back."""

    remembered: int = 1000
    version: int = 0
    _found: dict[ObjectPlace, KubeObject] = field(default_factory=dict)
    _changes: deque[ObjectChange] = field(default_factory=deque)
    _forgotten: int = 0
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def get(self, place: ObjectPlace) -> KubeObject | None:
        return copy.deepcopy(self._found.get(place))

    def under(self, end: str) -> list[ObjectPlace]:
        """Return the places of objects in collections whose path ends with `end`, sorted."""
        return sorted(place for place in self._found if place.collection.endswith(end))

    def put(self, place: ObjectPlace, wanted: KubeObject) -> KubeObject:
        """Create or replace an object; its generation grows with its spec."""
        before, told = self._found.get(place), copy.deepcopy(wanted)
        known: KubeObject = before["metadata"] if before else {"name": place.name, "generation": 0}
        told["metadata"] = {**known, **told.get("metadata", {})}
        if before is None or before.get("spec") != told.get("spec"):
            told["metadata"]["generation"] = known["generation"] + 1
        if before != told:
            self._found[place] = told
            self._note("MODIFIED" if before else "ADDED", place, told)
        return copy.deepcopy(told)

    def delete(self, place: ObjectPlace) -> None:
        if told := self._found.pop(place, None):
            self._note("DELETED", place, told)

    def since(self, collection: str, version: int) -> list[ObjectChange]:
        """Return the changes in `collection` after `version`. Raises `TooOld`."""
        if version < self._forgotten:
            raise TooOld
        return [one for one in self._changes if one.collection == collection and one.version > version]

    def forget(self) -> None:
        """Forget all changes: the next watch must list again."""
        self._changes.clear()
        self._forgotten = self.version

    async def after(self, version: int) -> None:
        """Wait until something has changed since `version`."""
        while self.version <= version:
            await self._changed.wait()

    def _note(self, kind: str, place: ObjectPlace, told: KubeObject) -> None:
        self.version += 1
        told["metadata"]["resourceVersion"] = str(self.version)
        self._changes.append(ObjectChange(self.version, place.collection, kind, copy.deepcopy(told)))
        while len(self._changes) > self.remembered:
            self._forgotten = self._changes.popleft().version
        self._changed.set()
        self._changed = asyncio.Event()


def merged(target: Any, patch: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return `target` after a merge patch (RFC 7386)."""
    if not isinstance(patch, Mapping):
        return patch
    before = target if isinstance(target, Mapping) else {}
    kept = {key: value for key, value in before.items() if key not in patch}
    return kept | {key: merged(before.get(key), value) for key, value in patch.items() if value is not None}
