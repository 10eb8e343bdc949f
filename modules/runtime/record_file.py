"""Base classes for JSON files of records: camelCase names, ISO-8601 times, unknown fields kept.

People and other agents read and edit these files, so what we do not know or cannot read survives a round trip. A save
replaces the file in one step: a crash loses at most the change that it interrupted.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Generic, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, PlainSerializer, ValidationError
from pydantic.alias_generators import to_camel

from common.clock import iso
from common.files import Json, load_state, save_state


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _exact(moment: datetime) -> str:
    finer_than_ms = moment.microsecond % 1000
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z") if finer_than_ms else iso(moment)


Moment = Annotated[datetime, AfterValidator(_aware), PlainSerializer(_exact, when_used="json")]


class FileRecord(BaseModel):
    """A frozen value with camelCase names on disk."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, extra="allow", defer_build=True
    )

    def replace(self, **changes: Any) -> Self:  # noqa: ANN401 - any field
        """Return a copy with `changes`."""
        return self.model_copy(update=changes)


R = TypeVar("R", bound=FileRecord)


class RecordFile(Generic[R]):
    """A state file that holds records by name under one key; it is kept across versions.

    Attributes:
        records: the records that could be read, by name; change the dict, then call `save`.
        rest: the other keys of the file.
        notice: a line for the owner if the file was not as expected.

    """

    def __init__(self, path: Path, key: str, model: type[R]) -> None:
        loaded = load_state(path, {}, fits=lambda data: isinstance(data.get(key, {}), dict))
        self._path = path
        self._key = key
        self._unread: Json = {}
        self._held = self._is_due = False
        self.rest = loaded.data
        self.records: dict[str, R] = {}
        self.notice = loaded.notice
        for name, entry in self.rest.pop(key, {}).items():
            try:
                self.records[name] = model.model_validate(entry)
            except ValidationError:
                self._unread[name] = entry
        if self._unread:
            self.notice = f"{path.name}: {len(self._unread)} entries cannot be read and stay as they are"

    @contextmanager
    def one_save(self) -> Iterator[None]:
        """Write the file only once, when the block ends, and only if `save` was called in it."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
            if self._is_due:
                self.save()

    def save(self) -> None:
        """Write the file. Raises `StorageError`."""
        self._is_due = self._held
        if self._held:
            return
        written = {
            name: record.model_dump(mode="json", by_alias=True, exclude_none=True)
            for name, record in self.records.items()
        }
        save_state(self._path, {self._key: {**self._unread, **written}, **self.rest})
