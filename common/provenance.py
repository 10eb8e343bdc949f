"""Whose words influence what is thought and kept, and for whom work is done; as code computes it."""

from enum import IntEnum
from typing import Literal, TypeAlias

Trust = Literal["stranger", "peer", "self", "owner"]
"""The trust of the words that a kept item is based on: that of the least trusted ones."""


class Provenance(IntEnum):
    """The trust of words that influence a turn, lowest first. A turn has the provenance of its least trusted text."""

    STRANGER = 0
    PEER = 1
    SELF = 2
    OWNER = 3


Importance: TypeAlias = Literal["own", "stranger", "commitment", "mention", "owner"]
"""For whom work is done or a model is called, least important first: it orders the work table, and decides who may
still call the model when the budget is low.
"""
