"""Describes acts and how they ended for the owner: the target, the words of others, and the SOUL's own words.

All surfaces describe acts with it. The words of others, and texts on GitHub, are cut at the end of a word; links stay
whole.
"""

import sqlite3
from dataclasses import dataclass, replace

from adapters.atproto.records import parse_at_uri, web_url
from common.person import account_words
from common.text.graphemes import shortened
from common.text.untrusted import clean
from common.wording import deed, told_reason
from modules.services.inbox import messages, received
from modules.services.outbox import store
from modules.services.outbox.bodies import (
    DeleteBody,
    DirectMessageBody,
    LikeBody,
    PostBody,
    ReplyBody,
    RepostBody,
    TheirPost,
    ThreadgateBody,
)
from modules.services.outbox.github_bodies import (
    IssueBody,
    IssueCommentBody,
    IssueUpdateBody,
    OnGitHub,
    PullRequestBody,
    ReviewBody,
)
from modules.services.outbox.types import ACTIVE_STATES, Intent

_THEIRS_CHARS, _WORDS_CHARS, _REASON_CHARS, _TEXT_CHARS = 90, 60, 150, 300
_WRITTEN = (IssueBody, IssueCommentBody, IssueUpdateBody, PullRequestBody, ReviewBody)
_MOST_MESSAGES = 10


@dataclass(frozen=True, slots=True)
class ActWords:
    """An act in words.

    Attributes:
        what: the act and its target, without anybody's words: `like of @kit.test`.
        theirs: the words of the post that it is done to; "" if they are not known.
        author: the handle of who wrote `theirs`.
        ours: the SOUL's own words; "" for an act without words.

    """

    what: str
    theirs: str = ""
    author: str = ""
    ours: str = ""

    @property
    def line(self) -> str:
        """The act on one line with the SOUL's whole words, or else the beginning of theirs."""
        return f"{self.what}: '{shortened(self.theirs, _THEIRS_CHARS)}'" if self.theirs and not self.ours else self.own

    @property
    def own(self) -> str:
        """The act on one line, with the SOUL's words only."""
        return f"{self.what}: {' '.join(self.ours.split())}" if self.ours else self.what

    @property
    def with_theirs(self) -> str:
        """The act on one line, with the beginning of their words even if it has words of the SOUL's."""
        if not (self.ours and self.theirs):
            return self.line
        return f"{self.what}, who wrote '{shortened(clean(self.theirs), _THEIRS_CHARS)}': {' '.join(self.ours.split())}"


def act_words(connection: sqlite3.Connection, intent: Intent) -> ActWords:
    """Return an act in words, with the author and the words of the post that it is done to."""
    body = intent.body
    if isinstance(body, LikeBody | RepostBody | ReplyBody):
        told_to = body.told_to if isinstance(body, ReplyBody) else ""
        told = TheirPost(handle=received.latest_handle(connection, told_to), text="") if told_to else None
        theirs = told if told and told.handle else _their_post(connection, intent.target, body.theirs)
        whom = account_words(theirs.handle) or web_url(intent.target) or intent.target
        if theirs.handle and not theirs.text and not isinstance(body, ReplyBody):
            whom += f": {web_url(intent.target) or intent.target}"
        verb = f"reply to {whom}" if isinstance(body, ReplyBody) else f"{deed(intent.kind)} of {whom}"
        return ActWords(verb, theirs.text, theirs.handle, body.preview)
    if isinstance(body, DirectMessageBody):
        talk = messages.talk_with(connection, body.to)
        handle = talk.handle if talk else ""
        what = f"direct message to {account_words(handle)}" if handle else "direct message"
        return ActWords(what, _answered(connection, body), handle, body.text)
    if isinstance(body, DeleteBody | ThreadgateBody):
        return _on_own_record(connection, body)
    if isinstance(body, OnGitHub):
        title = "" if body.about else getattr(body, "title", "")
        text = _beginning(body.words) if isinstance(body, _WRITTEN) else ""
        return ActWords(body.about or body.deed, ours=". ".join(filter(None, (title, text))))
    if body.deed:
        return ActWords(body.deed)
    ours = body.preview if isinstance(body, PostBody) else body.short_preview
    older = store.draft_numbers(connection).get(intent.replaces) if intent.replaces and intent.state == "held" else 0
    what = f"{deed(intent.kind)} to replace number {older}" if older else deed(intent.kind)
    return ActWords(what, ours=ours or web_url(intent.target) or intent.target)


def _on_own_record(connection: sqlite3.Connection, body: DeleteBody | ThreadgateBody) -> ActWords:
    own = store.at_address(connection, body.uri)
    if own and isinstance(own.body, LikeBody | RepostBody):
        undone = act_words(connection, own)
        return replace(undone, what=f"take back the {undone.what}")
    is_post = isinstance(body, DeleteBody) and not body.did
    return ActWords("delete a post of its own" if is_post else body.deed, own.body.public_text if own else "")


def end_of(connection: sqlite3.Connection, intent: Intent) -> str:
    """Return how an act ended or stands, in a sentence: `Done: follow @kit.test`."""
    act = act_words(connection, intent)
    what = act.what + (f" “{shortened(clean(act.ours), _WORDS_CHARS)}”" if act.ours else "")
    if intent.state == "done":
        uri = "" if isinstance(intent.body, DeleteBody) else intent.result_uri or ""
        link = web_url(uri) or (uri if uri.startswith("https://") else "")
        return f"Done: {what}{f' {link}' if link else ''}"
    if intent.state == "held":
        return f"Waiting for your approval (/drafts): {what}"
    if intent.state in ACTIVE_STATES:
        return f"On its way: {what}"
    reason = shortened(clean(told_reason(intent.error or "")), _REASON_CHARS) or "no reason is kept"
    return f"Not done: {what}. Reason: {reason}. Order it again if you still want it."


def _beginning(text: str) -> str:
    """Return a text on one line; of a long one the beginning, and how many characters are left out."""
    told = " ".join(clean(text).split())
    begun = shortened(told, _TEXT_CHARS)
    left = len(told) - len(begun.rstrip("…").rstrip())
    return f"{begun} ({left:,} more characters)" if begun != told else told


def _answered(connection: sqlite3.Connection, body: DirectMessageBody) -> str:
    """Return what a direct message answers, one a line: the messages since the previous answer; "" for none."""
    if not body.answers:
        return ""
    said = messages.said_in(connection, body.conversation_id, _MOST_MESSAGES)
    others = (one.body for one in store.at_place(connection, ["direct_message"], body.conversation_id))
    before = (one.after_rev for one in others if isinstance(one, DirectMessageBody) and one.after_rev < body.after_rev)
    last = max(before, default="")
    new = (one for one in said if one.author_did == body.to and last < one.rev <= body.after_rev)
    return "\n".join(one.text for one in new)


def _their_post(connection: sqlite3.Connection, uri: str, noted: TheirPost | None) -> TheirPost:
    """Return the author and words of a post: as received, as read for the act, or as far as they are known."""
    if (post := received.get(connection, uri)) is not None and post.payload:
        return TheirPost(handle=post.handle, text=post.text)
    if noted is not None:
        return noted
    own, at = store.at_address(connection, uri), parse_at_uri(uri)
    return TheirPost(
        handle=received.latest_handle(connection, at.repo) if at else "", text=own.body.public_text if own else ""
    )
