"""What all bodies of intents have in common: how they are stored, and what is shown of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictStr


class StoredValue(BaseModel):
    """A value that is kept as JSON."""

    model_config = ConfigDict(
        frozen=True, extra="allow", validate_by_name=True, validate_by_alias=True, defer_build=True
    )

    def stored(self) -> dict[str, Any]:
        """The JSON object of this value: the fields that were given, and those that this version does not know."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class Body(StoredValue):
    """What all bodies can tell."""

    @property
    def subject(self) -> str:
        """The uri or did that the act is done to; "" if it stands alone."""
        return ""

    @property
    def public_text(self) -> str:
        """The words that Bluesky shows under our name; "" if there are none."""
        return ""

    @property
    def preview(self) -> str:
        """The text that the owner is shown; "" if there is none."""
        return self.public_text

    @property
    def short_preview(self) -> str:
        """What the owner is shown where there is room for one line; "" if there is nothing."""
        return self.preview

    @property
    def deed(self) -> str:
        """What it does, in one line for the owner, of an act on Bluesky that has no words; "" of any other."""
        return ""

    @property
    def as_json(self) -> str:
        """The body as it is stored."""
        return json_of(self.stored())


class OfCommitment(Body):
    """A body that may belong to a commitment.

    `source` is where the commitment was made: `bluesky`, `space`, or `found` for a room that the owner never named. It
    is `github` for an answer in a thread on GitHub, and `workspace` for work in a workspace that is watched; neither
    belongs to a commitment.
    `host_request` and `host_named` say that the host of a room asked for the act, or named the repository.
    """

    commitment_id: StrictStr = Field(default="", alias="promise")
    source: StrictStr = ""
    host_request: StrictBool = Field(default=False, alias="host_wish")
    host_named: StrictBool = False


def json_of(stored: Mapping[str, Any]) -> str:
    """The JSON object of a body as it is stored."""
    return json.dumps(stored, sort_keys=True, separators=(",", ":"))
