"""Channels and blocks of Are.na. Texts are untrusted; a missing text is ""."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Channel:
    """A collection; `length` counts its blocks."""

    id: int
    slug: str
    title: str
    length: int
    owner: str = ""

    @property
    def url(self) -> str:
        """The URL of its page."""
        return f"https://www.are.na/{self.owner or 'channels'}/{self.slug}"


@dataclass(frozen=True, slots=True)
class Block:
    """A picture in a channel: `image_url` is its largest size, `source_url` the page where it was found."""

    id: int
    image_url: str
    title: str = ""
    description: str = ""
    source_url: str = ""
    source_title: str = ""
    provider: str = ""
    filename: str = ""
    username: str = ""
    connected_at: str = ""

    @property
    def url(self) -> str:
        """The URL of its page."""
        return f"https://www.are.na/block/{self.id}"


@dataclass(frozen=True, slots=True)
class ChannelPage:
    """One page of a channel: its pictures, and how many blocks of any kind the page has."""

    channel: Channel
    image_blocks: Sequence[Block]
    total_blocks: int


@dataclass(frozen=True, slots=True)
class ChannelsFound:
    """Channels that a search found on one page, and how many there are in all."""

    channels: Sequence[Channel]
    total_results: int
