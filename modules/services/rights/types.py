"""What a person declared about the use of their posts by AI, and what they ask for themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from common.importance import Importance
from common.text.rights_requests import RequestKind

Choice = Literal["allow", "deny", "unset"]
Found = Literal["first", "possible", "called"]
"""When a post is looked at: before its turn, where no turn finds a request in it, or when the model called it one."""
ASKED = "asked"
"""The act of a turn whose model found that the post asks about its author's own data."""


@dataclass(frozen=True, slots=True)
class Preference:
    """A person's choices, as they hold for us.

    The SOUL trains no model, so `training` decides nothing here; `soul know` shows it with all that a person declared.

    Attributes:
        training: models may be trained on their posts.
        inference: their posts may stand in a prompt.
        synthetic_content: a model may write from their posts, for example a reply.
        embedding: memories that can be searched may be made of their posts.

    """

    training: Choice = "unset"
    inference: Choice = "unset"
    synthetic_content: Choice = "unset"
    embedding: Choice = "unset"


@dataclass(frozen=True, slots=True)
class Addressed:
    """A post or a message that somebody wrote to us.

    Attributes:
        uri: of the post, or another text that no other message has.
        did: who wrote it. A request in it concerns this account and no other.
        handle: under which it was written.
        text: what was written; neither a quoted post nor the text of a picture.
        importance: how much its author matters, among those for whom the day's budget is kept.
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
    """What came of the requests in a post.

    `answer`: they are carried out, and `text` is to be said to whoever asked, once. `silent`: they are carried out, or
    there were none (no `kinds`), and nothing may be said. `later`: they wait for `retry_in_s` seconds.
    """

    code: Literal["answer", "silent", "later"]
    kinds: tuple[RequestKind, ...] = ()
    text: str = ""
    reason: str = ""
    retry_in_s: float = 0.0

    @property
    def ends(self) -> bool:
        """Whether the conversation is over with the answer."""
        return not {"forget", "no_reply"}.isdisjoint(self.kinds)
