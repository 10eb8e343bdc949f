"""Who answers the visitor when a post addresses nobody: the one whose field it touches, else whoever's turn it is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import cycle

from town.mind.bank import GENERAL, Bank, load_bank
from town.residents import Resident


class Listeners:
    """Chooses a resident for a text. `ready` gives the handles of those who would answer now; if none, all count."""

    def __init__(
        self, residents: Sequence[Resident], ready: Callable[[], Collection[str]], bank: Bank | None = None
    ) -> None:
        self._bank = bank or load_bank()
        self._ready = ready
        self._fields = {resident.handle: self._field(f"{resident.bio} {resident.soul}") for resident in residents}
        self._turns = cycle(self._fields)

    def choose(self, text: str) -> str:
        """The handle of who shall be told of it; "" in a town where nobody lives."""
        ready = set(self._ready()) & self._fields.keys() or set(self._fields)
        touched = self._field(text)
        fitting = [handle for handle, field in self._fields.items() if handle in ready and field == touched != GENERAL]
        if fitting or not ready:
            return fitting[0] if fitting else ""
        return next(handle for handle in self._turns if handle in ready)

    def _field(self, text: str) -> str:
        field = self._bank.field_of(text)
        return field.name if field else GENERAL
