"""The people whose words influence what is thought and kept, as code computes it; a model has no say in it."""

from __future__ import annotations

from enum import IntEnum
from typing import Literal

Trust = Literal["stranger", "peer", "self", "owner"]
"""The trust of the words that a kept item is based on: that of the least trusted ones."""


class Provenance(IntEnum):
    """The trust of words that influence a turn, lowest first. A turn has the provenance of its least trusted text."""

    STRANGER = 0
    PEER = 1
    SELF = 2
    OWNER = 3
