"""Names that others chose, as they may stand beside our own words: short, plain, and not to be taken for another. Pure.

A name is the one thing of a stranger that a prompt shows outside of any frame, so it has no room for a sentence, and
none for the signs with which a transcript is written.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import regex

from adapters.space.types import HOST
from common.text.lookalikes import skeleton
from common.text.untrusted import clean

YOU = "YOU"
MOST_NAMES = 30

_NAME_CHARS = 40
_MOST_WORDS = 3
_READ_CHARS = 200
_NO_SIGN_OF_A_NAME = regex.compile(r"[^\p{L}\p{M}\p{N}\s_.'-]+")
_TAKEN = {skeleton(name): name for name in (HOST, YOU)}


def shown(name: str, *, is_host: bool = False) -> str:
    """The name of somebody: at most 40 characters and three words; one that looks like the host's or ours says so.

    A name of which something is left out ends with `#` and four hexadecimal digits made from the whole, so that it does
    not read as the name of somebody else who is called exactly what is left.
    """
    if is_host:
        return HOST
    plain = " ".join(_NO_SIGN_OF_A_NAME.sub(" ", clean(name[:_READ_CHARS])).split()[:_MOST_WORDS])[:_NAME_CHARS]
    taken = _TAKEN.get(skeleton(plain))
    if taken:
        return f"not-{taken}"
    is_whole = plain == " ".join(name.split())
    return plain if is_whole else f"{plain or '?'}#{zlib.crc32(name.encode(errors='replace')) & 0xFFFF:04x}"


def listed(names: Iterable[str]) -> str:
    """Several names, at most 30; `…` stands for the others."""
    every = list(names)
    told = [shown(name) for name in every[:MOST_NAMES]]
    return ", ".join([*told, "…"] if len(every) > MOST_NAMES else told)
