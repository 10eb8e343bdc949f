"""The body of an intent: all that its sender needs, one frozen type for each kind.

A body is stored as one JSON object without its kind, which has a column of its own. Fields that are unknown to this
version are kept, and written back as they were read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field, StrictBool, StrictStr, ValidationError

from adapters.atproto.records import web_url
from common.json_lines import json_object
from common.person import account_words
from modules.services.inbox.messages import message_name
from modules.services.outbox.github_bodies import Body, GitHubBody, GitHubKind, OfCommitment, StoredValue, json_of

IntentKind = Literal[
    "post",
    "reply",
    "like",
    "repost",
    "follow",
    "delete",
    "threadgate",
    GitHubKind,
    "space_chat",
    "direct_message",
]
ReplyRule = Literal["mentioned", "followers", "following"]
"""Who may reply in the SOUL's thread: those whom its first post mentions, its followers, or those whom it follows."""
ListUri = Annotated[StrictStr, Field(pattern=r"^at://[^/\s]+/app\.bsky\.graph\.list/[^/\s]+$")]
"""A list of accounts; those on it may reply too."""
AllowedReplies = tuple[ReplyRule | ListUri, ...] | None
"""Who may reply: everybody named by one of the rules, nobody if it is empty, everybody if it is None."""


class RecordRef(StoredValue):
    """A version of a record: its `at://` URI and its CID."""

    uri: StrictStr
    cid: StrictStr


class TheirPost(StoredValue):
    """Who wrote the post that an act is done to, and its words, so that the owner can judge the act."""

    handle: StrictStr
    text: StrictStr


class PictureSource(StoredValue):
    """Where a picture was found; "" for what is not known. Written to the post log unchanged.

    `image_url` is the picture itself, `page_url` the page that shows it, `original_url` where its maker published it.
    """

    type: Literal["arena", "web", "url", "generated", "other"] = "url"
    image_url: StrictStr = ""
    page_url: StrictStr = ""
    page_title: StrictStr = ""
    original_url: StrictStr = ""
    source_provider: StrictStr = ""
    filename: StrictStr = ""
    channel_url: StrictStr = ""
    block_id: int = 0
    block_url: StrictStr = ""
    block_title: StrictStr = ""
    arena_user: StrictStr = ""


class AttachedPicture(StoredValue):
    """A picture of a post: a local file, by its hash, which is uploaded when the post leaves.

    `sha256` is in hexadecimal digits, `size` in bytes, `width` and `height` in pixels. `alt` describes it for those who
    cannot see it; `why` says why it was picked.
    """

    sha256: Annotated[StrictStr, Field(pattern=r"^[0-9a-f]{64}$")]
    mime_type: StrictStr
    size: int
    width: int
    height: int
    alt: Annotated[StrictStr, Field(min_length=1)]
    why: StrictStr = ""
    source: PictureSource = PictureSource()


class _WithPictures(OfCommitment):
    text: StrictStr
    pictures: Annotated[tuple[AttachedPicture, ...], Field(max_length=4)] = ()

    @property
    def public_text(self) -> str:
        return self.text

    @property
    def preview(self) -> str:
        """The text, and a line for each picture with its description and its source."""
        return "\n".join((self.text, *map(_picture_line, self.pictures)))

    @property
    def short_preview(self) -> str:
        return self.text


class PostBody(_WithPictures):
    """A post with its pictures; `replies` says who may reply in its thread.

    If `replies` or `may_be_quoted` is not given, the account's setting on Bluesky is filled in when it leaves.
    """

    kind: ClassVar[Literal["post"]] = "post"
    replies: AllowedReplies = None
    may_be_quoted: StrictBool = True


class ReplyBody(_WithPictures):
    """A reply to `parent` in the thread that begins with `root`, with its pictures.

    `about_rights`: it answers somebody's request about their own data; `is_last_word`: it confirms that all data about
    them will be deleted soon. `told_to` is the DID of the addressee of a reply below a post of the SOUL's own; "" if
    that is the author of `parent`. `theirs` is the post `parent`, if it was never received. `promise` is what the model
    noted that it promises.
    """

    kind: ClassVar[Literal["reply"]] = "reply"
    parent: RecordRef
    root: RecordRef
    told_to: StrictStr = ""
    theirs: TheirPost | None = None
    promise: StrictStr = ""
    about_rights: StrictBool = False
    is_last_word: StrictBool = False

    @property
    def subject(self) -> str:
        return self.parent.uri


class _OnRecord(Body):
    uri: StrictStr
    cid: StrictStr
    theirs: TheirPost | None = None

    @property
    def subject(self) -> str:
        return self.uri


class LikeBody(_OnRecord):
    """A like of a record; `theirs` is that post, if it was never received."""

    kind: ClassVar[Literal["like"]] = "like"


class RepostBody(_OnRecord):
    """A repost of a record; `theirs` as in `LikeBody`."""

    kind: ClassVar[Literal["repost"]] = "repost"


class FollowBody(Body):
    """A follow of the account `did`, with its `handle` at the time of the proposal; "" if that was not known."""

    kind: ClassVar[Literal["follow"]] = "follow"
    did: StrictStr
    handle: StrictStr = ""

    @property
    def subject(self) -> str:
        return self.did

    @property
    def deed(self) -> str:
        return f"follow {account_words(self.handle, self.did)}"


