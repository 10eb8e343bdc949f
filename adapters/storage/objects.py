"""Objects of a store: their keys, built from parts that may come from anywhere, and their metadata. Pure.

A key is parts divided by `/`. Whatever is not an ASCII letter, digit, `.`, `-` or `_` is written as `~` and two hex
digits for each of its bytes: `~` is the one mark that no file system and no URL needs to escape. No part can end its
prefix, climb out of it, be hidden, or look like a sidecar; and no two different inputs give one key.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, unquote


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object. `etag` identifies this very content; `metadata` has lower-case names."""

    key: str
    data: bytes
    etag: str
    content_type: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One entry of a listing: `size` in bytes."""

    key: str
    size: int
    etag: str = ""


SIDECAR = ".meta.json"
"""The suffix of a file with the metadata of the object beside it, on disks, which store no metadata themselves."""

MEDIA = "media/"
SKILLS = "skills/"
SKILL_FILE = "SKILL.md"
SKILL_NAME = "[a-z0-9][a-z0-9-]{0,63}"
"""A regular expression for the names of skills beyond the shipped ones."""

_MAX_PART_CHARS = 180
_MAX_NAME_CHARS = 220  # with a suffix; a file system allows 255, and sidecars and half-written files need some
_KEPT_OF_LONG = 100
_MAX_KEY_CHARS = 900
_SPECIAL = re.compile(r"[^A-Za-z0-9._-]|^\.|\.$|\.(?=meta\.json$)|-(?=part\d+$)")
_PART = re.compile(rf"(?!\.)(?!.*{re.escape(SIDECAR)}$)[A-Za-z0-9._~-]{{1,{_MAX_NAME_CHARS}}}")
_EXTENSIONS = {
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/svg+xml": "svg",
    "audio/ogg": "ogg",
    "audio/opus": "opus",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
    "audio/mp4": "m4a",
    "audio/m4a": "m4a",
    "audio/x-m4a": "m4a",
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/webm": "webm",
    "audio/flac": "flac",
    "video/mp4": "mp4",
    "video/webm": "webm",
    "video/quicktime": "mov",
    "application/pdf": "pdf",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
}


def part(text: str) -> str:
    """Return one part of a key, whatever `text` is. A long one keeps its beginning and ends in its SHA-256."""
    encoded = _SPECIAL.sub(_escaped, text) or "~"
    if len(encoded) <= _MAX_PART_CHARS:
        return encoded
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return f"{encoded[:_KEPT_OF_LONG]}~~{digest}"


def refused_key(key: str) -> str:
    """Return why no object can have this key; "" if one can."""
    if len(key) > _MAX_KEY_CHARS:
        return f"a key of {len(key)} characters is too long"
    if not all(_PART.fullmatch(piece) for piece in key.split("/")):
        return f"{key!r} is no key"
    return ""


def agent_prefix(agent_id: str) -> str:
    """Return the prefix of everything of one SOUL, except its media."""
    return f"agents/{part(agent_id)}/"


def workspace_key(agent_id: str, name: str) -> str:
    """Return the key of a file of the owner's workspace; `name` may have folders, as in `memory/2026-11-22.md`."""
    return agent_prefix(agent_id) + "/".join(map(part, name.split("/")))


def archive_key(agent_id: str, session_id: str, *, epoch_ms: int | None = None) -> str:
    """Return the key of the archive of a whole session, or of the part that was compacted at `epoch_ms`."""
    suffix = "" if epoch_ms is None else f"-part{epoch_ms:d}"
    return f"{agent_prefix(agent_id)}sessions/{part(session_id)}{suffix}.jsonl.gz"


def skill_key(name: str) -> str:
    """Return the key of a skill that all SOULs share."""
    return f"{SKILLS}{part(name)}/{SKILL_FILE}"


def media_prefix(session_key: str) -> str:
    """Return the prefix of all media of one session."""
    return f"{MEDIA}{part(session_key)}/"


def media_key(session_key: str, name: str, mime: str) -> str:
    """Return the key of one medium; `name` is unique, and only the suffix tells its type."""
    return f"{media_prefix(session_key)}{part(name)}.{extension_of(mime)}"


def extension_of(mime: str) -> str:
    """Return the file extension for a MIME type, without its parameters; `bin` if it is not listed."""
    return _EXTENSIONS.get(mime.partition(";")[0].strip().lower(), "bin")


def _escaped(match: re.Match[str]) -> str:
    return "".join(f"~{byte:02X}" for byte in match[0].encode(errors="surrogatepass"))


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
