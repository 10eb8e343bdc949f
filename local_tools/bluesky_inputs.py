"""What the Bluesky tools take. The field descriptions are what the model reads; empty always means "the one given"."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class PostInput(BaseModel):
    """A post of your own."""

    text: str = Field(description="The whole post, at most 300 characters.")


class ReplyInput(BaseModel):
    """A reply. Without `post_uri` it answers the post of this turn."""

    text: str = Field(description="The whole reply, at most 300 characters.")
    post_uri: str = Field(default="", description="Leave empty to answer the post you were given.")
    post_cid: str = Field(default="", description="Leave empty.")


class SubjectInput(BaseModel):
    """A post to like or repost. Empty means the post of this turn."""

    post_uri: str = Field(default="", description="Leave empty for the post you were given.")
    post_cid: str = Field(default="", description="Leave empty.")


class ExitInput(BaseModel):
    """Leave a conversation."""

    closing_type: Literal["like", "message"] = Field(default="like", description="Prefer like.")
    reason: str = Field(description="Why the talk is over, in a few words.")
    closing_message: str = Field(default="", description="Only for closing_type message.")


class SilenceInput(BaseModel):
    """Say nothing."""

    reason: str = Field(description="The true reason, in a few words.")


class DidInput(BaseModel):
    """An account."""

    did: str = Field(description="The account's did.")


class UriInput(BaseModel):
    """A follow record."""

    follow_uri: str = Field(description="The at:// uri of your follow record.")


class ActorInput(BaseModel):
    """An account."""

    actor: str = Field(description="A handle or did.")


class ActorListInput(ActorInput):
    """A list that belongs to an account."""

    limit: int = Field(default=50, ge=1, le=100)


class LimitInput(BaseModel):
    """How much to read."""

    limit: int = Field(default=20, ge=1, le=100)
