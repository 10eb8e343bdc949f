"""The accounts that a text names, by DID or by handle, and handles in place of DIDs. Pure."""

import re
from collections.abc import Mapping

from common.text.patterns import lazy_regex

UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}ーｰ\u30fb\p{Bopomofo}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
"""Scripts written without spaces, and Korean, which joins particles to a word: a name may directly touch them."""
WORD = lazy_regex(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")
"""A word, or one sign of these scripts."""

_SIGN = lazy_regex(rf"[{UNSPACED}]")

# NOTE(self): a DID inside an at:// uri or a link stays: there it is part of the post's address.
_DID = re.compile(r"(?<![\w/:.-])did:[a-z]+:[A-Za-z0-9._:%-]*[A-Za-z0-9_-](?!/)")
_LETTER = rf"[^\W_{UNSPACED}]"
_NAME = r"((?>(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?))"
# NOTE(self): the host of a URL or an e-mail address is not an account; neither is a path. Markdown may be next to it.
HANDLE_BEFORE = rf"(?<!{_LETTER}_{{0,2}})(?<![@/:.%&=?#~+-])"
HANDLE_BEHIND = rf"(?!_{{0,2}}{_LETTER}|\.\w)"
_MARKED = lazy_regex(rf"(?:{HANDLE_BEFORE}@|/profile/){_NAME}{HANDLE_BEHIND}(?!@)")
_GIVEN = lazy_regex(rf"(?:{HANDLE_BEFORE}@?|(?<=/profile/)){_NAME}{HANDLE_BEHIND}(?![@/]|[:?#&=]\w)")

_LINKED = lazy_regex(rf"(?<=/profile/){_NAME}(?=/post/)")


def is_unspaced(word: str) -> bool:
    """Return whether what `WORD` found is a sign of a script without spaces."""
    return _SIGN.match(word) is not None


def named_dids(text: str) -> tuple[str, ...]:
    """Return each DID that `text` names outside of URLs, once."""
    return tuple(dict.fromkeys(_DID.findall(text)))


def named_handles(text: str) -> tuple[str, ...]:
    """Return each handle, in lower case and once, that `text` names as an account: after an @ or in a profile's URL.

    A bare domain is left out: it may be a file or a site, and anybody can register it.
    """
    return tuple(dict.fromkeys(handle.lower() for handle in _MARKED.findall(text)))


def given_handles(text: str) -> tuple[str, ...]:
    """Return each handle, in lower case and once, that a line names as an account, also without an @."""
    return tuple(dict.fromkeys(handle.lower() for handle in _GIVEN.findall(text)))


def linked_handles(text: str) -> tuple[str, ...]:
    """Return each handle, in lower case and once, in the addresses of posts in a text."""
    return tuple(dict.fromkeys(handle.lower() for handle in _LINKED.findall(text)))


def with_handles(text: str, handles: Mapping[str, str]) -> str:
    """Return `text` with `@handle` for each DID that has one in `handles`."""
    return _DID.sub(lambda match: f"@{handles[match[0]]}" if match[0] in handles else match[0], text)
