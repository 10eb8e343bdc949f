"""The DIDs that a text names, and handles in their place. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

# NOTE(self): a DID inside an at:// address or a link stays: there it is part of what leads to the post.
_DID = re.compile(r"(?<![\w/:.-])did:[a-z]+:[A-Za-z0-9._:%-]*[A-Za-z0-9_-](?!/)")


def named_dids(text: str) -> tuple[str, ...]:
    """Return each DID that `text` names outside of addresses, once."""
    return tuple(dict.fromkeys(_DID.findall(text)))


def with_handles(text: str, handles: Mapping[str, str]) -> str:
    """Return `text` with `@handle` for each DID that has one in `handles`."""
    return _DID.sub(lambda match: f"@{handles[match[0]]}" if match[0] in handles else match[0], text)
