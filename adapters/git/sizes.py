"""Limits on the size of a commit that can be worked on. Pure."""

from __future__ import annotations

LISTING = ("ls-tree", "-r", "-l", "-z", "--full-tree")
"""The arguments that make git list all files of a commit with their sizes."""
MOST_PATH_BYTES = 2_000
"""The length of the longest path. The operating system allows 4,096 bytes, which include the path of the home."""

_MOST_FILES = 50_000
_MIB = 1024 * 1024
_MOST_BYTES = 512 * _MIB


def why_too_large(listing: str) -> str:
    """Return why the files that git listed are too many, too large or too deep to write to disk, or ""."""
    entries = [entry.partition("\t") for entry in listing.split("\0")[:-1]]
    if len(entries) > _MOST_FILES:
        return f"{len(entries)} files"
    if any(len(path.encode()) > MOST_PATH_BYTES for _, _, path in entries):
        return f"a path of more than {MOST_PATH_BYTES} bytes"
    sizes = [told.split()[3] for told, _, _ in entries]
    size = sum(int(one) for one in sizes if one.isdecimal())
    return f"{size // _MIB} MiB of files" if size > _MOST_BYTES else ""
