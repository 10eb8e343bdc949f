"""How this life's memories look in their files: camelCase JSON, ISO-8601 times, unknown fields kept as they are.

People and other agents read and edit these files, so a field that we do not know survives a round trip.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, PlainSerializer
from pydantic.alias_generators import to_camel

from common.clock import iso


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


Moment = Annotated[datetime, AfterValidator(_aware), PlainSerializer(iso, when_used="json")]


class Record(BaseModel):
    """A frozen value with camelCase names on disk."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, extra="allow")

    def to_json(self) -> dict[str, object]:
        """As it stands in a file; absent values are left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)
