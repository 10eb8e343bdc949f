"""How much it matters for whom something is done."""

from __future__ import annotations

from typing import Literal, TypeAlias

Importance: TypeAlias = Literal["own", "stranger", "commitment", "mention", "owner"]
"""For whom work is done or a model is called, least pressing first: it orders the work table, and the budget decides by
it who may still speak when it runs low."""
