"""Counts and cuts text in UTF-16 code units, as room members that are written in JavaScript do.

Programs that elect a member by hashing the same text must cut it at the same place, and a character beyond U+FFFF is
one character here and two units there. Pure.
"""

from __future__ import annotations

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_SIGN_BIT = 1 << 31


def u16_len(text: str) -> int:
    """Return how many UTF-16 code units `text` has."""
    return len(_units(text)) // 2


def u16_slice(text: str, units: int) -> str:
    """Return the first `units` code units of `text`; half a pair, cut or found, becomes U+FFFD."""
    return _units(text)[: 2 * max(units, 0)].decode("utf-16-le", "replace")


def rolling_hash(text: str, *, seed: int = 0, factor: int = 31) -> int:
    """Return the signed 32-bit hash `h * factor + unit` over the code units of `text`, equal in every language."""
    units = _units(text)
    value = seed
    for place in range(0, len(units), 2):
        value = (value * factor + int.from_bytes(units[place : place + 2], "little")) & 0xFFFF_FFFF
    return value - (1 << 32) if value & _SIGN_BIT else value


def base36(number: int) -> str:
    """Return `number` in digits and lower-case letters, with its minus sign."""
    rest, digits = abs(number), ""
    while True:
        rest, digit = divmod(rest, len(_DIGITS))
        digits = _DIGITS[digit] + digits
        if not rest:
            return f"-{digits}" if number < 0 else digits


def _units(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")
