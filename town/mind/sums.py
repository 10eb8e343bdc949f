"""Sums in what people write: `17 + 25`, `12 times 12`, `3 plus 4 minus 2`; whole numbers, times before plus."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from fractions import Fraction

SIGNS: Mapping[str, str] = {
    "plus": "+",
    "minus": "-",
    "times": "*",
    "multiplied by": "*",
    "divided by": "/",
    "over": "/",
    "x": "*",
    "\u00d7": "*",
    "\u00f7": "/",
    "\u2212": "-",
    "\u2013": "-",
}
"""What people write for a sign."""

_DO: Mapping[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_FIRST = ("*/", "+-")
_BLANKS = r"\s{1,3}"
_WORDS = "|".join(re.escape(word) for word in sorted(SIGNS, key=len, reverse=True) if word.isascii() and word != "x")
_BARE = "+*x\u00d7\u00f7\u2212"
_SIGN = rf"(?:\s{{0,3}}[{_BARE}]\s{{0,3}}|{_BLANKS}(?:[-/\u2013]|{_WORDS}){_BLANKS})"
_SUM = re.compile(rf"(?<![\w.,:/-])\d{{1,9}}+(?:{_SIGN}\d{{1,9}}+){{1,8}}(?![\w/:-]|[.,]\d)", re.IGNORECASE)
_PART = re.compile(rf"\d+|[-+*/x\u00d7\u00f7\u2212\u2013]|{_WORDS}", re.IGNORECASE)
_PLACES = 3


def solve(text: str) -> str:
    """The result of the first sum in `text`, "" where there is none or it has no result."""
    found = _SUM.search(text)
    if found is None:
        return ""
    parts: list[Fraction | str] = [
        Fraction(part) if part.isdigit() else SIGNS.get(part.lower(), part) for part in _PART.findall(found[0])
    ]
    try:
        for signs in _FIRST:
            parts = _reduced(parts, signs)
    except ZeroDivisionError:
        return ""
    (result,) = parts
    return _told(Fraction(result))


def _reduced(parts: list[Fraction | str], signs: str) -> list[Fraction | str]:
    """The sum with these signs worked out."""
    done = parts[:1]
    for sign, number in zip(parts[1::2], parts[2::2], strict=True):
        if sign in tuple(signs):
            done[-1] = _DO[str(sign)](Fraction(done[-1]), Fraction(number))
        else:
            done += [sign, number]
    return done


def _told(result: Fraction) -> str:
    if result.denominator == 1:
        return f"{result.numerator:,}" if abs(result) > 9999 else str(result.numerator)  # noqa: PLR2004 - four digits
    return f"{float(result):.{_PLACES}f}".rstrip("0")
