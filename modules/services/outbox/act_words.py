"""What an act is and how it ended, in a few words for the owner. Pure."""

from __future__ import annotations

from adapters.atproto.records import web_url
from common.text.untrusted import one_line
from common.wording import deed, told_reason
from modules.services.outbox.github_bodies import OnGitHub
from modules.services.outbox.types import ACTIVE_STATES, Intent

_WORDS_CHARS, _REASON_CHARS = 60, 150


def act_of(intent: Intent) -> str:
    """Return what an act is, without the words that it publishes: `follow @kit.test`."""
    if isinstance(intent.body, OnGitHub):
        number = getattr(intent.body, "number", 0) or intent.issue_number
        return f"{deed(intent.kind)} in {intent.body.repo}{f'#{number}' if number else ''}"
    return intent.body.deed or deed(intent.kind)


def end_of(intent: Intent) -> str:
    """Return how an act ended or stands, in a sentence: `Done: follow @kit.test`."""
    words = "" if isinstance(intent.body, OnGitHub) else one_line(intent.body.short_preview, _WORDS_CHARS)
    what = act_of(intent) + (f" “{words}”" if words else "")
    if intent.state == "done":
        uri = intent.result_uri or ""
        link = "" if intent.body.deed else web_url(uri) or (uri if uri.startswith("https://") else "")
        return f"Done: {what}{f' {link}' if link else ''}"
    if intent.state == "held":
        return f"Waiting for your approval (/drafts): {what}"
    if intent.state in ACTIVE_STATES:
        return f"On its way: {what}"
    reason = one_line(told_reason(intent.error or ""), _REASON_CHARS) or "no reason is kept"
    return f"Not done: {what}. Reason: {reason}. Order it again if you still want it."
