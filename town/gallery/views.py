"""Channels and blocks as the interface of Are.na (v2) tells them."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from common.clock import iso
from town.gallery.library import GalleryBlock, GalleryChannel, User
from town.gallery.pictures import SIZES, media_type, picture

Json: TypeAlias = dict[str, Any]
_KILOBYTE = 1024


@dataclass(frozen=True, slots=True)
class GalleryViews:
    """`base_url` is where the gallery serves its pages and pictures."""

    base_url: str

    def channel(self, channel: GalleryChannel) -> Json:
        """A channel without its contents."""
        return {
            "id": channel.id,
            "title": channel.title,
            "slug": channel.slug,
            "created_at": iso(channel.blocks[0].added_at),
            "updated_at": iso(channel.blocks[-1].added_at),
            "published": True,
            "open": False,
            "collaboration": False,
            "length": len(channel.blocks),
            "kind": "default",
            "status": "closed",
            "user_id": channel.owner.id,
            "class": "Channel",
            "base_class": "Channel",
            "metadata": {"description": channel.description} if channel.description else None,
            "user": self.user(channel.owner),
        }

    def connected(self, channel: GalleryChannel, block: GalleryBlock) -> Json:
        """A block in a channel."""
        place = channel.blocks.index(block) + 1
        return {
            **self.block(block),
            "position": place,
            "connection_id": channel.id * 100 + place,
            "connected_at": iso(block.added_at),
            "connected_by_user_id": block.user.id,
        }

    def block(self, block: GalleryBlock) -> Json:
        """A block by itself."""
        words = f"<p>{escape(block.description)}</p>" if block.description else ""
        return {
            "id": block.id,
            "title": block.title,
            "generated_title": block.title or block.picture or "Untitled",
            "class": block.kind,
            "base_class": "Block",
            "state": "available",
            "created_at": iso(block.added_at),
            "updated_at": iso(block.added_at),
            "comment_count": 0,
            "content": block.content,
            "content_html": f"<p>{escape(block.content)}</p>" if block.content else "",
            "description": block.description,
            "description_html": words,
            "source": _source(block),
            "image": self._image(block.picture) if block.picture else None,
            "user": self.user(block.user),
        }

    def user(self, user: User) -> Json:
        """Somebody who collects."""
        return {
            "id": user.id,
            "slug": user.slug,
            "username": user.full_name,
            "full_name": user.full_name,
            "class": "User",
            "base_class": "User",
        }

    def picture_url(self, name: str, size: str) -> str:
        """The address of a picture in one of its sizes."""
        return f"{self.base_url}/pictures/{size}/{name}"

    def _image(self, name: str) -> Json:
        size = len(picture(name))
        sizes: Json = {each: {"url": self.picture_url(name, each)} for each in SIZES}
        sizes["original"] |= {"file_size": size, "file_size_display": f"{size / _KILOBYTE:.0f} KB"}
        return {"filename": name, "content_type": media_type(name), **sizes}


def _source(block: GalleryBlock) -> Json | None:
    if not block.source:
        return None
    host = urlsplit(block.source).hostname or ""
    return {
        "url": block.source,
        "title": block.source_title,
        "provider": {"name": host.split(".")[0].capitalize(), "url": f"https://{host}"},
    }
