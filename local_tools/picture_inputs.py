"""What the picture tools take: described in `skills/picture-tools`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class ArenaSearchInput(BaseModel):
    """A search for channels."""

    query: str
    page: int = Field(default=1, ge=1, le=100)
    per: int = Field(default=10, ge=1, le=50)


class ArenaChannelInput(BaseModel):
    """A page of a channel."""

    channel_url: str
    page: int = Field(default=1, ge=1, le=100)


class ArenaPostInput(BaseModel):
    """A post with a picture of a channel. With `post_uri` and `post_cid` it is a reply."""

    channel_url: str
    text: str = ""
    alt_text: str = ""
    post_uri: str = ""
    post_cid: str = ""


class ImagePostInput(BaseModel):
    """A post with a picture. With `post_uri` and `post_cid` it is a reply."""

    text: str
    image_path: str
    alt_text: str
    post_uri: str = ""
    post_cid: str = ""


class FetchImageInput(BaseModel):
    """A picture to download."""

    url: str
    max_size_mb: int = Field(default=5, ge=1, le=10)


class BrowseInput(BaseModel):
    """A page with pictures."""

    url: str
    min_width: int = Field(default=400, ge=1, le=10_000)
    max_results: int = Field(default=12, ge=1, le=20)


class SharedPostInput(BaseModel):
    """A post of ours that showed a picture."""

    post: str


class WaitingInput(BaseModel):
    """How many posts to list."""

    limit: int = Field(default=10, ge=1, le=50)


class FollowUpInput(BaseModel):
    """Whether the source of a picture is still to be found."""

    post_uri: str
    needs_followup: Literal["yes", "no"] = "yes"
    notes: str = ""


class AttributionInput(BaseModel):
    """Where the maker of a picture shows it."""

    post_uri: str
    original_url: str
    notes: str = ""
