"""What the Bluesky tools take: described in `skills/bluesky-tools`. Empty always means "the one given"."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field

from common.impression import Impression
from common.text.strings import account_name

AccountName = Annotated[str, AfterValidator(account_name)]
"""A handle, a login or a DID as a model gives it; the @ before it is taken away."""


class PictureInput(BaseModel):
    """A post or a reply beside a picture."""

    text: str
    alt_text: str = ""


class PictureReplyInput(PictureInput):
    """A reply beside a picture."""

    impression: Impression = ""
    wish: str = ""


class ReplyInput(BaseModel):
    """A reply. Without `post_uri` it answers the post of this turn."""

    text: str
    post_uri: str = ""
    impression: Impression = ""
    wish: str = ""


class SubjectInput(BaseModel):
    """A post to like or repost, by its uri or its web address. Empty means the post of this turn."""

    post_uri: str = ""


class ExitInput(BaseModel):
    """Leave a conversation."""

    closing_type: Literal["like", "message"] = "like"
    reason: str
    closing_message: str = ""


class SilenceInput(BaseModel):
    """Say nothing."""

    reason: str


class DidInput(BaseModel):
    """An account."""

    did: AccountName


class MuteInput(DidInput):
    """An account to mute, or with `off` to unmute."""

    off: bool = False


class ActorInput(BaseModel):
    """An account."""

    actor: AccountName


class ActorListInput(ActorInput):
    """A list that belongs to an account."""

    limit: int = Field(default=50, ge=1, le=100)


class LimitInput(BaseModel):
    """How much to read."""

    limit: int = Field(default=20, ge=1, le=100)
