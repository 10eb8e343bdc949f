"""Fetches the pictures of a conversation for the wire. What cannot be had, or not be seen, is told by its description.

Nothing is kept here; the media store has the bytes.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from modules.runtime.llm.types import Block, Image, Message, Text

Hydrate: TypeAlias = Callable[[str], Awaitable[tuple[str, bytes] | None]]
"""The media type and the bytes under a key of the media store; None if they are gone."""

MOST_PICTURES = 8
"""The newest are shown; services take only so many, and each one is paid for."""


async def shown(messages: Sequence[Message], hydrate: Hydrate | None) -> tuple[list[Message], list[str]]:
    """The messages with those pictures that can be shown, and for each of these in order what goes into its URL.

    Without `hydrate` all pictures become their descriptions.
    """
    left = 0 if hydrate is None else MOST_PICTURES
    seen: list[Message] = []
    urls: list[str] = []
    for message in reversed(messages):
        if isinstance(message.content, str):
            seen.append(message)
            continue
        blocks: list[Block] = []
        for block in reversed(message.content):
            url = await _url(block, hydrate) if isinstance(block, Image) and hydrate and left else ""
            if url:
                left -= 1
                urls.append(url)
            blocks.append(Text(block.alt) if isinstance(block, Image) and not url else block)
        seen.append(replace(message, content=tuple(reversed(blocks))))
    return seen[::-1], urls[::-1]


async def _url(picture: Image, hydrate: Hydrate) -> str:
    found = await hydrate(picture.key) if picture.key else None
    if found is None:
        return ""
    mime, data = found
    return f"data:{mime or picture.mime};base64,{base64.b64encode(data).decode()}"
