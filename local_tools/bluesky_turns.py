"""What the tools of Bluesky read of the turn in which they are called."""

from __future__ import annotations

from typing import Any

from common.constants import PORTABLE_MAX_GRAPHEMES
from common.provenance import Provenance
from common.text.graphemes import grapheme_len, leading_sentences
from modules.lives.bluesky.types import Act, ExpressionTurn, Published, ThreadTurn
from modules.services.agent.tools.types import Turn


def thread_of(turn: Turn) -> ThreadTurn:
    """Return the thread of a turn about one post. Raises `TypeError` for any other turn."""
    if not isinstance(turn.subject, ThreadTurn):
        raise TypeError("the registry offers this tool in thread turns only")
    return turn.subject


def fitted(text: str, turn: Turn, most: int = PORTABLE_MAX_GRAPHEMES) -> str:
    """`text`, or its whole leading sentences where the model was asked to shorten it once already and could not.

    Small models cannot count; a thought is better told without its last sentence than lost.
    """
    subject = turn.subject
    if isinstance(subject, ThreadTurn | ExpressionTurn) and grapheme_len(text) > most:
        return text if subject.revisions.ask_for_shorter() else leading_sentences(text, most) or text
    return text


def is_urgent(turn: Turn) -> bool:
    """Return whether what the turn does goes ahead of the pace: it answers the owner."""
    return turn.provenance is Provenance.OWNER or (isinstance(turn.subject, ThreadTurn) and turn.subject.is_owner)


def once_for(turn: Turn) -> str:
    """Return the name under which a post that answers a request in public is said once; "" for any other post."""
    return f"request:{turn.cause_id}" if isinstance(turn.subject, ThreadTurn) else ""


def is_by_owner(turn: Turn) -> bool:
    """Return whether only the owner takes part in it."""
    return turn.provenance is Provenance.OWNER


def may_look_up(actor: str, turn: Turn) -> bool:
    """Return whether `actor` may be looked up.

    A handle is looked up at an address that its holder owns: beside untrusted text, a made-up one could carry away
    what the turn has seen.
    """
    return is_by_owner(turn) or actor.startswith("did:plc:")


def data_of(act: Act, reason: str, published: Published) -> dict[str, Any]:
    """Return what the life reads of a result: see `Disposition`."""
    held = published.status == "held"
    return {"act": act, "reason": reason, "intent_id": published.intent_id or None, "held": held}
