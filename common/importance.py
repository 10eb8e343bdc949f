"""The importance of work, by the person for whom it is done."""

from __future__ import annotations

from typing import Literal, TypeAlias

Importance: TypeAlias = Literal["own", "stranger", "commitment", "mention", "owner"]
"""For whom work is done or a model is called, least important first: it orders the work table, and decides who may
still call the model when the budget is low.
"""