class DeleteBody(Body):
    """The deletion of the SOUL's record at `uri`. If that is a follow, `did` and `handle` name the followed account."""

    kind: ClassVar[Literal["delete"]] = "delete"
    uri: StrictStr
    did: StrictStr = ""
    handle: StrictStr = ""

    @property
    def subject(self) -> str:
        return self.uri

    @property
    def deed(self) -> str:
        return f"unfollow {account_words(self.handle, self.did)}" if self.did else f"delete {_shown(self.uri)}"


class ThreadgateBody(Body):
    """A new rule on who may reply in the thread that begins with the SOUL's post `uri`."""

    kind: ClassVar[Literal["threadgate"]] = "threadgate"
    uri: StrictStr
    replies: AllowedReplies

    @property
    def subject(self) -> str:
        return self.uri

    @property
    def deed(self) -> str:
        rules = ", ".join(self.replies or ()) or "nobody"
        return f"let {'everybody' if self.replies is None else rules} reply to {_shown(self.uri)}"


class SpaceChatBody(OfCommitment):
    """A line for the room in which a commitment was made with the words `said`.

    `room_id` is that room's id, "" if it gave none. `room` is its address: "" if it is not known, None if the line is
    for whichever room the SOUL is in.
    """

    kind: ClassVar[Literal["space_chat"]] = "space_chat"
    text: StrictStr
    room: StrictStr | None = None
    said: StrictStr = ""
    room_id: StrictStr = ""

    @property
    def preview(self) -> str:
        return self.text


class DirectMessageBody(Body):
    """A message to the account with the DID `to`, in the SOUL's conversation with it.

    `after_rev` is the revision of the newest message known when this one was proposed, "" if there was none. `answers`
    is the id of the message that it answers, "" if none; a long answer has several parts, counted from 1. `drafts` are
    the ids of the acts that it reports to the owner as waiting for approval, and `forgotten` the times of the deletions
    of personal data after which it reports where somebody is still named. `about_rights` and `is_last_word` as in
    `ReplyBody`. `is_notice`: the program sends it to the owner, not the SOUL.
    """

    kind: ClassVar[Literal["direct_message"]] = "direct_message"
    conversation_id: StrictStr
    to: Annotated[StrictStr, Field(pattern=r"^did:")]
    text: StrictStr
    after_rev: StrictStr = ""
    answers: StrictStr = ""
    part: int = 1
    drafts: tuple[StrictStr, ...] = ()
    forgotten: tuple[StrictStr, ...] = ()
    about_rights: StrictBool = False
    is_last_word: StrictBool = False
    is_notice: StrictBool = False

    @property
    def subject(self) -> str:
        return message_name(self.conversation_id, f"{self.answers}#{self.part}") if self.answers else ""

    @property
    def preview(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class OpaqueBody:
    """A body that was not stored, or that this version cannot read. It is never sent."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    subject: ClassVar[str] = ""
    deed: ClassVar[str] = ""

    def stored(self) -> dict[str, Any]:
        """Return the JSON object as it was read."""
        return dict(self.fields)

    @property
    def as_json(self) -> str:
        """The body as it is stored."""
        return json_of(self.stored())

    @property
    def public_text(self) -> str:
        """The words in it that Bluesky may show under the SOUL's name; "" if there are none."""
        text = self.fields.get("text")
        return text if isinstance(text, str) else ""

    @property
    def preview(self) -> str:
        """As `public_text`."""
        return self.public_text

    @property
    def short_preview(self) -> str:
        """As `public_text`."""
        return self.public_text


KnownBody = (
    PostBody
    | ReplyBody
    | LikeBody
    | RepostBody
    | FollowBody
    | DeleteBody
    | ThreadgateBody
    | GitHubBody
    | SpaceChatBody
    | DirectMessageBody
)
IntentBody = KnownBody | OpaqueBody

_BY_KIND: dict[IntentKind, type[KnownBody]] = {body.kind: body for body in get_args(KnownBody)}


def parse_body(kind: IntentKind, text: str) -> IntentBody:
    """Parse the stored text of the body of an intent of `kind`; an `OpaqueBody` if it does not fit that kind.

    The `OpaqueBody` of a text without a JSON object is empty.
    """
    stored = json_object(text)
    return OpaqueBody() if stored is None else read_body(kind, stored)


def read_body(kind: IntentKind, stored: Mapping[str, Any]) -> IntentBody:
    """Read the body of an intent of `kind` from its JSON object; an `OpaqueBody` if it does not fit that kind."""
    try:
        return _BY_KIND[kind].model_validate(stored, by_alias=True, by_name=False)
    except ValidationError:
        return OpaqueBody(stored)


def _shown(uri: str) -> str:
    return web_url(uri) or uri


def _picture_line(picture: AttachedPicture) -> str:
    source = picture.source
    place = source.original_url or source.block_url or source.page_url or source.image_url
    return f"[picture: {picture.alt}]" + (f" from {place}" if place else "")
