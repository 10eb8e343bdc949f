"""The values of people's declarations on the use of their posts by AI, and of requests about their own data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from common.provenance import Importance
from common.text.rights_requests import RequestKind

Choice = Literal["allow", "deny", "unset"]
Found = Literal["first", "possible", "called"]
"""The occasions for reading a post: before its turn, if no turn looks for a request, or if the model called it one."""
ASKED: Final = "asked"
"""The act of a turn whose model found that the post asks about its author's own data."""


@dataclass(frozen=True, slots=True)
class Preference:
    """A person's choices, as they apply to us.

    The SOUL trains no model, so `training` decides nothing here; `soul know` shows all that a person declared.

    Attributes:
        training: models may be trained on their posts.
        inference: their posts may stand in a prompt.
        synthetic_content: a model may write from their posts, for example a reply.
        embedding: searchable memories may be made of their posts.

    """

    training: Choice = "unset"
    inference: Choice = "unset"
    synthetic_content: Choice = "unset"
    embedding: Choice = "unset"


@dataclass(frozen=True, slots=True)
class Addressed:
    """A post or a message that somebody wrote to us.

    Attributes:
        uri: of the post, or another text that is unique to the message.
        did: its author. A request in it concerns this account and no other.
        handle: its author's handle at that time.
        text: what was written; neither a quoted post nor the text of a picture.
        importance: how much its author matters for the day's budget.
        answers: the uri of the post or message that it answers; "" if it answers none.

    """

    uri: str
    did: str
    handle: str
    text: str
    importance: Importance = "stranger"
    answers: str = ""


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """The result of the requests in a post.

    `answer`: they are carried out, and `text` is to be sent once. `silent`: they are carried out, or there were none
    (no `kinds`), and nothing may be said. `later`: they wait for `retry_in_s` seconds.
    """

    code: Literal["answer", "silent", "later"]
    kinds: tuple[RequestKind, ...] = ()
    text: str = ""
    reason: str = ""
    retry_in_s: float = 0.0

    @property
    def ends(self) -> bool:
        """Whether the answer ends the conversation."""
        return not {"forget", "no_reply"}.isdisjoint(self.kinds)
