"""Metadata of objects: names that every service accepts, values of any text. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, unquote

_NAME = re.compile(r"[a-z][a-z0-9]{0,63}")
_MIME = re.compile(r"[\w.+-]+/[\w.+-]+(?:; ?[\w.+-]+=[\w.+-]+)*", re.ASCII)
_PLAIN = "".join(map(chr, range(0x21, 0x7F))).replace("%", "")


def checked(metadata: Mapping[str, str] | None) -> dict[str, str]:
    """Return the metadata with names in lower case. Raises `ValueError` for a name that some service would refuse."""
    plain = {name.lower(): value for name, value in (metadata or {}).items()}
    if wrong := [name for name in plain if not _NAME.fullmatch(name)]:
        raise ValueError(f"no names of metadata: {', '.join(wrong)}")
    return plain


def checked_type(content_type: str) -> str:
    """Return the MIME type; "" if it is not one."""
    return content_type if _MIME.fullmatch(content_type) else ""


def to_headers(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return the metadata with values encoded for headers."""
    return {name: quote(value, safe=_PLAIN, errors="surrogatepass") for name, value in metadata.items()}


def from_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Invert `to_headers`; services change the case of names."""
    return {name.lower(): unquote(value, errors="surrogatepass") for name, value in headers.items()}
